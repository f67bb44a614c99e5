import type { Clock } from '../../base/clock.ts';
import { TokenBucket } from '../client/token-bucket.ts';
import { Turns } from './turns.ts';

export interface DueWritesOptions {
  /** What is to be written for a key now, or undefined if there is nothing. The write must not reject. */
  readonly next: (key: string) => (() => Promise<void>) | undefined;
  /** A write for this key has ended. */
  readonly ended: (key: string) => void;
  readonly clock: Pick<Clock, 'now' | 'after'>;
  /** Writes per second in the long run; `burst`: at once. */
  readonly rate?: number | undefined;
  readonly burst?: number | undefined;
  readonly concurrency?: number | undefined;
}

/** Number of keys looked at before yielding to the event loop. */
const slice = 100;

/**
 * Writes what is due: namespaces take turns, the newest changes in each first; rate limited, one write per key at a time.
 */
export class DueWrites {
  readonly #options: DueWritesOptions;
  readonly #bucket: TokenBucket;
  readonly #due = new Turns();
  readonly #writing = new Map<string, Promise<void>>();
  #cancel: (() => void) | undefined;

  constructor(options: DueWritesOptions) {
    const { rate = 20, burst = 50, clock } = options;
    this.#options = options;
    this.#bucket = new TokenBucket({ rate, burst, now: clock.now() });
  }

  /** Due, or being written. */
  get pending(): number {
    return this.#due.size + this.#writing.size;
  }

  /** Ignored while a write for this key is in progress: `ended` is called after it. */
  add(namespace: string, key: string): void {
    this.#due.add(namespace, key);
    this.#runAfter(0);
  }

  delete(namespace: string, key: string): void {
    this.#due.delete(namespace, key);
  }

  /** Nothing is due any more. */
  clear(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#due.clear();
  }

  isBusy(key: string): boolean {
    return this.#writing.has(key);
  }

  /** Resolves once no write is in progress. */
  async idle(): Promise<void> {
    await Promise.all(this.#writing.values());
  }

  #runAfter(ms: number): void {
    if (this.#cancel !== undefined) return;
    this.#cancel = this.#options.clock.after(ms, () => {
      this.#cancel = undefined;
      this.#run();
    });
  }

  #run(): void {
    const { clock, next, ended, concurrency = 8 } = this.#options;
    for (let i = 0; this.#writing.size < concurrency; i++) {
      if (this.#due.size === 0) return;
      const wait = this.#bucket.wait(clock.now());
      if (wait > 0 || i === slice) return this.#runAfter(wait);
      const key = this.#due.take()!;
      const write = this.isBusy(key) ? undefined : next(key);
      if (write === undefined) continue;
      this.#bucket.take(clock.now());
      const writing = write().finally(() => {
        this.#writing.delete(key);
        ended(key);
        if (this.#due.size > 0) this.#runAfter(0);
      });
      this.#writing.set(key, writing);
    }
  }
}
