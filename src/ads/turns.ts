/** A stream that can be queued for a turn. */
export interface Waiting {
  /** Is in the queue. */
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
const TURN_MS = 8;
/** How much of it is for those that acknowledge, while others wait. */
const ACKNOWLEDGING_MS = 6;
const STREAMS_PER_QUEUE = 64;

/**
 * The queue of streams that something is owed to. Those whose clients acknowledge what they are sent go first. The others
 * get the rest of the turn, which is at least one stream, and normally a quarter of the time.
 */
export class Turns<Stream extends Waiting> {
  readonly #work: TurnWork<Stream>;
  #acknowledging: Stream[] = [];
  #others: Stream[] = [];
  #scheduled = false;

  constructor(work: TurnWork<Stream>) {
    this.#work = work;
  }

  /** @param acknowledges the client has taken something that it was sent. */
  add(stream: Stream, acknowledges: boolean): void {
    if (stream.queued) return;
    stream.queued = true;
    (acknowledges ? this.#acknowledging : this.#others).push(stream);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => this.#turn());
  }

  #turn(): void {
    const began = this.#work.now();
    this.#work.begin();
    this.#acknowledging = this.#serve(this.#acknowledging, began + ACKNOWLEDGING_MS);
    this.#others = this.#serve(this.#others, began + TURN_MS);
    this.#scheduled = false;
    if (this.#acknowledging.length + this.#others.length > 0) this.#schedule();
  }

  /** The first ones: one at least, and more while there is time. Returns those that are left. */
  #serve(queue: Stream[], until: number): Stream[] {
    let served = 0;
    for (const stream of queue) {
      const takesLong = this.#work.isFull() || this.#work.now() > until;
      if (served === STREAMS_PER_QUEUE || (served > 0 && takesLong)) break;
      served++;
      stream.queued = false;
      this.#work.serve(stream);
    }
    return queue.slice(served);
  }
}
