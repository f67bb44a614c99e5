export interface BackoffOptions {
  /** First delay in milliseconds. */
  readonly base: number;
  /** Longest delay in milliseconds. */
  readonly cap: number;
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

/**
 * Exponential delays with jitter: each is between half the step and the full step, so that replicas that failed
 * together do not retry together.
 */
export class Backoff {
  private readonly options: BackoffOptions;
  private failures = 0;

  constructor(options: BackoffOptions) {
    this.options = options;
  }

  /** Delay before the next attempt, at least as long as the server asked for. Milliseconds. */
  next(atLeast = 0): number {
    const { base, cap, random } = this.options;
    const step = Math.min(cap, base * 2 ** Math.min(this.failures++, 30));
    return Math.max(atLeast, step * (0.5 + random() / 2));
  }

  reset(): void {
    this.failures = 0;
  }
}
