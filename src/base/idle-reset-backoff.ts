import { Backoff, type BackoffOptions } from './backoff.ts';
import type { Clock } from './clock.ts';

/**
 * How long to wait with what somebody else can cause as often as he likes: not at all the first time, and longer each time
 * until none came for as long as the longest delay.
 */
export class IdleResetBackoff {
  readonly #clock: Clock;
  readonly #backoff: Backoff;
  readonly #cap: number;
  /** When the last one was due, on the clock. */
  #last = -Infinity;

  constructor({ clock, ...options }: BackoffOptions & { readonly clock: Clock }) {
    this.#clock = clock;
    this.#backoff = new Backoff(options);
    this.#cap = options.cap;
  }

  /** Milliseconds. */
  next(): number {
    const now = this.#clock.now();
    const isFirst = now - this.#last >= this.#cap;
    if (isFirst) this.#backoff.reset();
    const delay = isFirst ? 0 : this.#backoff.next();
    this.#last = now + delay;
    return delay;
  }
}
