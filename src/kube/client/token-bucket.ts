/** At most `burst` at once and `rate` per second in the long run. */
export class TokenBucket {
  private readonly rate: number;
  private readonly burst: number;
  private tokens: number;
  private at: number;

  constructor({ rate, burst, now }: { readonly rate: number; readonly burst: number; readonly now: number }) {
    this.rate = rate;
    this.burst = burst;
    this.tokens = burst;
    this.at = now;
  }

  /** Takes a token and returns 0, or takes none and returns the milliseconds until there is one. */
  take(now: number): number {
    const wait = this.wait(now);
    if (wait === 0) this.tokens -= 1;
    return wait;
  }

  /** Milliseconds until there is a token; 0 if there is one. */
  wait(now: number): number {
    this.tokens = Math.min(this.burst, this.tokens + ((now - this.at) / 1000) * this.rate);
    this.at = now;
    // A token that is missing only by rounding counts.
    return this.tokens < 1 - 1e-6 ? Math.ceil(((1 - this.tokens) / this.rate) * 1000) : 0;
  }
}
