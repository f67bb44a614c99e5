/**
 * Bounds how many holders, or how many bytes, are admitted at once. Others wait, up to a limit. The waiters of one
 * client (an address, or a namespace) are admitted in order, and hold at most half of the capacity; a single request for
 * more than that is admitted if its client holds nothing. Clients take turns. Clients that held capacity for too long
 * while others waited are served last for a while, and together hold at most half of it: the other half is free when
 * someone else comes.
 *
 * When one too many waits, one is refused: the newest of the client that has most waiting. So a client that has less than
 * its share of the places is never refused for what others want, unless there are more clients than places.
 */
export class FairSemaphore {
  readonly #total: number;
  readonly #mostWaiting: number;
  #taken = 0;
  readonly #ofClient = new Map<string, number>();
  /** By client, the next one first. */
  readonly #queues: Queues = new Map();
  readonly #queuesBehind: Queues = new Map();
  /** No more than hold capacity, or held it since the last {@link forgive}. */
  readonly #behind = new Set<string>();
  #waiting = 0;
  #serving = false;

  constructor(total: number, mostWaiting = Infinity) {
    this.#total = total;
    this.#mostWaiting = mostWaiting;
  }

  get taken(): number {
    return this.#taken;
  }

  /** How many are waiting. */
  get waiting(): number {
    return this.#waiting;
  }

  /**
   * Calls `enter` when there is room: at once if there is room and nobody waits; or else `refuse`, if it waits and may no
   * longer. Returns how to give up waiting.
   */
  wait(client: string, size: number, enter: () => void, refuse: () => void = () => undefined): () => void {
    const request = { size, enter, refuse };
    const queues = this.#queuesOf(client);
    const queue = queues.get(client) ?? new Set();
    queues.set(client, queue.add(request));
    this.#waiting++;
    this.#serve();
    if (this.#waiting > this.#mostWaiting) this.#refuseOne(client);
    return () => this.#remove(client, queue, request);
  }

  /** Gives room back. */
  leave(client: string, size: number): void {
    this.#taken -= size;
    const left = this.#ofClient.get(client)! - size;
    if (left > 0) this.#ofClient.set(client, left);
    else this.#ofClient.delete(client);
    this.#serve();
  }

  /** From now on, a client is served after all others. */
  putBehind(client: string): void {
    const queue = this.#queuesOf(client).get(client);
    this.#queues.delete(client);
    this.#behind.add(client);
    if (queue !== undefined) this.#queuesBehind.set(client, queue);
  }

  /** All clients are equal again. */
  forgive(): void {
    for (const [client, queue] of this.#queuesBehind) this.#queues.set(client, queue);
    this.#queuesBehind.clear();
    this.#behind.clear();
    this.#serve();
  }

  #queuesOf(client: string): Queues {
    return this.#behind.has(client) ? this.#queuesBehind : this.#queues;
  }

  #remove(client: string, queue: Set<Request>, request: Request): void {
    if (!queue.delete(request)) return;
    this.#waiting--;
    const present = this.#queuesOf(client);
    if (queue.size === 0 && present.get(client) === queue) present.delete(client);
    this.#serve();
  }

  /** Of clients that have as many waiting, it is one that was put behind, or else the one that has just come. */
  #refuseOne(newcomer: string): void {
    const isOf = ([client]: readonly [string, unknown]): boolean => client === newcomer;
    const [behind, others] = [[...this.#queuesBehind], [...this.#queues]];
    const inOrder = [...behind.filter(isOf), ...behind, ...others.filter(isOf), ...others];
    const [client, queue] = inOrder.reduce((most, each) => (each[1].size > most[1].size ? each : most));
    const newest = [...queue].at(-1)!;
    this.#remove(client, queue, newest);
    newest.refuse();
  }

  /** A holder that is admitted may leave at once: the same loop admits those that this makes room for. */
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

  /** The next waiter waits until there is room for all of its size; smaller ones behind it do not overtake it. */
  #next(): Request | undefined {
    const next = this.#nextOf(this.#queues, 0) ?? this.#nextOf(this.#queuesBehind, this.#takenBehind);
    return next === 'full' ? undefined : next;
  }

  get #takenBehind(): number {
    let taken = 0;
    for (const client of this.#behind) taken += this.#ofClient.get(client) ?? 0;
    return taken;
  }

  /** @param shared what the clients of these queues hold of the half that they share. */
  #nextOf(queues: Queues, shared: number): Request | 'full' | undefined {
    for (const [client, queue] of queues) {
      const [next] = queue;
      if (next === undefined) return undefined;
      const ofClient = this.#ofClient.get(client) ?? 0;
      const ofHalf = Math.max(shared, ofClient);
      // Anything larger than the capacity is admitted alone. At most two clients can have their half.
      if (ofHalf > 0 && ofHalf + next.size > this.#total / 2) continue;
      if (this.#taken > 0 && this.#taken + next.size > this.#total) return 'full';
      queue.delete(next);
      this.#waiting--;
      queues.delete(client);
      if (queue.size > 0) queues.set(client, queue);
      this.#taken += next.size;
      this.#ofClient.set(client, ofClient + next.size);
      return next;
    }
    return undefined;
  }
}

type Queues = Map<string, Set<Request>>;

interface Request {
  readonly size: number;
  readonly enter: () => void;
  readonly refuse: () => void;
}

/** One stream's or call's permit of a {@link FairSemaphore}: pending, held, or neither. */
export class Permit {
  readonly #semaphore: FairSemaphore;
  readonly #client: string;
  #size = 0;
  #giveUp: (() => void) | undefined;

  constructor(semaphore: FairSemaphore, client: string) {
    this.#semaphore = semaphore;
    this.#client = client;
  }

  get held(): boolean {
    return this.#size > 0;
  }

  get waiting(): boolean {
    return this.#giveUp !== undefined;
  }

  /** Others are waiting for permits. */
  get wanted(): boolean {
    return this.#semaphore.waiting > 0;
  }

  /** From now on, its client is served after all others. */
  putBehind(): void {
    this.#semaphore.putBehind(this.#client);
  }

  /**
   * Calls `then` as soon as there is room. If it throws, the permit is given back, and the error goes to the caller
   * that made room: streams contain their own errors in `then`. Calls `refused` instead if it may not wait any longer,
   * which must not throw.
   */
  take(then: () => void, size = 1, refused: () => void = () => undefined): void {
    if (this.held || this.waiting) return;
    let waits = true;
    const over = (): void => {
      waits = false;
      this.#giveUp = undefined;
    };
    const enter = (): void => {
      over();
      this.#size = size;
      try {
        then();
      } catch (error) {
        this.leave();
        throw error;
      }
    };
    const refuse = (): void => {
      over();
      refused();
    };
    const giveUp = this.#semaphore.wait(this.#client, size, enter, refuse);
    if (waits) this.#giveUp = giveUp;
  }

  leave(): void {
    this.#giveUp?.();
    this.#giveUp = undefined;
    const size = this.#size;
    this.#size = 0;
    if (size > 0) this.#semaphore.leave(this.#client, size);
  }
}
