/**
 * Lets a bounded number through at a time and makes the others wait in order: it delays, it never refuses. Whoever was
 * let through gives the place back, also after an error: {@link Place} sees to it.
 */
export class Gate {
  readonly #places: number;
  #taken = 0;
  readonly #queue = new Set<() => void>();

  constructor(places: number) {
    this.#places = places;
  }

  /** Calls `enter` when there is a place, at once if there is one now. Returns how to give up waiting. */
  wait(enter: () => void): () => void {
    if (this.#taken < this.#places) {
      this.#taken++;
      enter();
      return () => {};
    }
    const waiting = (): void => enter();
    this.#queue.add(waiting);
    return () => this.#queue.delete(waiting);
  }

  /** Gives a place back. */
  leave(): void {
    for (const next of this.#queue) {
      this.#queue.delete(next);
      next();
      return;
    }
    this.#taken--;
  }

  get waiting(): number {
    return this.#queue.size;
  }
}

/** A place of a {@link Gate}: waited for, had, or neither. */
export class Place {
  readonly #gate: Gate;
  #had = false;
  #giveUp: (() => void) | undefined;

  constructor(gate: Gate) {
    this.#gate = gate;
  }

  get had(): boolean {
    return this.#had;
  }

  /**
   * Calls `then` as soon as there is a place. If it throws, the place is given back, and the error goes to whoever made
   * room: streams contain their own errors in `then`.
   */
  take(then: () => void): void {
    if (this.#had || this.#giveUp !== undefined) return;
    let waiting = true;
    const giveUp = this.#gate.wait(() => {
      waiting = false;
      this.#had = true;
      this.#giveUp = undefined;
      try {
        then();
      } catch (error) {
        this.leave();
        throw error;
      }
    });
    if (waiting) this.#giveUp = giveUp;
  }

  leave(): void {
    this.#giveUp?.();
    this.#giveUp = undefined;
    if (!this.#had) return;
    this.#had = false;
    this.#gate.leave();
  }
}
