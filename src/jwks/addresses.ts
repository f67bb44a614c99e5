import { BlockList, isIP } from 'node:net';
import { parseCidr } from '../model/cidr.ts';

/**
 * Addresses that no public server has. Whoever may write a RequestAuthentication could otherwise have the control plane
 * call its own host, the API server, or a cloud's metadata service. Source: the IANA registries of special-purpose
 * addresses, and one address that Azure uses.
 */
const special = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  // Azure's WireServer, which serves the agent of each virtual machine from a public address.
  '168.63.129.16/32',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/3',
  // All but 2000::/3, which is what has been given out so far, and what leads back into IPv4.
  '::/3',
  '4000::/2',
  '8000::/1',
  '2001::/23',
  '2001:db8::/32',
  '2002::/16',
  '3fff::/20',
];

/** Which addresses may be called. */
export class AllowedAddresses {
  readonly #special = new Ranges(special);
  readonly #allowed: Ranges;

  /** @param allowed ranges that may be called although they are not public. */
  constructor(allowed: readonly string[]) {
    this.#allowed = new Ranges(allowed);
  }

  has(address: string): boolean {
    // An IPv4 address that is written as an IPv6 one is the same.
    const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1] ?? address;
    if (mapped === address && /^::ffff:/i.test(address)) return false;
    return isIP(mapped) !== 0 && (this.#allowed.have(mapped) || !this.#special.have(mapped));
  }
}

/** By family: for a BlockList, a range of IPv6 addresses has IPv4 addresses in it, too. */
class Ranges {
  readonly #v4 = new BlockList();
  readonly #v6 = new BlockList();

  constructor(ranges: readonly string[]) {
    for (const range of ranges) {
      const { address, length } = parseCidr(range)!;
      if (isIP(address) === 4) this.#v4.addSubnet(address, length, 'ipv4');
      else this.#v6.addSubnet(address, length, 'ipv6');
    }
  }

  have(address: string): boolean {
    return isIP(address) === 4 ? this.#v4.check(address, 'ipv4') : this.#v6.check(address, 'ipv6');
  }
}
