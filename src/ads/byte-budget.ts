/**
 * Bytes that may be kept at one time of all messages that are being received, and how those who find no room wait for
 * it. It delays, it never refuses. Clients of one address are let in in order; addresses take turns, so that one that
 * sends much does not keep the others waiting behind all of it.
 */
export class ByteBudget {
  readonly #total: number;
  #taken = 0;
  /** By address, the next one first. */
  readonly #queues = new Map<string, Set<Request>>();
  #waiting = 0;

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
  wait(address: string, bytes: number, enter: () => void): () => void {
    const request = { bytes, enter };
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
  leave(bytes: number): void {
    this.#taken -= bytes;
    this.#serve();
  }

  /** Whoever is next waits until there is room for all of its message: small ones do not overtake it for ever. */
  #serve(): void {
    for (const [address, queue] of this.#queues) {
      const [next] = queue;
      // What is larger than the whole budget is received alone.
      if (next === undefined || (this.#taken > 0 && this.#taken + next.bytes > this.#total)) return;
      queue.delete(next);
      this.#waiting--;
      this.#queues.delete(address);
      if (queue.size > 0) this.#queues.set(address, queue);
      this.#taken += next.bytes;
      next.enter();
    }
  }
}

interface Request {
  readonly bytes: number;
  readonly enter: () => void;
}

/** Room of one stream in a {@link ByteBudget}: waited for, had, or neither. */
export class Room {
  readonly #budget: ByteBudget;
  readonly #address: string;
  #bytes = 0;
  #giveUp: (() => void) | undefined;

  constructor(budget: ByteBudget, address: string) {
    this.#budget = budget;
    this.#address = address;
  }

  get had(): boolean {
    return this.#bytes > 0;
  }

  get waiting(): boolean {
    return this.#giveUp !== undefined;
  }

  /** Calls `then` as soon as there is room for so many bytes. */
  take(bytes: number, then: () => void): void {
    if (this.had || this.waiting) return;
    let entered = false;
    const giveUp = this.#budget.wait(this.#address, bytes, () => {
      entered = true;
      this.#bytes = bytes;
      this.#giveUp = undefined;
      then();
    });
    if (!entered) this.#giveUp = giveUp;
  }

  leave(): void {
    this.#giveUp?.();
    this.#giveUp = undefined;
    const bytes = this.#bytes;
    this.#bytes = 0;
    if (bytes > 0) this.#budget.leave(bytes);
  }
}
