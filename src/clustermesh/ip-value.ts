import { quote } from '../api/quote.ts';
import type { Cidr } from '../model/cidr.ts';
import { parseCidr } from '../model/cidr.ts';
import { canonicalAddress } from '../model/address.ts';
import { DNS_LABEL, DNS_NAME } from './content.ts';
import { type Decoded, decodeJson, type Member } from './member.ts';
import { identityRange, type MeshCluster } from './names.ts';
import { readAddress, readRange } from './node-value.ts';

/** Whose an address of another cluster is. Source: Cilium pkg/identity, `IPIdentityPair`. */
export interface RemoteIp {
  readonly range: Cidr;
  /** See {@link RemoteIdentity}; below 256: one that Cilium itself defines, such as a node. */
  readonly identity: number;
  /** Empty if it is not a Pod. */
  readonly namespace: string;
  readonly pod: string;
  /** Empty if the cluster does not say it. */
  readonly serviceAccount: string;
  /** An address of the node that it is on; empty if there is none. */
  readonly host: string;
}

const FIRST_OF_CLUSTERS = 256;

/** `suffix`: of the key, an address or a range. */
export function decodeIp(suffix: string, bytes: Uint8Array, cluster: MeshCluster): Decoded<RemoteIp> {
  return decodeJson(bytes, (whole) => {
    const range = readRange(whole);
    const key = parseCidr(suffix);
    if (key === undefined || canonicalAddress(key.address) !== range.address || key.length !== range.length)
      whole.wrong(`says that it is ${range.address}/${range.length}, but its key ends with ${quote(suffix)}`);
    const id = whole.get('ID');
    const identity = id.number(0, 0xff_ffff);
    const { first, last } = identityRange(cluster);
    if (identity >= FIRST_OF_CLUSTERS && (identity < first || identity > last))
      id.wrong(`${identity} is not an identity of cluster ${cluster.name}, which has ${first} to ${last}`);
    const host = whole.get('HostIP');
    return {
      ...{ range, identity },
      namespace: emptyOr(whole.get('K8sNamespace'), DNS_LABEL, 'a namespace'),
      pod: emptyOr(whole.get('K8sPodName'), DNS_NAME, 'the name of a Pod'),
      serviceAccount: emptyOr(whole.get('K8sServiceAccount'), DNS_NAME, 'the name of a ServiceAccount'),
      host: host.text() === '' ? '' : readAddress(host),
    };
  });
}

function emptyOr(member: Member, pattern: RegExp, what: string): string {
  return member.text() === '' ? '' : member.matching(pattern, what);
}
