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
