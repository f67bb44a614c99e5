import { StateAge } from './state-age.ts';
import type { FrameWriter } from './frame-writer.ts';

/** How long a client may take to close a stream after being told that it has ended. Milliseconds. */
const CLOSE_MS = 10_000;

/**
 * Streams whose clients were told that they have ended, and that are still open. A stream's status is sent after what
 * was written before it: a client that does not read never gets it, and one that ignores it keeps the stream.
 */
export class Endings {
  readonly #open = new Map<FrameWriter, StateAge>();

  add(writer: FrameWriter): void {
    this.#open.set(writer, new StateAge());
  }

  /** True if none is open any more. */
  over(): boolean {
    for (const writer of this.#open.keys()) if (!writer.gone) return false;
    return true;
  }

  /** Cuts off streams that have been open for too long; returns how many. */
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
