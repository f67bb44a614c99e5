/**
 * The address of a client without its port, from `call.getPeer()`: `10.0.0.7:40112`, `fd00::7:40112`. An IPv4 address
 * is spelled the same way whether it arrived on a socket of IPv4 or of both families.
 */
export function addressOf(peer: string): string {
  return peer.replace(/:\d+$/, '').replace(/^::ffff:(?=\d+\.)/i, '');
}
