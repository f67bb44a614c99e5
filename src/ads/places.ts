/**
 * Places for a bounded number at a time, or for so many bytes, and a queue of those who find none: it delays, it never
 * refuses. Clients of one address are let in in order, and have half of the room at most: others find some at once.
 * Addresses take turns, so that none waits behind all that another one asks for.
 */
export class Places {
  readonly #total: number;
  #taken = 0;
  readonly #ofAddress = new Map<string, number>();
  /** By address, the next one first. */
  readonly #queues = new Map<string, Set<Request>>();
  #waiting = 0;
  #serving = false;

  constructor(total: number) {
    this.#total = total;
  }

  get taken(): number {
    return this.#taken;
  }

  /** How many wait. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Calls `enter` when there is room, at once if nobody waits and there is some now. Returns how to give up waiting. */
  wait(address: string, size: number, enter: () => void): () => void {
    const request = { size, enter };
    const queue = this.#queues.get(address) ?? new Set();
    this.#queues.set(address, queue.add(request));
    this.#waiting++;
    this.#serve();
    return () => {
      if (!queue.delete(request)) return;
      this.#waiting--;
      if (queue.size === 0 && this.#queues.get(address) === queue) this.#queues.delete(address);
      this.#serve();
    };
  }

  /** Gives room back. */
  leave(address: string, size: number): void {
    this.#taken -= size;
    const left = this.#ofAddress.get(address)! - size;
    if (left > 0) this.#ofAddress.set(address, left);
    else this.#ofAddress.delete(address);
    this.#serve();
  }

  /** Whoever is let in may leave at once: what that makes room for is served by the same loop. */
  #serve(): void {
    if (this.#serving) return;
    this.#serving = true;
    const errors: unknown[] = [];
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      try {
        next.enter();
      } catch (error) {
        errors.push(error);
      }
    }
    this.#serving = false;
    if (errors.length > 0) throw errors[0];
  }

  /** Whoever is next waits until there is room for all of it, and small ones behind do not overtake it. */
  #next(): Request | undefined {
    for (const [address, queue] of this.#queues) {
      const [next] = queue;
      if (next === undefined) return undefined;
      const ofAddress = this.#ofAddress.get(address) ?? 0;
      // What is larger than everything is let in alone. No more than two addresses can have their half.
      if (ofAddress > 0 && ofAddress + next.size > this.#total / 2) continue;
      if (this.#taken > 0 && this.#taken + next.size > this.#total) return undefined;
      queue.delete(next);
      this.#waiting--;
      this.#queues.delete(address);
      if (queue.size > 0) this.#queues.set(address, queue);
      this.#taken += next.size;
      this.#ofAddress.set(address, ofAddress + next.size);
      return next;
    }
    return undefined;
  }
}

interface Request {
  readonly size: number;
  readonly enter: () => void;
}

/** The place of one stream among {@link Places}: waited for, had, or neither. */
export class Place {
  readonly #places: Places;
  readonly #address: string;
  #size = 0;
  #giveUp: (() => void) | undefined;

  constructor(places: Places, address: string) {
    this.#places = places;
    this.#address = address;
  }

  get had(): boolean {
    return this.#size > 0;
  }

  get waiting(): boolean {
    return this.#giveUp !== undefined;
  }

  /**
   * Calls `then` as soon as there is room. If it throws, the place is given back, and the error goes to whoever made
   * room: streams contain their own errors in `then`.
   */
  take(then: () => void, size = 1): void {
    if (this.had || this.waiting) return;
    let entered = false;
    const giveUp = this.#places.wait(this.#address, size, () => {
      entered = true;
      this.#size = size;
      this.#giveUp = undefined;
      try {
        then();
      } catch (error) {
        this.leave();
        throw error;
      }
    });
    if (!entered) this.#giveUp = giveUp;
  }

  leave(): void {
    this.#giveUp?.();
    this.#giveUp = undefined;
    const size = this.#size;
    this.#size = 0;
    if (size > 0) this.#places.leave(this.#address, size);
  }
}
