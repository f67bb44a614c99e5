import { isIP } from 'node:net';
import type { Clock } from '../clock.ts';
import { blockOf, canonicalCidr } from '../model/cidr.ts';
import { decodeIdentity, type RemoteIdentity } from './identity-value.ts';
import { decodeIp } from './ip-value.ts';
import { type StoredValues, WatchStore } from './watch-store.ts';

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

/** What is kept of an address or a range. There can be many. */
interface PeerRange extends Pick<PeerIdentity, 'namespace' | 'pod' | 'serviceAccount'> {
  /** Equal for equal ranges, as in `10.1.0.0/16`. An address is a range by itself. */
  readonly range: string;
  /** Family and length, as in `4/16`. */
  readonly size: string;
  readonly identity: number;
}

type Content<T> = Pick<StoredValues<T>, 'decode'>;

/** Texts that are kept once: of namespaces and service accounts, there are few. */
const MOST_TEXTS = 10_000;

/** The identities of one other cluster, and which of them its addresses have. */
export class PeerIdentities {
  readonly identities: WatchStore<RemoteIdentity>;
  readonly ips: WatchStore<PeerRange>;
  readonly identityContent: Content<RemoteIdentity> = { decode: decodeIdentity };
  readonly ipContent: Content<PeerRange>;
  /** By identity. */
  #labels = new Map<number, Readonly<Record<string, string>>>();
  #ranges = new Map<string, PeerRange>();
  /** How many ranges have a size. */
  #sizes = new Map<string, number>();
  readonly #texts = new Map<string, string>();

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
    this.ips = new WatchStore<PeerRange>({
      clock,
      replaced: (values) => {
        [this.#ranges, this.#sizes] = [new Map(), new Map()];
        for (const value of values.values()) this.#add(value);
      },
      changed: (now, before) => {
        if (before !== undefined) this.#remove(before);
        if (now !== undefined) this.#add(now);
      },
    });
    this.ipContent = {
      decode: (suffix, bytes, cluster) => {
        const decoded = decodeIp(suffix, bytes, cluster);
        if ('wrong' in decoded) return decoded;
        const { range, identity, namespace, pod, serviceAccount } = decoded.value;
        return {
          value: {
            range: canonicalCidr(`${range.address}/${range.length}`),
            size: this.#once(`${isIP(range.address)}/${range.length}`),
            ...{ identity, pod, namespace: this.#once(namespace), serviceAccount: this.#once(serviceAccount) },
          },
        };
      },
    };
  }

  /** The most specific that is known of the address. */
  identityOf(address: string): PeerIdentity | undefined {
    const family = isIP(address);
    if (family === 0) return undefined;
    const longest = family === 4 ? 32 : 128;
    for (let length = longest; length >= 0; length--) {
      if (!this.#sizes.has(`${family}/${length}`)) continue;
      const found = this.#ranges.get(blockOf(address, longest - length) ?? '');
      if (found !== undefined) return this.#identityOf(found);
    }
    return undefined;
  }

  #identityOf({ identity: id, namespace, pod, serviceAccount }: PeerRange): PeerIdentity {
    const labels = this.#labels.get(id);
    return { id, ...(labels && { labels }), namespace, pod, serviceAccount };
  }

  #add(value: PeerRange): void {
    const { range, size } = value;
    if (this.#ranges.has(range)) return;
    this.#ranges.set(range, value);
    this.#sizes.set(size, (this.#sizes.get(size) ?? 0) + 1);
  }

  #remove(value: PeerRange): void {
    const { range, size } = value;
    if (this.#ranges.get(range) !== value) return;
    this.#ranges.delete(range);
    const left = (this.#sizes.get(size) ?? 0) - 1;
    if (left > 0) this.#sizes.set(size, left);
    else this.#sizes.delete(size);
  }

  #once(text: string): string {
    const known = this.#texts.get(text);
    if (known !== undefined) return known;
    if (this.#texts.size >= MOST_TEXTS) this.#texts.clear();
    this.#texts.set(text, text);
    return text;
  }
}
