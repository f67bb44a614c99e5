import type { Clock } from '../base/clock.ts';
import { Doubt } from '../base/doubt.ts';
import { printable } from '../etcd/error.ts';
import type { ListWatchSink } from '../etcd/list-watch.ts';
import type { KeyValue } from '../etcd/messages.ts';
import type { Decoded } from './member.ts';
import type { MeshCluster } from './names.ts';

export interface WatchStoreOptions<T> {
  readonly clock: Clock;
  /** A list that lacks most of what is known must be confirmed by another one. */
  readonly doubtsLists?: true;
  /** Everything that there is, by suffix. */
  readonly replaced: (values: ReadonlyMap<string, T>) => void;
  /** `undefined`: there was, or is, none. */
  readonly changed: (now: T | undefined, before: T | undefined) => void;
}

/** Where values are stored, and how they are read. */
export interface StoredValues<T> {
  readonly prefix: string;
  readonly cluster: MeshCluster;
  /** `suffix`: what comes after the prefix in the key. */
  decode(suffix: string, bytes: Uint8Array, cluster: MeshCluster): Decoded<T>;
  /** Bytes that a value takes besides those in etcd. */
  sizeOf?(value: T): number;
}

export interface StoreStats {
  /** What there is was read whole, once since it was drained. */
  readonly synced: boolean;
  readonly entries: number;
  /** How often a value was skipped that could not be used. */
  readonly skipped: number;
  /** What is wrong with some of the values that are there: the first few. */
  readonly problems: readonly { readonly key: string; readonly problem: string }[];
  /** Entries that the last list lacks, and that are kept until another one agrees. */
  readonly doubted: number;
}

/** Of one store, that are named. */
const MOST_PROBLEMS = 10;

/**
 * What one prefix of another cluster's etcd holds. It outlives connections: what is known is dropped when a list that is
 * complete lacks it, not before. A value that cannot be used is skipped, and what the key had before stays.
 */
export class WatchStore<T> {
  readonly #options: WatchStoreOptions<T>;
  #values = new Map<string, T>();
  readonly #whole = Promise.withResolvers<void>();
  readonly #problems = new Map<string, string>();
  #doubt: Doubt;
  #doubtedSince: Date;
  /** What the values were read from. */
  #prefix = '';
  #skipped = 0;
  #synced = false;

  constructor(options: WatchStoreOptions<T>) {
    this.#options = options;
    this.#doubt = this.#newDoubt();
    this.#doubtedSince = options.clock.date();
  }

  get values(): ReadonlyMap<string, T> {
    return this.#values;
  }

  /** Since when the last list is not believed. */
  get doubtedSince(): Date | undefined {
    return this.#doubt.kept === 0 ? undefined : this.#doubtedSince;
  }

  /** Resolves when what there is was read whole, for the first time. */
  get whenSynced(): Promise<void> {
    return this.#whole.promise;
  }

  stats(): StoreStats {
    return {
      synced: this.#synced,
      entries: this.#values.size,
      skipped: this.#skipped,
      problems: Array.from(this.#problems, ([suffix, problem]) => ({ key: printable(this.#prefix + suffix), problem })),
      doubted: this.#doubt.kept,
    };
  }

  /** Takes what is under the prefix. */
  reading({ prefix, cluster, decode, sizeOf }: StoredValues<T>): ListWatchSink<Decoded<T>> {
    const suffixOf = (key: string): string => key.slice(prefix.length);
    return {
      read: ({ key, value }: KeyValue) => decode(suffixOf(key), value, cluster),
      ...(sizeOf && { sizeOf: (read: Decoded<T>) => ('value' in read ? sizeOf(read.value) : 0) }),
      replace: (entries, unread) => this.#replace(prefix, suffixOf, entries, unread),
      upsert: (key, read) => this.#upsert(suffixOf(key), read),
      delete: (key) => this.#delete(suffixOf(key)),
    };
  }

  /** Everything is gone, at once. */
  drain(): void {
    this.#values = new Map();
    this.#synced = false;
    this.#problems.clear();
    this.#doubt = this.#newDoubt();
    this.#options.replaced(this.#values);
  }

  #replace(
    prefix: string,
    suffixOf: (key: string) => string,
    entries: ReadonlyMap<string, Decoded<T>>,
    unread: ReadonlySet<string>,
  ): number | undefined {
    // Of another prefix, values with the same suffix are something else.
    if (prefix !== this.#prefix) {
      this.#values = new Map();
      this.#doubt = this.#newDoubt();
    }
    this.#prefix = prefix;
    this.#problems.clear();
    const found = new Map<string, T>();
    const keep = (suffix: string, problem: string): void => {
      this.#skip(suffix, problem);
      const before = this.#values.get(suffix);
      if (before !== undefined) found.set(suffix, before);
    };
    for (const [key, read] of entries)
      if ('value' in read) found.set(suffixOf(key), read.value);
      else keep(suffixOf(key), read.wrong);
    for (const key of unread) keep(suffixOf(key), 'is too long to be read');
    this.#values = this.#doubt.complete(found, this.#values);
    this.#synced = true;
    this.#options.replaced(this.#values);
    this.#whole.resolve();
    const { until } = this.#doubt;
    return until === undefined ? undefined : Math.max(0, until - this.#options.clock.now());
  }

  #upsert(suffix: string, read: Decoded<T>): void {
    if ('wrong' in read) return this.#skip(suffix, read.wrong);
    this.#problems.delete(nameOf(suffix));
    const before = this.#values.get(suffix);
    this.#values.set(suffix, read.value);
    this.#options.changed(read.value, before);
  }

  #delete(suffix: string): void {
    this.#problems.delete(nameOf(suffix));
    const before = this.#values.get(suffix);
    if (!this.#values.delete(suffix)) return;
    this.#options.changed(undefined, before);
  }

  #newDoubt(): Doubt {
    const { clock, doubtsLists } = this.#options;
    const onDoubt = (): void => void (this.#doubtedSince = clock.date());
    return new Doubt({ clock, ...(doubtsLists && { doubtsLists }), onDoubt });
  }

  #skip(suffix: string, problem: string): void {
    this.#skipped++;
    const name = nameOf(suffix);
    if (this.#problems.size < MOST_PROBLEMS || this.#problems.has(name)) this.#problems.set(name, problem);
  }
}

/** A key can be as long as a message. */
function nameOf(suffix: string): string {
  return suffix.slice(0, 500);
}
