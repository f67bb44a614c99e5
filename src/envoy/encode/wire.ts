import { Buffer } from 'node:buffer';

/**
 * Just enough of the protobuf wire format to assemble messages from parts that were encoded once, and to encode what is
 * very numerous. The output is the same as that of the encoder in `proto.ts`; tests compare the two. Field numbers
 * above 15 are not needed.
 */

/** Writes a message from end to start, so that the length of a nested part is known when it is needed. */
export class BackwardWriter {
  private buffer: Buffer;
  private start: number;

  constructor(capacity = 1024) {
    this.buffer = Buffer.allocUnsafe(capacity);
    this.start = capacity;
  }

  /** Bytes written since a {@link mark}, in their own memory. */
  since(mark: number): Uint8Array {
    const bytes = Buffer.allocUnsafeSlow(this.lengthSince(mark));
    this.buffer.copy(bytes, 0, this.start, this.start + bytes.length);
    return bytes;
  }

  /** The end of whatever is written next. Counted from the end of the buffer, so growing does not move it. */
  mark(): number {
    return this.buffer.length - this.start;
  }

  lengthSince(mark: number): number {
    return this.mark() - mark;
  }

  reset(): void {
    this.start = this.buffer.length;
  }

  /** Turns what was written since the mark into a nested message or a string. */
  wrap(field: number, mark: number): void {
    this.varint(this.lengthSince(mark));
    this.byte((field << 3) | 2);
  }

  /** Writes nothing if the text is empty, as in proto3. */
  text(field: number, text: string): void {
    if (text === '') return;
    const mark = this.mark();
    const length = Buffer.byteLength(text, 'utf8');
    this.reserve(length);
    this.start -= length;
    this.buffer.write(text, this.start, length, 'utf8');
    this.wrap(field, mark);
  }

  /** An unsigned integer or enum. Writes nothing if it is 0. */
  unsigned(field: number, value: number): void {
    if (value !== 0) this.presentUnsigned(field, value);
  }

  /** A member of a oneof is present even if it is 0. */
  presentUnsigned(field: number, value: number): void {
    this.varint(value);
    this.byte(field << 3);
  }

  bytes(bytes: Uint8Array): void {
    this.reserve(bytes.length);
    this.start -= bytes.length;
    this.buffer.set(bytes, this.start);
  }

  private byte(value: number): void {
    this.reserve(1);
    this.buffer[--this.start] = value;
  }

  /** Up to 2^32, larger than any number here. */
  private varint(value: number): void {
    const length = varintLength(value);
    this.reserve(length);
    this.start -= length;
    writeVarint(this.buffer, this.start, value);
  }

  private reserve(length: number): void {
    if (this.start >= length) return;
    const written = this.mark();
    const capacity = Math.max(this.buffer.length * 2, written + length);
    const grown = Buffer.allocUnsafe(capacity);
    this.buffer.copy(grown, capacity - written, this.start);
    this.buffer = grown;
    this.start = capacity - written;
  }
}

function varintLength(value: number): number {
  return value < 0x80 ? 1 : value < 0x4000 ? 2 : value < 0x20_0000 ? 3 : value < 0x1000_0000 ? 4 : 5;
}

function writeVarint(bytes: Uint8Array, at: number, value: number): void {
  let rest = value;
  let index = at;
  while (rest > 127) {
    bytes[index++] = (rest & 127) | 128;
    rest = Math.floor(rest / 128);
  }
  bytes[index] = rest;
}
