/** Milliseconds for which one line about an address is enough. */
const QUIET = 60_000;
const MOST_ADDRESSES = 10_000;

/** Counts callers that were refused, and says so, once per address and minute. */
export class Refusals {
  readonly #counts = new Map<string, number>();
  /** When they were last named; the oldest first. */
  readonly #named = new Map<string, number>();
  readonly #say: (reason: string, address: string) => void;
  readonly #now: () => number;

  constructor(say: (reason: string, address: string) => void, now: () => number) {
    this.#say = say;
    this.#now = now;
  }

  /** @param reason one of a few words. */
  add(reason: string, address: string): void {
    this.#counts.set(reason, (this.#counts.get(reason) ?? 0) + 1);
    const now = this.#now();
    const named = this.#named.get(address);
    if (named !== undefined && now - named < QUIET) return;
    this.#named.delete(address);
    this.#named.set(address, now);
    for (const oldest of this.#named.keys()) {
      if (this.#named.size <= MOST_ADDRESSES) break;
      this.#named.delete(oldest);
    }
    this.#say(reason, address);
  }

  /** By reason. */
  get counts(): ReadonlyMap<string, number> {
    return this.#counts;
  }
}
