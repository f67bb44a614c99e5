/** How long requests in one round of the event loop are handled at once. */
const REQUESTS_MS = 4;

/** A round of the event loop, as far as it is spent on what clients ask for. */
export class Round {
  readonly #now: () => number;
  /** When requests must start to wait for turns; undefined before the first request. */
  #ends: number | undefined;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** False: handling what arrives in this round has taken long enough. */
  hasTime(): boolean {
    const now = this.#now();
    if (this.#ends === undefined) {
      this.#ends = now + REQUESTS_MS;
      setImmediate(() => (this.#ends = undefined));
    }
    return now < this.#ends;
  }
}
