import { Buffer } from 'node:buffer';

/** The largest buffer that is handed to a socket at once: with TLS, a connection keeps one that large forever. */
export const SLICE_BYTES = 65_536;

/**
 * Writes into slices of bounded size. Exactly the announced number of bytes must be written (not appended), since the
 * length before a message is written first: anything else is an error.
 */
export class SliceWriter {
  readonly #slices: Uint8Array[] = [];
  readonly #announced: number;
  /** Announced bytes that are not in {@link #slices} yet. */
  #left: number;
  #slice: Buffer;
  #from = 0;
  #at = 0;

  constructor(size: number) {
    this.#announced = this.#left = size;
    this.#slice = Buffer.allocUnsafeSlow(Math.min(size, SLICE_BYTES));
  }

  byte(value: number): void {
    if (this.#at === this.#slice.length) this.#next();
    this.#slice[this.#at++] = value;
  }

  bigEndian(value: number): void {
    for (let shift = 24; shift >= 0; shift -= 8) this.byte((value >>> shift) & 0xff);
  }

  field(number: number, length: number): void {
    this.byte(number * 8 + 2);
    for (; length >= 128; length = Math.floor(length / 128)) this.byte((length % 128) | 0x80);
    this.byte(length);
  }

  string(number: number, text: string): void {
    const length = Buffer.byteLength(text);
    this.field(number, length);
    if (this.#slice.length - this.#at >= length) this.#at += this.#slice.write(text, this.#at);
    else this.bytes(Buffer.from(text));
  }

  bytes(bytes: Uint8Array): void {
    for (let from = 0; from < bytes.length;) {
      if (this.#at === this.#slice.length) this.#next();
      const count = Math.min(bytes.length - from, this.#slice.length - this.#at);
      this.#slice.set(from === 0 && count === bytes.length ? bytes : bytes.subarray(from, from + count), this.#at);
      this.#at += count;
      from += count;
    }
  }

  /** Adds slices that were laid out before. */
  append(slices: readonly Uint8Array[]): void {
    this.#cut();
    this.#slices.push(...slices);
  }

  finish(): readonly Uint8Array[] {
    this.#cut();
    if (this.#left > 0) throw new Error(`${this.#left} of ${this.#announced} bytes announced were not written`);
    return this.#slices;
  }

  #cut(): void {
    if (this.#at > this.#from) this.#slices.push(this.#slice.subarray(this.#from, this.#at));
    this.#left -= this.#at - this.#from;
    this.#from = this.#at;
  }

  #next(): void {
    this.#cut();
    if (this.#left === 0) throw new Error(`more is written than the ${this.#announced} bytes announced`);
    this.#slice = Buffer.allocUnsafeSlow(Math.min(this.#left, SLICE_BYTES));
    this.#from = this.#at = 0;
  }
}

/** The bytes as slices, without copying. */
export function slicesOf(bytes: Uint8Array): Uint8Array[] {
  if (bytes.length <= SLICE_BYTES) return [bytes];
  const slices: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += SLICE_BYTES) slices.push(bytes.subarray(at, at + SLICE_BYTES));
  return slices;
}
