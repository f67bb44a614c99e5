export interface BackoffOptions {
  /** First delay in milliseconds. */
  readonly base: number;
  /** No delay is longer. */
  readonly cap: number;
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

/**
 * Exponential delays with jitter: each is between half of the step and the whole step, so that replicas that failed
 * together do not come back together.
 */
export class Backoff {
  private readonly options: BackoffOptions;
  private failures = 0;

  constructor(options: BackoffOptions) {
    this.options = options;
  }

  /** The delay before the next try, at least what the server asked for. Milliseconds. */
  next(atLeast = 0): number {
    const { base, cap, random } = this.options;
    const step = Math.min(cap, base * 2 ** Math.min(this.failures++, 30));
    return Math.max(atLeast, step * (0.5 + random() / 2));
  }

  reset(): void {
    this.failures = 0;
  }
}
