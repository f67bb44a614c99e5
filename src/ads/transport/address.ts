/** The address of the client of a call, without its port, from `call.getPeer()`: `10.0.0.7:40112`, `fd00::7:40112`. */
export function addressOfPeer(peer: string): string {
  return plainAddress(peer.replace(/:\d+$/, ''));
}

/** An IPv4 address is spelled the same way whether it arrived on a socket of IPv4 or of both families. */
export function plainAddress(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, '');
}
