/** A stream that can be queued for a turn. */
export interface Waiting {
  /** Address of its client. */
  readonly address: string;
  /** In the queue. */
  queued: boolean;
}

export interface TurnWork<Stream> {
  /** Milliseconds. */
  now(): number;
  /** A turn begins. */
  begin(): void;
  serve(stream: Stream): void;
  /** The turn has handed enough to connections, whatever time is left. */
  isFull(): boolean;
}

/** How long a turn lasts before the event loop does the rest of its work. Milliseconds. */
const TURN_MS = 12;
/** How much of it is for streams whose clients acknowledge, while others wait. */
const ACKNOWLEDGING_MS = 9;
const OTHERS_MS = TURN_MS - ACKNOWLEDGING_MS;
const STREAMS_PER_QUEUE = 64;

/**
 * The queue of streams that are owed something. Streams whose clients acknowledge what they are sent go first. The
 * others get the rest of the turn, a quarter of the time: if one takes longer, the following turns pay for it. In each
 * group, addresses take turns, one stream at a time: an address with a thousand streams delays only itself.
 */
export class Turns<Stream extends Waiting> {
  readonly #work: TurnWork<Stream>;
  readonly #acknowledging: Queues<Stream> = new Map();
  readonly #others: Queues<Stream> = new Map();
  #waiting = 0;
  /** Time that the others took and have yet to make up for, while acknowledging streams wait. Milliseconds. */
  #owed = 0;
  #scheduled = false;

  constructor(work: TurnWork<Stream>) {
    this.#work = work;
  }

  /** How many streams are queued. */
  get waiting(): number {
    return this.#waiting;
  }

  /** @param acknowledges the client has acknowledged something that it was sent. */
  add(stream: Stream, acknowledges: boolean): void {
    if (stream.queued) return;
    stream.queued = true;
    this.#waiting++;
    const queues = acknowledges ? this.#acknowledging : this.#others;
    const queue = queues.get(stream.address);
    if (queue === undefined) queues.set(stream.address, new Set([stream]));
    else queue.add(stream);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => this.#turn());
  }

  #turn(): void {
    try {
      this.#serveSome();
    } finally {
      // Also after a bug of ours: otherwise no stream would ever have its turn again.
      this.#scheduled = false;
      if (this.#waiting > 0) this.#schedule();
    }
  }

  #serveSome(): void {
    const began = this.#work.now();
    this.#work.begin();
    this.#serve(this.#acknowledging, began + ACKNOWLEDGING_MS);
    this.#owed = this.#acknowledging.size === 0 ? 0 : Math.max(0, this.#owed - OTHERS_MS);
    if (this.#owed === 0) {
      const before = this.#work.now();
      this.#serve(this.#others, began + TURN_MS);
      this.#owed = this.#work.now() - before;
    }
  }

  /** Serves the first streams: at least one, and more while there is time. */
  #serve(queues: Queues<Stream>, until: number): void {
    for (let served = 0; served < STREAMS_PER_QUEUE; served++) {
      const stream = takeFirst(queues);
      if (stream === undefined) return;
      stream.queued = false;
      this.#waiting--;
      this.#work.serve(stream);
      if (this.#work.isFull() || this.#work.now() > until) return;
    }
  }
}

/** By address, the next one first. */
type Queues<Stream> = Map<string, Set<Stream>>;

function takeFirst<Stream>(queues: Queues<Stream>): Stream | undefined {
  for (const [address, queue] of queues)
    for (const stream of queue) {
      queue.delete(stream);
      queues.delete(address);
      if (queue.size > 0) queues.set(address, queue);
      return stream;
    }
  return undefined;
}
