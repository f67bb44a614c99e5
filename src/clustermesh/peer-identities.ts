import { isIP } from 'node:net';
import type { Clock } from '../base/clock.ts';
import { canonicalAddress } from '../model/address.ts';
import { blockOf, canonicalCidr } from '../model/cidr.ts';
import type { ListWatchSink } from '../etcd/list-watch.ts';
import { decodeIdentity, type RemoteIdentity } from './identity-value.ts';
import { decodeIp } from './ip-value.ts';
import type { Decoded } from './member.ts';
import type { MeshCluster } from './names.ts';
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
  /** An address of its node; empty if that is not known. */
  readonly host: string;
}

/** What is kept of an address or a range. There can be many. */
interface PeerRange extends Pick<PeerIdentity, 'namespace' | 'pod' | 'serviceAccount' | 'host'> {
  /** Equal for equal ranges, as in `10.1.0.0/16`. An address is a range by itself, and has no length here. */
  readonly range: string;
  /** Family and length, as in `4/16`. */
  readonly size: string;
  readonly identity: number;
}

/** Where the keys of a kind are. */
type StoredAt = Pick<StoredValues<unknown>, 'prefix' | 'cluster'>;

export interface PeerIdentitiesOptions {
  readonly clock: Clock;
  /** What is known of an address, or of a range of several, has changed. */
  readonly onRange: (range: string) => void;
  /** The labels of an identity have changed. */
  readonly onIdentity: (id: number) => void;
  /** Anything may have changed. */
  readonly onReplaced: () => void;
}

/**
 * Texts that are kept once, and how long: of namespaces, service accounts and nodes, there are few, and they are short.
 * What an etcd says may be neither.
 */
const MOST_TEXTS = 10_000;
const LONGEST_TEXT = 256;

/** The identities of one other cluster, and which of them its addresses have. */
export class PeerIdentities {
  readonly #identities: WatchStore<RemoteIdentity>;
  readonly #ips: WatchStore<PeerRange>;
  /** By identity. */
  #labels = new Map<number, Readonly<Record<string, string>>>();
  #ranges = new Map<string, PeerRange>();
  /** How many ranges have a size. */
  #sizes = new Map<string, number>();
  readonly #texts = new Map<string, string>();

  constructor({ clock, onRange, onIdentity, onReplaced }: PeerIdentitiesOptions) {
    this.#identities = new WatchStore<RemoteIdentity>({
      clock,
      doubtsLists: true,
      replaced: (values) => {
        this.#labels = new Map(Array.from(values.values(), ({ id, labels }) => [id, labels]));
        onReplaced();
      },
      changed: (now, before) => {
        if (before !== undefined) this.#labels.delete(before.id);
        if (now !== undefined) this.#labels.set(now.id, now.labels);
        const id = (now ?? before)?.id;
        if (id !== undefined) onIdentity(id);
      },
    });
    this.#ips = new WatchStore<PeerRange>({
      clock,
      doubtsLists: true,
      replaced: (values) => {
        [this.#ranges, this.#sizes] = [new Map(), new Map()];
        for (const value of values.values()) this.#add(value);
        onReplaced();
      },
      changed: (now, before) => {
        if (before !== undefined) this.#remove(before);
        if (now !== undefined) this.#add(now);
        for (const range of new Set([before?.range, now?.range])) if (range !== undefined) onRange(range);
      },
    });
  }

  /** Takes the identities that are stored there. */
  readIdentities(at: StoredAt): ListWatchSink<Decoded<RemoteIdentity>> {
    return this.#identities.reading({ ...at, decode: decodeIdentity });
  }

  /** Takes the addresses that are stored there. */
  readIps(at: StoredAt): ListWatchSink<Decoded<PeerRange>> {
    return this.#ips.reading({ ...at, decode: (...stored) => this.#decodeIp(...stored) });
  }

  stores(): readonly [readonly ['identities', WatchStore<RemoteIdentity>], readonly ['ip', WatchStore<PeerRange>]] {
    return [
      ['identities', this.#identities],
      ['ip', this.#ips],
    ];
  }

  /** The most specific that is known of the address. */
  identityOf(address: string): PeerIdentity | undefined {
    const family = isIP(address);
    if (family === 0) return undefined;
    const found = this.identityAt(address);
    if (found !== undefined) return found;
    const longest = longestOf(family);
    for (let length = longest - 1; length >= 0; length--) {
      if (!this.#sizes.has(`${family}/${length}`)) continue;
      const found = this.#ranges.get(blockOf(address, longest - length) ?? '');
      if (found !== undefined) return this.#identityOf(found);
    }
    return undefined;
  }

  /** What is known of this address alone, and not of a range of several. */
  identityAt(address: string): PeerIdentity | undefined {
    const found = this.#ranges.get(canonicalAddress(address));
    return found && this.#identityOf(found);
  }

  #identityOf({ identity: id, namespace, pod, serviceAccount: said, host }: PeerRange): PeerIdentity {
    const labels = this.#labels.get(id);
    // Before 1.20, Cilium says the account in the identity alone.
    const serviceAccount = said || (labels?.[ACCOUNT] ?? '');
    return { id, ...(labels && { labels }), namespace, pod, serviceAccount, host };
  }

  #decodeIp(suffix: string, bytes: Uint8Array, cluster: MeshCluster): Decoded<PeerRange> {
    const decoded = decodeIp(suffix, bytes, cluster);
    if ('wrong' in decoded) return decoded;
    const { range, identity, namespace, pod, serviceAccount, host } = decoded.value;
    const family = isIP(range.address);
    const isOne = range.length === longestOf(family);
    return {
      value: {
        range: isOne ? range.address : canonicalCidr(`${range.address}/${range.length}`),
        size: this.#once(`${family}/${range.length}`),
        ...{ identity, pod, namespace: this.#once(namespace), serviceAccount: this.#once(serviceAccount) },
        host: this.#once(host),
      },
    };
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
    if (known !== undefined || text.length > LONGEST_TEXT) return known ?? text;
    if (this.#texts.size >= MOST_TEXTS) this.#texts.clear();
    this.#texts.set(text, text);
    return text;
  }
}

const ACCOUNT = 'k8s:io.cilium.k8s.policy.serviceaccount';

function longestOf(family: number): number {
  return family === 4 ? 32 : 128;
}
