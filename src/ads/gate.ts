/**
 * Lets a bounded number through at a time and makes the others wait in order: it delays, it never refuses. Whoever was
 * let through gives the place back.
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

  /** Calls `then` as soon as there is a place. */
  take(then: () => void): void {
    if (this.#had || this.#giveUp !== undefined) return;
    const giveUp = this.#gate.wait(() => {
      this.#had = true;
      this.#giveUp = undefined;
      then();
    });
    if (!this.#had) this.#giveUp = giveUp;
  }

  leave(): void {
    this.#giveUp?.();
    this.#giveUp = undefined;
    if (!this.#had) return;
    this.#had = false;
    this.#gate.leave();
  }
}
