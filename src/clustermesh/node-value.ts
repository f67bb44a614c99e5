import { type Cidr, addressBytes } from '../model/cidr.ts';
import { canonicalAddress, isAddress } from '../model/address.ts';
import { DNS_NAME, expectOwner } from './content.ts';
import { type Decoded, decodeJson, type Member } from './member.ts';
import type { MeshCluster } from './names.ts';

/** A node of another cluster. Source: Cilium pkg/node/types, `Node`. */
export interface RemoteNode {
  readonly name: string;
  readonly addresses: readonly { readonly type: string; readonly address: string }[];
  readonly labels: Readonly<Record<string, string>>;
}

const MOST_ADDRESSES = 1_000;

/** `suffix`: of the key. */
export function decodeNode(suffix: string, bytes: Uint8Array, cluster: MeshCluster): Decoded<RemoteNode> {
  return decodeJson(bytes, (whole) => {
    const name = whole.get('Name').matching(DNS_NAME, 'the name of a node');
    const id = whole.get('ClusterID').number(0, 0xffff_ffff);
    expectOwner(suffix, { cluster: whole.get('Cluster').text(), id, suffix: name }, cluster);
    return {
      name,
      addresses: whole
        .get('IPAddresses')
        .list(MOST_ADDRESSES)
        .map((each) => ({ type: each.get('Type').text(), address: readAddress(each.get('IP')) })),
      labels: whole.get('Labels').texts(),
    };
  });
}

export function readAddress(member: Member): string {
  const text = member.text();
  if (!isAddress(text)) member.wrong('is not an IP address');
  return canonicalAddress(text);
}

/** `{"IP": "10.1.0.0", "Mask": "//8AAA=="}`. Without a mask, it is one address. */
export function readRange(member: Member): Cidr {
  const address = readAddress(member.get('IP'));
  const longest = addressBytes(address).length * 8;
  const mask = member.get('Mask');
  if (mask.text() === '') return { address, length: longest };
  const bits = Array.from(Buffer.from(mask.text(), 'base64'), (byte) => byte.toString(2).padStart(8, '0')).join('');
  if (bits.length !== longest || !/^1*0*$/.test(bits)) mask.wrong('is not the mask of such an address');
  return { address, length: bits.lastIndexOf('1') + 1 };
}
