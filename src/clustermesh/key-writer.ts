import { setImmediate } from 'node:timers/promises';
import { Backoff } from '../base/backoff.ts';
import { type Clock, sleep } from '../base/clock.ts';
import { contentHash } from '../model/hash.ts';

/** What is to be in a store. */
export interface WantedKeys {
  /** All of them. */
  keys(): Iterable<string>;
  /** Undefined: there is to be no such key. Throws if the key cannot have a value, and says why. */
  valueOf(key: string): string | Uint8Array | undefined;
  /** It says that the others are there. */
  isLast(key: string): boolean;
  /** Prefixes whose keys are nobody else's, so that those which are not wanted go. */
  readonly prefixes: readonly string[];
}

/** A store in which keys end when nobody keeps their leases alive. */
export interface LeasedStore {
  /** Rejects if it cannot be reached now. */
  connect(options: { readonly signal: AbortSignal }): Promise<LeasedConnection>;
}

export interface LeasedConnection {
  /** For people. */
  readonly endpoint: string;
  /** Resolves once it cannot be used any more. */
  readonly ended: Promise<Error>;
  /** Why it cannot be used any more. */
  readonly failure: Error | undefined;
  /**
   * Resolves also if the key's lease turns out to be gone, which is told as for all keys of a lease. If it rejects and
   * the connection has not ended, the store does not take this key.
   */
  put(key: string, value: string | Uint8Array): Promise<void>;
  delete(key: string): Promise<void>;
  list(prefix: string): Promise<readonly StoredKey[]>;
  /** Resolves once nothing of it runs any more. */
  close(): Promise<void>;
}

export interface StoredKey {
  readonly key: string;
  /** See `contentHash`. */
  readonly valueHash: string;
  /** It has the lease that we write it with. */
  readonly isOurs: boolean;
}

export interface KeyWriterOptions {
  readonly wanted: WantedKeys;
  /** @param onLost called with keys whose lease is gone. */
  readonly open: (onLost: (keys: readonly string[]) => void) => LeasedStore;
  /** The answer of {@link KeyWriter.status} may have changed in more than numbers. */
  readonly onState: () => void;
  readonly clock: Clock;
  readonly random: () => number;
}

export interface WriterStatus {
  /** Absent: not connected. */
  readonly endpoint?: string;
  /** Everything that was wanted was written once, or refused. */
  readonly isWhole: boolean;
  /** Keys that are there. */
  readonly keys: number;
  /** Keys to write. */
  readonly pending: number;
  /** Keys that the store does not take, and why. */
  readonly refused: ReadonlyMap<string, string>;
  /** Why what others have made of the keys is not known: what is stale stays until its lease ends. */
  readonly unlisted?: Error;
  /** Why there is no connection. */
  readonly failure?: { readonly error: Error; readonly since: Date };
}

/** Writes at a time. */
const AT_ONCE = 8;
/** Keys that a worker looks at before it lets others run. */
const SLICE = 50;
/** Milliseconds between two connections, and between two writes of a key that is refused. */
const FIRST_DELAY = 1_000;
const LONGEST_DELAY = 60_000;
/** Milliseconds after which a connection has worked. */
const WORKS_AFTER = 30_000;
/** Milliseconds between two looks at what others have made of our keys. Cilium writes its own again as often. */
const LOOK_EVERY = 300_000;
/** Refused keys that are news, and are to be named: of a full etcd, all of them are refused. Further ones are a number. */
export const MOST_NAMED = 3;
/** Of a key whose content is not known. */
const UNKNOWN = '';

/**
 * Keeps a store as it is wanted, by key: a queue of keys, the newest value of each, and nothing that is there already. What
 * says that all is there is written after the rest; a key that the store refuses holds nothing up.
 */
export class KeyWriter {
  readonly #options: KeyWriterOptions;
  readonly #store: LeasedStore;
  readonly #due = new Set<string>();
  readonly #lastDue = new Set<string>();
  readonly #writing = new Set<string>();
  /** What is in the store, as a hash. */
  readonly #stored = new Map<string, string>();
  readonly #refused = new Map<string, Refusal>();
  /** Workers without work. */
  #idle: (() => void)[] = [];
  #connection: LeasedConnection | undefined;
  #failure: WriterStatus['failure'];
  #isWhole = false;
  #unlisted: Error | undefined;

