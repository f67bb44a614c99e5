import { Backoff } from '../base/backoff.ts';
import { type Clock, sleep } from '../base/clock.ts';
import type { EtcdConnection } from './connection.ts';
import { type EtcdError, errorOf } from './error.ts';
import { isWithin, type KeyRange } from './keys.ts';
import { list } from './list.ts';
import { DELETE, type Event, type KeyValue } from './messages.ts';
import { watch } from './watch.ts';

/** Receives keys and what was read from their values. All calls are synchronous. */
export interface ListWatchSink<T> {
  /** Reads one entry, as soon as it has arrived. */
  read(entry: KeyValue): T;
  /** Bytes that it takes besides its key and value; absent: none. */
  sizeOf?(value: T): number;
  /**
   * All existing keys, in their order: called after each complete list, never with part of one.
   * @param unread keys that exist with values that are too long to be read. They stay as they were.
   * @returns after how many milliseconds to list them again; undefined: not without need.
   */
  replace(entries: ReadonlyMap<string, T>, unread: ReadonlySet<string>): number | undefined;
  upsert(key: string, value: T): void;
  delete(key: string): void;
}

export interface ListWatchOptions<T> {
  readonly keys: KeyRange;
  readonly sink: ListWatchSink<T>;
  /** Keys that are delivered; more are counted, and not kept. */
  readonly mostKeys: number;
  /** Of the keys and values of those that are delivered, together. */
  readonly mostBytes: number;
  readonly clock: Clock;
  readonly random: () => number;
  readonly pageSize?: number;
}

export interface ListWatchStats {
  /** It was listed once. */
  readonly synced: boolean;
  /** It was listed over the connection that is there now. */
  readonly current: boolean;
  /** Why requests fail, and since when; absent while they work. */
  readonly trouble?: { readonly error: EtcdError; readonly since: Date };
  readonly keys: number;
  readonly bytes: number;
  readonly lists: number;
  readonly watches: number;
  readonly events: number;
  readonly errors: number;
  /** Keys outside the range that were asked for. They are dropped. */
  readonly strays: number;
  /** Keys whose values are too long to be read. They count as keys if they had been read before. */
  readonly unread: number;
  /** Keys, and changes of keys, that were too many. */
  readonly beyond: number;
}

/** As Cilium's clients have it. */
const PAGE_SIZE = 256;
const FIRST_DELAY = 50;
const LONGEST_DELAY = 60_000;
/** Milliseconds for which a watch must be open to count as working. */
const WORKS_AFTER = 5_000;
/** Milliseconds after which those that were too many are looked for again. */
const RECOUNT_AFTER = 300_000;

/**
 * Keeps one range of keys in sync with etcd: list, watch from there, resume where the watch ended, list again if that is
 * not possible. It can be run over one connection after the other: the first list over each tells the sink everything.
 */
export class ListWatch<T> {
  readonly #options: ListWatchOptions<T>;
  readonly #backoff: Backoff;
  /** What the sink was told: key -> bytes. */
  #known = new Map<string, number>();
  #bytes = 0;
  #unread = new Set<string>();
  #beyond = 0;
  /** When to list again if nothing else is a reason. Milliseconds of `clock.now()`. */
  #listAt = Infinity;
  #isCurrent = false;
  #isSynced = false;
  #trouble: ListWatchStats['trouble'];
  readonly #counts = { lists: 0, watches: 0, events: 0, errors: 0, strays: 0 };

  constructor(options: ListWatchOptions<T>) {
    this.#options = options;
    this.#backoff = new Backoff({ base: FIRST_DELAY, cap: LONGEST_DELAY, random: options.random });
  }

