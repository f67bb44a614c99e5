import { isIP } from 'node:net';
import type { Transport } from '../api/core.ts';
import { quote } from '../api/quote.ts';
import { canonicalAddress, isAddress } from '../model/address.ts';
import { namespacedSuffix } from './keys.ts';
import { type Member, Wrong } from './member.ts';
import type { MeshCluster } from './names.ts';

/** What values of several kinds have in common, checked as an API server would. */

/** Of namespaces, Services and ports. */
export const DNS_LABEL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
/** Of other objects. */
export const DNS_NAME = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/;
/** Of labels. */
export const LABEL_VALUE = /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;

export interface Named {
  readonly namespace: string;
  readonly name: string;
}

/** A value that says itself whose it is must agree with its key. `id`: absent where values of the kind have none. */
export function expectOwner(
  suffix: string,
  said: { readonly cluster: string; readonly id?: number; readonly suffix: string },
  { name, id }: MeshCluster,
): void {
  if (said.cluster !== name) throw new Wrong(`names cluster ${quote(said.cluster)}, but belongs to ${name}`);
  if (said.id !== undefined && said.id !== id) throw new Wrong(`names cluster id ${said.id}, but ${name} has id ${id}`);
  if (said.suffix !== suffix)
    throw new Wrong(`says that it is ${quote(said.suffix)}, but its key ends with ${quote(suffix)}`);
}

/** Of JSON whose fields have these names. */
export function readNamed(whole: Member, suffix: string, cluster: MeshCluster, nameOf: RegExp): Named {
  const namespace = whole.get('namespace').matching(DNS_LABEL, 'a namespace');
  const name = whole.get('name').matching(nameOf, 'a name');
  const said = { cluster: whole.get('cluster').text(), suffix: namespacedSuffix(namespace, name) };
  expectOwner(suffix, said, cluster);
  return { namespace, name };
}

/** Why other clusters cannot mean an address of theirs. */
export function addressProblem(address: string): string | undefined {
  if (!isAddress(address)) return `${quote(address)} is not an IP address`;
  if (isOfOneMachine(canonicalAddress(address)))
    return `${quote(address)} is a loopback, link-local, multicast, unspecified or IPv4-mapped address, which other clusters cannot reach`;
  return undefined;
}

/**
 * Unspecified, loopback, link-local and multicast addresses, and IPv4 addresses in IPv6: API servers refuse them in
 * slices, and a proxy would connect to its own machine.
 */
function isOfOneMachine(address: string): boolean {
  if (isIP(address) === 6) return /^(::|fe[89ab]|ff)/.test(address);
  const [first, second] = address.split('.', 2).map(Number) as [number, number];
  if (first === 0 || first === 127 || (first === 169 && second === 254)) return true;
  return (first >= 224 && first < 240) || address === '255.255.255.255';
}

const transports: readonly string[] = ['TCP', 'UDP', 'SCTP'];

/** As an API server has it: absent means TCP. */
export function transportOf(text: string): Transport | undefined {
  if (text === '') return 'TCP';
  return transports.includes(text) ? (text as Transport) : undefined;
}
