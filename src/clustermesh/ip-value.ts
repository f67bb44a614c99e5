import type { Cidr } from '../model/cidr.ts';
import { parseCidr } from '../model/cidr.ts';
import { canonicalAddress } from '../model/address.ts';
import { type Decoded, decodeJson } from './member.ts';
import { identityRange, type MeshCluster } from './names.ts';
import { readRange } from './node-value.ts';

/** Whose an address of another cluster is. Source: Cilium pkg/identity, `IPIdentityPair`. */
export interface RemoteIp {
  readonly range: Cidr;
  /** See {@link RemoteIdentity}; below 256: one that Cilium itself defines, such as a node. */
  readonly identity: number;
  /** Empty if it is not a Pod. */
  readonly namespace: string;
  readonly pod: string;
  readonly serviceAccount: string;
}

const FIRST_OF_CLUSTERS = 256;

/** `suffix`: of the key, an address or a range. */
export function decodeIp(suffix: string, bytes: Uint8Array, cluster: MeshCluster): Decoded<RemoteIp> {
  return decodeJson(bytes, (whole) => {
    const range = readRange(whole);
    const key = parseCidr(suffix);
    if (key === undefined || canonicalAddress(key.address) !== range.address || key.length !== range.length)
      whole.wrong(`says that it is ${range.address}/${range.length}, and its key ends differently`);
    const id = whole.get('ID');
    const identity = id.number(0, 0xff_ffff);
    const { first, last } = identityRange(cluster);
    if (identity >= FIRST_OF_CLUSTERS && (identity < first || identity > last))
      id.wrong(`${identity} is not an identity of cluster ${cluster.name}, which has ${first} to ${last}`);
    return {
      ...{ range, identity },
      namespace: whole.get('K8sNamespace').text(),
      pod: whole.get('K8sPodName').text(),
      serviceAccount: whole.get('K8sServiceAccount').text(),
    };
  });
}
