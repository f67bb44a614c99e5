/**
 * How long a change takes to be on its way to each connected client that it concerns, as a whole: from when it came until
 * nothing is owed to the client any more. A change that comes meanwhile does not restart that.
 */
export class Convergence<S> {
  readonly #converged: (ms: number) => void;
  readonly #behind = new Map<S, { readonly since: number; sent: boolean }>();
  #changedAt: number | undefined;

  /** @param converged hears of every client that was sent something. */
  constructor(converged: (ms: number) => void) {
    this.#converged = converged;
  }

  /** Who is {@link marked} within `apply` is behind since then. */
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

  /** Nothing is owed to it. */
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
