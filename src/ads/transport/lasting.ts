/**
 * For how long one thing has gone on, looked at about once a second. Nothing is said before the third look: what
 * arrived while the process itself was busy is read first, and nobody's stream ends for it.
 */
export class Lasting {
  #what: unknown;
  #since = 0;
  #looks = 0;

  /** Milliseconds since `what` became what it is now; undefined never lasts. */
  of(what: unknown, now: number): number {
    if (what !== this.#what) {
      this.#what = what;
      this.#since = now;
      this.#looks = 0;
    }
    this.#looks++;
    return what === undefined || this.#looks < 3 ? 0 : now - this.#since;
  }
}
