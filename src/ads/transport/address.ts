/** The address of a call's client, without port, from `call.getPeer()`: `10.0.0.7:40112`, `fd00::7:40112`. */
export function addressOfPeer(peer: string): string {
  return plainAddress(peer.replace(/:\d+$/, ''));
}

/** Spells an IPv4 address the same way, whether it arrived on an IPv4 or a dual-stack socket. */
export function plainAddress(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, '');
}
