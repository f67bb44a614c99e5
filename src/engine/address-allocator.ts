import { isIPv6 } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import { canonicalAddress, isAddress } from '../model/address.ts';
import type { AddressClaim, AllocatedAddress } from '../model/address-claim.ts';
import { compareAge } from '../model/age.ts';
import { spreadHash } from '../model/hash.ts';

/** As in Istio: 240.240.0.0/16 without its first and last address, and as much of 2001:2::/48 as a number of 32 bits. */
const v4 = {
  isV6: false,
  size: 2 ** 16 - 2,
  at: (n: number) => `240.240.${(n + 1) >> 8}.${(n + 1) & 0xff}`,
} as const;
const v6 = {
  isV6: true,
  size: 2 ** 32 - 1,
  at: (n: number) => canonicalAddress(`2001:2::${((n + 1) >>> 16).toString(16)}:${((n + 1) & 0xffff).toString(16)}`),
} as const;
const families = [v4, v6] as const;

type Family = (typeof families)[number];

/** The number of an address of the range of IPv4; undefined for others. */
function numberOf(address: string): number | undefined {
  const [, high, low] = /^240\.240\.(\d+)\.(\d+)$/.exec(address) ?? [];
  const n = Number(high) * 256 + Number(low) - 1;
  return n >= 0 && n < v4.size ? n : undefined;
}

/**
 * IPv6 addresses that are tried for a host before it goes without. All hosts of a mesh take so few of them that only
 * someone who writes addresses on purpose finds so many in a row.
 */
const MOST_TRIES = 16;

/**
 * Gives hosts of ServiceEntries addresses of their own, one of each family. An address stays where it is; if two have
 * the same, the older entry keeps it, and one that a user has written is nobody's. Where the search begins follows from
 * the host, so that replicas and restarts agree, mostly. A change costs what it changes.
 */
export class AddressAllocator {
  readonly #claims = new Map<string, AddressClaim>();
  /** Which claim has an address. */
  readonly #owners = new Map<string, string>();
  /** How many claims have written an address themselves. */
  readonly #fixed = new Map<string, number>();
  readonly #given = new Map<string, readonly AllocatedAddress[]>();
  /** 1: has an owner, or somebody has written it. There may be more hosts than addresses: none is searched one by one. */
  readonly #takenV4 = new Uint8Array(v4.size);

  /** What the status of an entry is to have; empty if it is to have nothing. */
  of(key: string): readonly AllocatedAddress[] {
    return this.#given.get(key) ?? [];
  }

  /**
   * Undefined: the claim is gone. Returns the keys whose addresses have changed, or are to be written because they
   * differ from what the status has.
   */
  update(changes: ReadonlyMap<string, AddressClaim | undefined>): ReadonlySet<string> {
    const changed = new Set<string>();
    const open = new Set<string>();
    for (const [key, claim] of changes) this.#replace(key, claim, open);
    while (open.size > 0) {
      const keys = [...open].sort((a, b) => compareAge(this.#claims.get(a)!, this.#claims.get(b)!));
      open.clear();
      // Whoever loses an address is younger than the one it goes to, so this ends.
      for (const key of keys) {
        const before = this.#given.get(key);
        this.#settle(key, this.#claims.get(key)!, open);
        if (changes.has(key) || !isDeepStrictEqual(before, this.#given.get(key))) changed.add(key);
      }
    }
    for (const [key, claim] of changes) if (claim === undefined) changed.add(key);
    return changed;
  }

  #replace(key: string, claim: AddressClaim | undefined, open: Set<string>): void {
    for (const address of this.#claims.get(key)?.fixed ?? []) this.#count(address, -1);
    if (claim === undefined) {
      this.#release(key);
      this.#claims.delete(key);
      this.#given.delete(key);
      open.delete(key);
      return;
    }
    this.#claims.set(key, claim);
    open.add(key);
    for (const address of claim.fixed) {
      this.#count(address, 1);
      const owner = this.#owners.get(address);
      if (owner !== undefined) open.add(owner);
    }
  }

  #count(address: string, by: 1 | -1): void {
    const count = (this.#fixed.get(address) ?? 0) + by;
    if (count === 0) this.#fixed.delete(address);
    else this.#fixed.set(address, count);
    this.#mark(address);
  }

  #release(key: string): void {
    for (const { value } of this.#given.get(key) ?? []) {
      if (this.#owners.get(value) !== key) continue;
      this.#owners.delete(value);
      this.#mark(value);
    }
  }

  #mark(address: string): void {
    const n = numberOf(address);
    if (n !== undefined) this.#takenV4[n] = this.#isTaken(address) ? 1 : 0;
  }

  #isTaken(address: string): boolean {
    return this.#owners.has(address) || this.#fixed.has(address);
  }

  /** @param losers gets those that lose an address to it. */
  #settle(key: string, claim: AddressClaim, losers: Set<string>): void {
    this.#release(key);
    const former = [...claim.held, ...(this.#given.get(key) ?? [])];
    const given: AllocatedAddress[] = [];
    for (const host of claim.hosts)
      for (const family of families) {
        const value = this.#kept(key, claim, host, family, former, losers) ?? this.#found(claim, host, family);
        if (value === undefined) continue;
        this.#owners.set(value, key);
        this.#mark(value);
        given.push({ value, host });
      }
    this.#given.set(key, given);
  }

  /** What it has already, unless somebody with a better claim has it. */
  #kept(
    key: string,
    claim: AddressClaim,
    host: string,
    { isV6 }: Family,
    former: readonly AllocatedAddress[],
    losers: Set<string>,
  ): string | undefined {
    for (const { value, host: of } of former) {
      if (of !== host || !isAddress(value) || isIPv6(value) !== isV6) continue;
      const address = canonicalAddress(value);
      if (this.#fixed.has(address)) continue;
      const owner = this.#owners.get(address);
      // Two hosts of one entry, too.
      if (owner === key || (owner !== undefined && compareAge(this.#claims.get(owner)!, claim) < 0)) continue;
      if (owner !== undefined) losers.add(owner);
      return address;
    }
    return undefined;
  }

  /** The first free one from where the search begins. */
  #found({ namespace, name }: AddressClaim, host: string, { isV6, size }: Family): string | undefined {
    const start = spreadHash(`${namespace}/${name}/${host}`) % size;
    if (!isV6) {
      const after = this.#takenV4.indexOf(0, start);
      const free = after >= 0 ? after : this.#takenV4.indexOf(0);
      return free < 0 ? undefined : v4.at(free);
    }
    for (let i = 0; i < MOST_TRIES; i++) {
      const address = v6.at((start + i) % size);
      if (!this.#isTaken(address)) return address;
    }
    return undefined;
  }
}

/** What a new allocator gives all of them: the same for the same claims. */
export function allocateAll(
  claims: Iterable<readonly [string, AddressClaim]>,
): ReadonlyMap<string, readonly AllocatedAddress[]> {
  const allocator = new AddressAllocator();
  const all = new Map(claims);
  allocator.update(all);
  return new Map([...all.keys()].flatMap((key) => (allocator.of(key).length > 0 ? [[key, allocator.of(key)]] : [])));
}
