const MAX_REPEAT_MS = 300_000;

/** When to check a lasting condition: at growing intervals. */
export class Intervals {
  readonly #first: number;
  #ms: number;
  #at = 0;
  /** How many times it has been due since it began. */
  count = 0;

  constructor(ms: number) {
    this.#first = this.#ms = ms;
  }

  /** Whether enough time has passed since it began, and since the last time. */
  isDue(since: number, now: number): boolean {
    if (now - Math.max(since, this.#at) < this.#ms) return false;
    this.#at = now;
    this.#ms = Math.min(this.#ms * 2, MAX_REPEAT_MS);
    this.count++;
    return true;
  }

  restart(): void {
    this.#ms = this.#first;
    this.#at = this.count = 0;
  }
}
