import { Lasting } from './lasting.ts';
import type { Sink } from './sink.ts';

/** How long a client may take to close a stream after it was told its end. Milliseconds. */
const CLOSE_MS = 10_000;

/**
 * Streams that were told their end and are still open. The status of a stream comes behind what was written before it:
 * a client that does not read never gets it, and one that does not care keeps the stream.
 */
export class Endings {
  readonly #open = new Map<Sink, Lasting>();

  add(sink: Sink): void {
    this.#open.set(sink, new Lasting());
  }

  /** None is open any more. */
  over(): boolean {
    for (const sink of this.#open.keys()) if (!sink.gone) return false;
    return true;
  }

  /** Cuts those off that have been open for too long; returns how many. */
  tick(now: number): number {
    let cut = 0;
    for (const [sink, open] of this.#open) {
      if (sink.gone) this.#open.delete(sink);
      else if (open.of(sink, now) >= CLOSE_MS) {
        this.#open.delete(sink);
        sink.cut();
        cut++;
      }
    }
    return cut;
  }
}
