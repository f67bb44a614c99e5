/**
 * How long a change takes until all of it is on its way to each connected client that it concerns: from when it came
 * until nothing is owed to the client any more. A change that comes meanwhile does not restart the clock.
 */
export class Convergence<S> {
  readonly #converged: (ms: number) => void;
  readonly #behind = new Map<S, { readonly since: number; sent: boolean }>();
  #changedAt: number | undefined;

  /** @param converged is called for every client that was sent something. */
  constructor(converged: (ms: number) => void) {
    this.#converged = converged;
  }

  /** A stream that is {@link marked} within `apply` has been behind since `changedAt`. */
  during(changedAt: number, apply: () => void): void {
    this.#changedAt = changedAt;
    try {
      apply();
    } finally {
      this.#changedAt = undefined;
    }
  }

  marked(stream: S): void {
    if (this.#changedAt === undefined || this.#behind.has(stream)) return;
    this.#behind.set(stream, { since: this.#changedAt, sent: false });
  }

  sent(stream: S): void {
    const behind = this.#behind.get(stream);
    if (behind !== undefined) behind.sent = true;
  }

  /** Nothing is owed to the stream. */
  caughtUp(stream: S, now: number): void {
    const behind = this.#behind.get(stream);
    if (behind === undefined) return;
    this.#behind.delete(stream);
    if (behind.sent) this.#converged(now - behind.since);
  }

  gone(stream: S): void {
    this.#behind.delete(stream);
  }
}