  stats(): ListWatchStats {
    return {
      ...this.#counts,
      synced: this.#isSynced,
      current: this.#isCurrent,
      ...(this.#trouble && { trouble: this.#trouble }),
      keys: this.#known.size,
      bytes: this.#bytes,
      unread: this.#unread.size,
      beyond: this.#beyond,
    };
  }

  /** Resolves when the signal fires or the connection ends. */
  async run(connection: EtcdConnection, { signal }: { readonly signal: AbortSignal }): Promise<void> {
    const { clock } = this.#options;
    this.#isCurrent = false;
    this.#backoff.reset();
    /** What was delivered is the store at this revision; undefined: it must be listed. */
    let revision: bigint | undefined;
    const isOver = (): boolean => signal.aborted || connection.failure !== undefined;
    while (!isOver()) {
      try {
        revision ??= await this.#list(connection, signal);
        revision = await this.#watch(connection, revision, signal);
      } catch (cause) {
        if (isOver()) break;
        this.#counts.errors++;
        this.#trouble = { error: errorOf(cause), since: this.#trouble?.since ?? clock.date() };
        revision = undefined;
      }
      await sleep(clock, this.#backoff.next(), { signal });
    }
    this.#isCurrent = false;
  }

  /** A sink that throws is told everything again. */
  async #list(connection: EtcdConnection, signal: AbortSignal): Promise<bigint> {
    const { keys, sink, mostKeys, mostBytes, pageSize = PAGE_SIZE } = this.#options;
    const entries = new Map<string, T>();
    const found = new Map<string, number>();
    const unread = new Set<string>();
    let [bytes, beyond, strays] = [0, 0, 0];
    const isFull = (): boolean => entries.size + unread.size + beyond >= mostKeys;
    const { revision, count } = await list({
      ...{ connection, keys, pageSize, signal },
      onEntry: (entry) => {
        // They are in order: all others are outside, too.
        if (!isWithin(entry.key, keys)) {
          strays++;
          return false;
        }
        if (isFull()) return false;
        const value = sink.read(entry);
        const size = this.#sizeOf(entry, value);
        if (bytes + size > mostBytes) beyond++;
        else {
          bytes += size;
          found.set(entry.key, size);
          entries.set(entry.key, value);
        }
        return true;
      },
      onTooLarge: (key) => {
        if (!isWithin(key, keys) || isFull()) return false;
        unread.add(key);
        return true;
      },
    });
    signal.throwIfAborted();
    for (const key of unread) {
      const size = this.#known.get(key);
      if (size === undefined) continue;
      found.set(key, size);
      bytes += size;
    }
    if (isFull() && strays === 0) beyond += Math.max(0, count - entries.size - unread.size - beyond);
    const again = sink.replace(entries, unread);
    this.#listAt = this.#options.clock.now() + Math.min(again ?? Infinity, beyond > 0 ? RECOUNT_AFTER : Infinity);
    [this.#known, this.#bytes, this.#unread, this.#beyond] = [found, bytes, unread, beyond];
    this.#counts.lists++;
    this.#counts.strays += strays;
    this.#isCurrent = this.#isSynced = true;
    return revision;
  }

  /** What to go on from; undefined: it must be listed. */
  async #watch(connection: EtcdConnection, since: bigint, signal: AbortSignal): Promise<bigint | undefined> {
    const { keys, clock } = this.#options;
    let revision = since;
    this.#counts.watches++;
    const timers: (() => void)[] = [];
    const end = new AbortController();
    const abort = (): void => end.abort();
    signal.addEventListener('abort', abort, { once: true });
    if (this.#listAt < Infinity) timers.push(clock.after(Math.max(0, this.#listAt - clock.now()), abort));
    try {
      await watch({
        ...{ connection, keys, clock, signal: end.signal },
        from: since + 1n,
        onOpen: () => {
          this.#trouble = undefined;
          timers.push(clock.after(WORKS_AFTER, () => this.#backoff.reset()));
        },
        onEvents: (events, isWhole) => {
          for (const event of events) this.#apply(event);
          const last = events.at(-1)?.kv?.modRevision ?? 0n;
          if (isWhole && last > revision) revision = last;
        },
      });
      return revision;
    } catch (error) {
      if (end.signal.aborted && !signal.aborted) return undefined;
      throw error;
    } finally {
      timers.forEach((cancel) => cancel());
      signal.removeEventListener('abort', abort);
    }
  }

  #apply({ type, kv }: Event): void {
    const { keys, sink, mostKeys, mostBytes } = this.#options;
    this.#counts.events++;
    if (kv === undefined || !isWithin(kv.key, keys)) {
      this.#counts.strays++;
      return;
    }
    this.#unread.delete(kv.key);
    const before = this.#known.get(kv.key);
    if (type === DELETE) {
      // The sink may have it from a former connection.
      sink.delete(kv.key);
      this.#known.delete(kv.key);
      this.#bytes -= before ?? 0;
      return;
    }
    const value = sink.read(kv);
    const size = this.#sizeOf(kv, value);
    const bytes = this.#bytes - (before ?? 0) + size;
    if (bytes > mostBytes || (before === undefined && this.#known.size >= mostKeys)) {
      this.#beyond++;
      return;
    }
    sink.upsert(kv.key, value);
    this.#known.set(kv.key, size);
    this.#bytes = bytes;
  }

  #sizeOf({ key, value }: KeyValue, read: T): number {
    return key.length + value.length + (this.#options.sink.sizeOf?.(read) ?? 0);
  }
}
