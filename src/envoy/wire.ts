import { Buffer } from 'node:buffer';

/**
 * Just enough of the protobuf wire format to put messages together from parts that were encoded once. What is written
 * here must be what the encoder of `proto.ts` writes; tests compare the two.
 */

/** A key: field number and wire type 2 (length-delimited). Fields above 15 are not needed. */
const lengthDelimited = (field: number): number => (field << 3) | 2;
const varintKey = (field: number): number => field << 3;

/** Collects pieces and knows their length, so that the result is allocated once and nothing is copied twice. */
export class Pieces {
  private readonly pieces: Uint8Array[] = [];
  length = 0;

  add(piece: Uint8Array): void {
    this.pieces.push(piece);
    this.length += piece.length;
  }

  /** A nested message, or bytes. */
  addMessage(field: number, message: Uint8Array): void {
    this.add(head(field, message.length));
    this.add(message);
  }

  addPieces(field: number, message: Pieces): void {
    this.add(head(field, message.length));
    for (const piece of message.pieces) this.pieces.push(piece);
    this.length += message.length;
  }

  /** Memory of its own. */
  concat(): Uint8Array {
    const bytes = Buffer.allocUnsafeSlow(this.length);
    let at = 0;
    for (const piece of this.pieces) {
      bytes.set(piece, at);
      at += piece.length;
    }
    return bytes;
  }
}

/** A string field; nothing when it is empty, as proto3 has it. */
export function stringField(field: number, text: string): Uint8Array {
  return text === '' ? none : messageField(field, Buffer.from(text, 'utf8'));
}

/** A nested message, also when it is empty: it is present then. */
export function messageField(field: number, message: Uint8Array): Uint8Array {
  return concat([head(field, message.length), message]);
}

/** An unsigned integer or enum; nothing when it is 0. */
export function varintField(field: number, value: number): Uint8Array {
  return value === 0 ? none : numberField(field, value);
}

/** The same for a member of a oneof, which is present even when it is 0. */
export function numberField(field: number, value: number): Uint8Array {
  const bytes: number[] = [varintKey(field)];
  pushVarint(bytes, value);
  return Uint8Array.from(bytes);
}

export function concat(parts: readonly Uint8Array[]): Uint8Array {
  let length = 0;
  for (const part of parts) length += part.length;
  const bytes = Buffer.allocUnsafeSlow(length);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

const none = new Uint8Array(0);

function head(field: number, length: number): Uint8Array {
  const bytes: number[] = [lengthDelimited(field)];
  pushVarint(bytes, length);
  return Uint8Array.from(bytes);
}

/** Up to 2^53, which is more than any number here. */
function pushVarint(bytes: number[], value: number): void {
  let rest = value;
  while (rest > 127) {
    bytes.push((rest % 128) | 128);
    rest = Math.floor(rest / 128);
  }
  bytes.push(rest);
}
