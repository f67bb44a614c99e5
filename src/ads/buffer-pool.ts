import { Buffer } from 'node:buffer';

/** Lengths are rounded up to this, so that messages of nearly the same length can use the same buffers. */
const GRAIN = 65_536;

/**
 * Buffers that large messages are received into, one after the other. Clients that come back send a megabyte each: in
 * buffers of their own they would have the garbage collector go through the whole heap for every few dozen of them.
 */
export class BufferPool {
  readonly #most: number;
  #free: Buffer[] = [];
  #bytes = 0;

  /** @param most bytes that are kept while nobody uses them. */
  constructor(most: number) {
    this.#most = most;
  }

  /** At least as long. To be given back. */
  take(length: number): Buffer {
    let best = -1;
    this.#free.forEach((buffer, i) => {
      if (buffer.length >= length && (best < 0 || buffer.length < this.#free[best]!.length)) best = i;
    });
    if (best < 0) return Buffer.allocUnsafeSlow(Math.ceil(length / GRAIN) * GRAIN);
    const [buffer] = this.#free.splice(best, 1);
    this.#bytes -= buffer!.length;
    return buffer!;
  }

  give(buffer: Buffer): void {
    if (this.#bytes + buffer.length > this.#most) return;
    this.#free.push(buffer);
    this.#bytes += buffer.length;
  }

  /** Gives the memory back. */
  clear(): void {
    this.#free = [];
    this.#bytes = 0;
  }
}
