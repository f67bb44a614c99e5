import { type Clock, sleep } from '../../base/clock.ts';

export interface PaceOptions {
  /** Bytes per second, in the long run. */
  readonly rate: number;
  /** Bytes that may be taken at once. */
  readonly burst: number;
  readonly clock: Pick<Clock, 'now' | 'after' | 'date'>;
}

/** What a second of work counts for: so many seconds of the rate. */
const WORK = 10;

/** Slows down work that somebody else causes: whoever takes more than there is waits until the debt is paid. */
export class Pace {
  private readonly options: PaceOptions;
  private left: number;
  private at: number;

  constructor(options: PaceOptions) {
    this.options = options;
    this.left = options.burst;
    this.at = options.clock.now();
  }

  /** Counts how long work takes that ends when the returned function is called: it may take a tenth of the time. */
  work(): () => void {
    const { rate, clock } = this.options;
    const began = clock.now();
    return () => void (this.left -= ((clock.now() - began) / 1_000) * rate * WORK);
  }

  /** Resolves at once as long as there is no debt, or when the signal fires. */
  async take(amount: number, { signal }: { readonly signal: AbortSignal }): Promise<void> {
    const { rate, burst, clock } = this.options;
    const now = clock.now();
    this.left = Math.min(burst, this.left + ((now - this.at) / 1_000) * rate) - amount;
    this.at = now;
    if (this.left < 0) await sleep(clock, (-this.left / rate) * 1_000, { signal });
  }
}
