import { type Buffer, isUtf8 } from 'node:buffer';
import { BadRequest } from '../bad-request.ts';

/** Fields of a message: number, wire type, and where the value is. */
export class FieldReader {
  readonly buffer: Buffer;
  readonly #end: number;
  field = 0;
  wireType = 0;
  /** The bytes of a length-delimited field. */
  from = 0;
  to = 0;
  /** The lower 56 bits of a varint field, as far as a number is exact. */
  varint = 0;
  /** Where the current field begins, and where the next one does. */
  start = 0;
  at: number;

  constructor(buffer: Buffer, from = 0, to = buffer.length) {
    this.buffer = buffer;
    this.at = from;
    this.#end = to;
  }

  next(): boolean {
    if (this.at >= this.#end) return false;
    this.start = this.at;
    const tag = this.#varint();
    this.field = Math.floor(tag / 8);
    this.wireType = tag & 7;
    if (this.field === 0) throw new BadRequest('a field has number 0');
    if (this.wireType === 2) {
      const length = this.#varint();
      this.from = this.at;
      this.to = this.at + length;
      if (this.to > this.#end) throw new BadRequest('a field is longer than its message');
      this.at = this.to;
    } else if (this.wireType === 0) {
      this.varint = this.#varint();
    } else if (this.wireType === 1 || this.wireType === 5) {
      this.from = this.at;
      this.at += this.wireType === 1 ? 8 : 4;
      this.to = this.at;
      if (this.to > this.#end) throw new BadRequest('a field is longer than its message');
    } else {
      throw new BadRequest(`a field has wire type ${this.wireType}`);
    }
    return true;
  }

  /** The current field must have bytes. */
  expectBytes(): void {
    if (this.wireType !== 2) throw new BadRequest(`field ${this.field} has wire type ${this.wireType}`);
  }

  string(): string {
    this.expectBytes();
    return stringOf(this.buffer, this.from, this.to);
  }

  /** A string of limited length. */
  shortString(what: string, maxBytes: number): string {
    if (this.to - this.from > maxBytes) throw new BadRequest(`${what} is longer than ${maxBytes} bytes`);
    return this.string();
  }

  message(): FieldReader {
    this.expectBytes();
    return new FieldReader(this.buffer, this.from, this.to);
  }

  #varint(): number {
    let value = 0;
    let factor = 1;
    for (let i = 0; i < 10; i++) {
      if (this.at >= this.#end) throw new BadRequest('the message is cut off');
      const byte = this.buffer[this.at++]!;
      if (i < 8) value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
      factor *= 128;
    }
    throw new BadRequest('a number is too long');
  }
}

/** UTF-8. */
export function stringOf(buffer: Buffer, from: number, to: number): string {
  const text = buffer.toString('utf8', from, to);
  if (text.includes('\ufffd') && !isUtf8(buffer.subarray(from, to))) throw new BadRequest('a string is not UTF-8');
  return text;
}
