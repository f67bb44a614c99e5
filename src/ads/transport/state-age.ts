/**
 * How long one thing has lasted, checked about once a second. Before the third check this is zero: what arrived while
 * the process itself was busy is read first, and no stream ends because of it.
 */
export class StateAge {
  #what: unknown;
  #since = 0;
  #looks = 0;

  /** Milliseconds since `what` took its present value; undefined never lasts. */
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