  constructor(options: KeyWriterOptions) {
    this.#options = options;
    this.#store = options.open((keys) => this.#lost(keys));
  }

  /** Other values may be wanted. */
  changed(keys: Iterable<string>): void {
    for (const key of keys) (this.#options.wanted.isLast(key) ? this.#lastDue : this.#due).add(key);
    for (const wake of this.#idle.splice(0)) wake();
  }

  /** Writes until the signal fires. What was written stays for as long as its lease. Never rejects. */
  async run({ signal }: { readonly signal: AbortSignal }): Promise<void> {
    const { clock, random, onState } = this.#options;
    const backoff = new Backoff({ base: FIRST_DELAY, cap: LONGEST_DELAY, random });
    while (!signal.aborted) {
      const began = clock.now();
      let failure: Error;
      try {
        const connection = await this.#store.connect({ signal });
        this.#connection = connection;
        this.#failure = undefined;
        onState();
        await this.#work(connection, signal);
        failure = connection.failure ?? new Error('closed');
      } catch (error) {
        failure = errorOf(error);
      }
      this.#connection = undefined;
      if (signal.aborted) break;
      this.#failure = { error: failure, since: this.#failure?.since ?? clock.date() };
      onState();
      if (clock.now() - began >= WORKS_AFTER) backoff.reset();
      await sleep(clock, backoff.next(), { signal });
    }
    for (const { cancel } of this.#refused.values()) cancel();
  }

  status(): WriterStatus {
    return {
      ...(this.#connection && { endpoint: this.#connection.endpoint }),
      isWhole: this.#isWhole,
      keys: [...this.#stored.values()].filter((hash) => hash !== UNKNOWN).length,
      pending: this.#due.size + this.#lastDue.size + this.#writing.size,
      refused: new Map(Array.from(this.#refused, ([key, { reason }]) => [key, reason])),
      ...(this.#unlisted && { unlisted: this.#unlisted }),
      ...(this.#failure && { failure: this.#failure }),
    };
  }

  /** Resolves once the connection has ended, or the signal has fired, and nothing is written any more. */
  async #work(connection: LeasedConnection, signal: AbortSignal): Promise<void> {
    const ending = new AbortController();
    const end = (): void => {
      ending.abort();
      for (const wake of this.#idle.splice(0)) wake();
    };
    void connection.ended.then(end);
    signal.addEventListener('abort', end, { once: true });
    if (signal.aborted) end();
    await this.#look(connection);
    await Promise.all([
      this.#lookAgain(connection, ending.signal),
      ...Array.from({ length: AT_ONCE }, () => this.#writeAll(connection, ending.signal)),
    ]);
    signal.removeEventListener('abort', end);
    await connection.close();
  }

  async #lookAgain(connection: LeasedConnection, signal: AbortSignal): Promise<void> {
    for (;;) {
      await sleep(this.#options.clock, LOOK_EVERY, { signal });
      if (signal.aborted) return;
      // What a look does not find out is written again.
      for (const key of this.#stored.keys()) if (!this.#isListed(key)) this.#stored.set(key, UNKNOWN);
      await this.#look(connection);
    }
  }

  /** What is there but not wanted, or not ours any more, becomes due, and so does all that is not known to be there. */
  async #look(connection: LeasedConnection): Promise<void> {
    const { wanted, onState } = this.#options;
    const before = this.#unlisted?.message;
    try {
      for (const prefix of wanted.prefixes) {
        const found = new Map((await connection.list(prefix)).map((entry) => [entry.key, entry]));
        for (const key of this.#stored.keys())
          if (key.startsWith(prefix) && !found.has(key) && !this.#writing.has(key)) this.#stored.delete(key);
        for (const [key, { valueHash, isOurs }] of found)
          if (!this.#writing.has(key)) this.#stored.set(key, isOurs ? valueHash : UNKNOWN);
      }
      this.#unlisted = undefined;
    } catch (error) {
      if (connection.failure === undefined) this.#unlisted = errorOf(error);
    }
    if (this.#unlisted?.message !== before) onState();
    this.changed(wanted.keys());
    this.changed(this.#stored.keys());
  }

  #isListed(key: string): boolean {
    return this.#options.wanted.prefixes.some((prefix) => key.startsWith(prefix));
  }

  #lost(keys: readonly string[]): void {
    for (const key of keys) if (this.#stored.has(key)) this.#stored.set(key, UNKNOWN);
    this.changed(keys);
  }

  async #writeAll(connection: LeasedConnection, signal: AbortSignal): Promise<void> {
    for (let looked = 1; !signal.aborted; looked++) {
      const key = this.#take();
      if (key === undefined) await new Promise<void>((resolve) => this.#idle.push(resolve));
      else if (!(await this.#write(key, connection, signal)) && looked % SLICE === 0) await setImmediate();
    }
  }

  #take(): string | undefined {
    for (const due of [this.#due, this.#lastDue])
      for (const key of due) {
        if (due === this.#lastDue && this.#isBusyBefore()) return undefined;
        if (this.#writing.has(key)) continue;
        due.delete(key);
        this.#writing.add(key);
        return key;
      }
    return undefined;
  }

  /** Something that comes before the last keys is not written yet. */
  #isBusyBefore(): boolean {
    return this.#due.size > 0 || [...this.#writing].some((key) => !this.#options.wanted.isLast(key));
  }

  /** Whether the store was asked. */
  async #write(key: string, connection: LeasedConnection, signal: AbortSignal): Promise<boolean> {
    try {
      const value = this.#options.wanted.valueOf(key);
      const hash = value === undefined ? undefined : contentHash(value);
      if (this.#stored.get(key) === hash) {
        this.#accepted(key);
        return false;
      }
      if (value === undefined || hash === undefined) {
        await connection.delete(key);
        this.#stored.delete(key);
      } else {
        this.#stored.set(key, UNKNOWN);
        await connection.put(key, value);
        // Else it is lost again, or has changed.
        if (!this.#isDue(key)) this.#stored.set(key, hash);
      }
      this.#accepted(key);
      return true;
    } catch (error) {
      // Else it is due at the next look.
      if (connection.failure === undefined && !signal.aborted) this.#refuse(key, error);
      return true;
    } finally {
      this.#writing.delete(key);
      this.#settle(connection);
    }
  }

  #isDue(key: string): boolean {
    return this.#due.has(key) || this.#lastDue.has(key);
  }

  #accepted(key: string): void {
    this.#refused.get(key)?.cancel();
    this.#refused.delete(key);
  }

  #refuse(key: string, error: unknown): void {
    const { clock, random, onState } = this.#options;
    const former = this.#refused.get(key);
    former?.cancel();
    const backoff = former?.backoff ?? new Backoff({ base: FIRST_DELAY, cap: LONGEST_DELAY, random });
    const reason = errorOf(error).message;
    const cancel = clock.after(backoff.next(), () => this.changed([key]));
    this.#refused.set(key, { reason, backoff, cancel });
    if (former?.reason !== reason && this.#isNamed(key)) onState();
  }

  /** It is one of the first that are refused. */
  #isNamed(key: string): boolean {
    let seen = 0;
    for (const each of this.#refused.keys()) {
      if (each === key) return true;
      if (++seen === MOST_NAMED) return false;
    }
    return false;
  }

  #settle(connection: LeasedConnection): void {
    for (const wake of this.#idle.splice(0)) wake();
    const isWhole = this.#due.size === 0 && this.#lastDue.size === 0 && this.#writing.size === 0;
    if (this.#isWhole || !isWhole || connection.failure !== undefined) return;
    this.#isWhole = true;
    this.#options.onState();
  }
}

interface Refusal {
  readonly reason: string;
  readonly backoff: Backoff;
  readonly cancel: () => void;
}

function errorOf(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
