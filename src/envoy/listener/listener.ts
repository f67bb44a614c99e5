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

/** An address, or `unix://path`. */
export function listenerAddress(address: string, port: number): Address {
  return address.startsWith('unix://')
    ? { pipe: { path: address.slice('unix://'.length) } }
    : { socketAddress: { address, portValue: port } };
}
