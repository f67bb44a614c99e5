/** A stream that can be queued for a turn. */
export interface Waiting {
  /** Address of its client. */
  readonly address: string;
  /** In the queue. */
  queued: boolean;
  /** While it waits, the next one of its address. */
  behind?: Waiting | undefined;
}

export interface TurnWork<Stream> {
  /** Milliseconds. */
  now(): number;
  /** A turn begins. */
  begin(): void;
  /** @param now as of {@link now}, a moment ago. */
  serve(stream: Stream, now: number): void;
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
  readonly #acknowledging = new Queues<Stream>();
  readonly #others = new Queues<Stream>();
  #waiting = 0;
  /** Time that the others took and have yet to make up for, while acknowledging streams wait. Milliseconds. */
  #owed = 0;
  #scheduled = false;
  readonly #next = (): void => this.#turn();

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
    (acknowledges ? this.#acknowledging : this.#others).add(stream);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(this.#next);
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
    const now = this.#serve(this.#acknowledging, began, began + ACKNOWLEDGING_MS);
    this.#owed = this.#acknowledging.isEmpty ? 0 : Math.max(0, this.#owed - OTHERS_MS);
    if (this.#owed === 0) this.#owed = this.#serve(this.#others, now, began + TURN_MS) - now;
  }

  /** Serves the first streams: at least one, and more while there is time. Returns when it has. */
  #serve(queues: Queues<Stream>, began: number, until: number): number {
    let now = began;
    for (let served = 0; served < STREAMS_PER_QUEUE; served++) {
      const stream = queues.take();
      if (stream === undefined) return now;
      stream.queued = false;
      this.#waiting--;
      this.#work.serve(stream, now);
      now = this.#work.now();
      if (this.#work.isFull() || now > until) return now;
    }
    return now;
  }
}

/**
 * Streams that wait. Addresses take turns: of each address, one stream is in line, and the others are behind that one.
 * For every push a stream comes and goes here: that allocates nothing.
 */
class Queues<Stream extends Waiting> {
  /** The last stream of each address that waits. */
  readonly #last = new Map<string, Stream>();
  /** From {@link #from} on, the next one first. */
  #line: (Stream | undefined)[] = [];
  #from = 0;

  get isEmpty(): boolean {
    return this.#last.size === 0;
  }

  add(stream: Stream): void {
    const last = this.#last.get(stream.address);
    if (last === undefined) this.#line.push(stream);
    else last.behind = stream;
    this.#last.set(stream.address, stream);
  }

  take(): Stream | undefined {
    const stream = this.#line[this.#from];
    if (stream === undefined) return undefined;
    this.#line[this.#from++] = undefined;
    const next = stream.behind as Stream | undefined;
    stream.behind = undefined;
    if (next === undefined) this.#last.delete(stream.address);
    else this.#line.push(next);
    if (this.#from === this.#line.length) this.#line.length = this.#from = 0;
    else if (this.#from >= MANY && this.#from * 2 >= this.#line.length) {
      this.#line = this.#line.slice(this.#from);
      this.#from = 0;
    }
    return stream;
  }
}

/** How many places of a line are given up at once, at least. */
const MANY = 1_024;
