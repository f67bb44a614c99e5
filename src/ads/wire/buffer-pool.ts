import { Buffer } from 'node:buffer';

/** Lengths are rounded up to this, so that messages of similar length can use the same buffers. */
const GRAIN = 65_536;
/** How many times longer than requested a buffer may be: the memory in use is bounded by what is requested. */
const MOST_TIMES = 2;

/**
 * Buffers that large messages are received into, one after the other. Reconnecting clients send a megabyte each: with a
 * new buffer per message, the garbage collector would go through the whole heap for every few dozen of them.
 */
export class BufferPool {
  readonly #most: number;
  #free: Buffer[] = [];
  #bytes = 0;

  /** @param most how many bytes are kept while unused. */
  constructor(most: number) {
    this.#most = most;
  }

  /** At least this long, and not much longer. To be given back. */
  take(length: number): Buffer {
    const rounded = Math.ceil(length / GRAIN) * GRAIN;
    let best = -1;
    this.#free.forEach((buffer, i) => {
      const fits = buffer.length >= length && buffer.length <= MOST_TIMES * rounded;
      if (fits && (best < 0 || buffer.length < this.#free[best]!.length)) best = i;
    });
    if (best < 0) return Buffer.allocUnsafeSlow(rounded);
    const [buffer] = this.#free.splice(best, 1);
    this.#bytes -= buffer!.length;
    return buffer!;
  }

  /** Those that were unused for longest go first. */
  give(buffer: Buffer): void {
    this.#free.push(buffer);
    this.#bytes += buffer.length;
    while (this.#bytes > this.#most) this.#bytes -= this.#free.shift()!.length;
  }

  /** Gives the memory back. */
  clear(): void {
    this.#free = [];
    this.#bytes = 0;
  }
}
