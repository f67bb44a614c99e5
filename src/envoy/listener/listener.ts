import { type Traits, wildcardAddress } from '../../model/traits.ts';
import type { Address, Listener } from '../gen/types.gen.ts';

/** The HTTP inspector's names for plaintext HTTP/1.1 and HTTP/2. */
export const PLAINTEXT_HTTP: readonly string[] = ['http/1.1', 'h2c'];

/** The TLS inspector's name for a connection without TLS. */
export const RAW_BUFFER = 'raw_buffer';
export const TLS = 'tls';

/** For listeners that accept connections themselves: one connection at a time, so that workers share the load. */
export const realListener: Pick<Listener, 'maxConnectionsToAcceptPerSocketEvent'> = {
  maxConnectionsToAcceptPerSocketEvent: { value: 1 },
};

/**
 * Where redirected connections arrive: the Pod's connections of both families are redirected if it has addresses of
 * both, and a port on one wildcard alone would refuse those of the other.
 */
export function redirectedAddresses(
  { ipFamily }: Pick<Traits, 'ipFamily'>,
  port: number,
): Pick<Listener, 'address' | 'additionalAddresses'> {
  const address = listenerAddress(wildcardAddress({ ipFamily }), port);
  return ipFamily === 'dual'
    ? { address, additionalAddresses: [{ address: listenerAddress('::', port) }] }
    : { address };
}

/** An address, or `unix://path`. */
export function listenerAddress(address: string, port: number): Address {
  return address.startsWith('unix://')
    ? { pipe: { path: address.slice('unix://'.length) } }
    : { socketAddress: { address, portValue: port } };
}
