import { Buffer } from 'node:buffer';

/** Bytes. Shorter buffers are not told apart. */
const SHORTEST = 1_024;

/**
 * Buffers that messages are received into, one after the other. Reconnecting clients send a megabyte each: with a new
 * buffer per message, the garbage collector would go through the whole heap for every few dozen of them.
 */
export class BufferPool {
  readonly #most: number;
  /** By length, a power of two; the length that was given back last is the last one. */
  readonly #free = new Map<number, Buffer[]>();
  #bytes = 0;

  /** @param most how many bytes are kept while unused. */
  constructor(most: number) {
    this.#most = most;
  }

  /** At least this long, and less than twice as long (or {@link SHORTEST}). To be given back. */
  take(length: number): Buffer {
    const rounded = Math.max(SHORTEST, 2 ** Math.ceil(Math.log2(length)));
    const buffer = this.#free.get(rounded)?.pop();
    if (buffer === undefined) return Buffer.allocUnsafeSlow(rounded);
    this.#bytes -= rounded;
    return buffer;
  }

  give(buffer: Buffer): void {
    const { length } = buffer;
    const free = this.#free.get(length) ?? [];
    this.#free.delete(length);
    this.#free.set(length, free);
    free.push(buffer);
    this.#bytes += length;
    while (this.#bytes > this.#most) this.#drop();
  }

  /** Gives the memory back. */
  clear(): void {
    this.#free.clear();
    this.#bytes = 0;
  }

  /** One of the length that was not given back for longest. */
  #drop(): void {
    for (const [length, free] of this.#free) {
      if (free.pop() !== undefined) {
        this.#bytes -= length;
        return;
      }
      this.#free.delete(length);
    }
  }
}
