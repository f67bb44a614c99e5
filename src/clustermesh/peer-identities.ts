import { blockOf, canonicalCidr } from '../model/cidr.ts';
import { isIP } from 'node:net';
import type { RemoteIdentity } from './identity-value.ts';
import type { RemoteIp } from './ip-value.ts';
import { WatchStore } from './watch-store.ts';
import type { Clock } from '../clock.ts';

/** Who has an address of another cluster. */
export interface PeerIdentity {
  /** A security identity of Cilium. */
  readonly id: number;
  /** Undefined: not known, or an identity without labels of its own. */
  readonly labels?: Readonly<Record<string, string>>;
  /** Empty if it is not a Pod, or not known. */
  readonly namespace: string;
  readonly pod: string;
  readonly serviceAccount: string;
}

/** The identities of one other cluster, and which of them its addresses have. */
export class PeerIdentities {
  readonly identities: WatchStore<RemoteIdentity>;
  readonly ips: WatchStore<RemoteIp>;
  /** By identity. */
  #labels = new Map<number, Readonly<Record<string, string>>>();
  /** By range, as `10.1.0.0/16`. An address is a range by itself. */
  #ranges = new Map<string, RemoteIp>();
  /** How many ranges have this family and length, as in `4/16`. */
  #lengths = new Map<string, number>();

  constructor(clock: Clock) {
    this.identities = new WatchStore<RemoteIdentity>({
      clock,
      replaced: (values) => {
        this.#labels = new Map(Array.from(values.values(), ({ id, labels }) => [id, labels]));
      },
      changed: (now, before) => {
        if (before !== undefined) this.#labels.delete(before.id);
        if (now !== undefined) this.#labels.set(now.id, now.labels);
      },
    });
    this.ips = new WatchStore<RemoteIp>({
      clock,
      replaced: (values) => {
        [this.#ranges, this.#lengths] = [new Map(), new Map()];
        for (const value of values.values()) this.#add(value);
      },
      changed: (now, before) => {
        if (before !== undefined) this.#remove(before);
        if (now !== undefined) this.#add(now);
      },
    });
  }

  /** The most specific that is known of the address. */
  identityOf(address: string): PeerIdentity | undefined {
    const family = isIP(address);
    if (family === 0) return undefined;
    const longest = family === 4 ? 32 : 128;
    for (let length = longest; length >= 0; length--) {
      if (!this.#lengths.has(`${family}/${length}`)) continue;
      const found = this.#ranges.get(blockOf(address, longest - length) ?? '');
      if (found !== undefined) return this.#identityOf(found);
    }
    return undefined;
  }

  #identityOf({ identity: id, namespace, pod, serviceAccount }: RemoteIp): PeerIdentity {
    const labels = this.#labels.get(id);
    return { id, ...(labels && { labels }), namespace, pod, serviceAccount };
  }

  #add(value: RemoteIp): void {
    const { address, length } = value.range;
    const range = rangeOf(value);
    if (this.#ranges.has(range)) return;
    this.#ranges.set(range, value);
    const lengths = `${isIP(address)}/${length}`;
    this.#lengths.set(lengths, (this.#lengths.get(lengths) ?? 0) + 1);
  }

  #remove(value: RemoteIp): void {
    const range = rangeOf(value);
    if (this.#ranges.get(range) !== value) return;
    this.#ranges.delete(range);
    const lengths = `${isIP(value.range.address)}/${value.range.length}`;
    const left = (this.#lengths.get(lengths) ?? 0) - 1;
    if (left > 0) this.#lengths.set(lengths, left);
    else this.#lengths.delete(lengths);
  }
}

function rangeOf({ range: { address, length } }: RemoteIp): string {
  return canonicalCidr(`${address}/${length}`);
}
