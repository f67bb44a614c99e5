import { Headcount } from './headcount.ts';

/**
 * How many streams of one address begin at once, and how many in each second after that. A replica that went away may
 * leave thousands of proxies behind one address (a load balancer, a node that hides its Pods), and all come back
 * together: those above the rate wait.
 */
const BURST = 2_000;
const PER_SECOND = 500;
/** Addresses whose rate is remembered; the oldest are forgotten first, unless streams of theirs are waiting. */
const MAX_ADDRESSES = 10_000;

/** Admits streams: a total, a share per address, and a rate per address. */
export class Arrivals {
  readonly #streams: Headcount;
  /** Addresses with streams that began lately. Any other address may begin {@link BURST}. */
  readonly #rates = new Map<string, Rate>();
  #toldAt: number | undefined;

  /** @param most streams in total. */
  constructor(most: number) {
    this.#streams = new Headcount(most);
  }

  /** Streams that may not begin yet. */
  get waiting(): number {
    let waiting = 0;
    for (const rate of this.#rates.values()) waiting += rate.queue.size;
    return waiting;
  }

  /** How many addresses are remembered. */
  get addresses(): number {
    return this.#rates.size;
  }

  /** Calls `begin` when the stream may, mostly at once. Returns how to leave, begun or not, or why it is refused. */
  enter(address: string, begin: () => void): (() => void) | 'full' | 'address full' {
    const refused = this.#streams.enter(address);
    if (refused !== undefined) return refused;
    const rate = this.#rateOf(address);
    let here = true;
    rate.queue.add(begin);
    rate.serve();
    return () => {
      if (!here) return;
      here = false;
      rate.queue.delete(begin);
      this.#streams.leave(address);
    };
  }

  /** Time passes, about a second. */
  tick(now: number): void {
    const seconds = Math.max(0, now - (this.#toldAt ?? now)) / 1000;
    this.#toldAt = now;
    for (const [address, rate] of this.#rates) {
      rate.allowed = Math.min(BURST, rate.allowed + seconds * PER_SECOND);
      rate.serve();
      if (rate.allowed === BURST) this.#rates.delete(address);
    }
  }

  #rateOf(address: string): Rate {
    let rate = this.#rates.get(address);
    if (rate === undefined) {
      if (this.#rates.size >= MAX_ADDRESSES) this.#forgetOne();
      this.#rates.set(address, (rate = new Rate()));
    }
    return rate;
  }

  #forgetOne(): void {
    for (const [address, { queue }] of this.#rates) {
      if (queue.size > 0) continue;
      this.#rates.delete(address);
      return;
    }
  }
}

class Rate {
  allowed = BURST;
  readonly queue = new Set<() => void>();

  serve(): void {
    for (const begin of this.queue) {
      if (this.allowed < 1) return;
      this.allowed--;
      this.queue.delete(begin);
      begin();
    }
  }
}
