import { Lasting } from './lasting.ts';
import type { FrameWriter } from './frame-writer.ts';

/** How long a client may take to close a stream after it was told its end. Milliseconds. */
const CLOSE_MS = 10_000;

/**
 * Streams that were told their end and are still open. The status of a stream comes behind what was written before it:
 * a client that does not read never gets it, and one that does not care keeps the stream.
 */
export class Endings {
  readonly #open = new Map<FrameWriter, Lasting>();

  add(writer: FrameWriter): void {
    this.#open.set(writer, new Lasting());
  }

  /** None is open any more. */
  over(): boolean {
    for (const writer of this.#open.keys()) if (!writer.gone) return false;
    return true;
  }

  /** Cuts those off that have been open for too long; returns how many. */
  tick(now: number): number {
    let cut = 0;
    for (const [writer, open] of this.#open) {
      if (writer.gone) this.#open.delete(writer);
      else if (open.of(writer, now) >= CLOSE_MS) {
        this.#open.delete(writer);
        writer.cut();
        cut++;
      }
    }
    return cut;
  }
}
