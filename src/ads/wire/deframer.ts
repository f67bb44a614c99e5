import { Buffer } from 'node:buffer';

/** The messages of a gRPC stream can no longer be read: too long, or compressed. */
export class UnreadableStream extends Error {
  readonly reason: 'too long' | 'compressed';

  constructor(reason: 'too long' | 'compressed', maxLength = 0) {
    super(
      reason === 'too long' ? `a message is longer than ${maxLength} bytes` : 'compressed messages are not supported',
    );
    this.reason = reason;
  }
}

/** Precedes each message of a gRPC stream: a flag, and the length. */
export const PREFIX = 5;
/** Shorter pieces are merged, so that a client that sends byte by byte costs hardly more memory. */
const SHORT = 4096;
/** How many times its own bytes a piece may keep alive: it is part of a larger chunk from the connection. */
const MOST_KEPT = 2;

/**
 * Cuts the bytes of a stream into messages: a flag, four bytes of length, the message. A message that comes in one
 * piece is not copied; otherwise its pieces are kept until the last one arrives, or go into a buffer.
 */
export class Deframer {
  /** No message may be longer; read when a message begins. */
  maxLength: number;
  /** What has arrived of one; made when one arrives in pieces. */
  #prefix: Buffer | undefined;
  #prefixLength = 0;
  #length = 0;
  /** The bytes that have arrived of the message that is being received. */
  #pieces: Buffer[] | undefined;
  #received = 0;
  #buffer: Buffer | undefined;
  #chunk: Buffer = EMPTY;

  constructor(maxLength: number) {
    this.maxLength = maxLength;
  }

  /** Takes bytes that arrived. */
  add(chunk: Buffer): void {
    this.#chunk = this.#chunk.length === 0 ? chunk : Buffer.concat([this.#chunk, chunk]);
  }

  /** Forgets what has arrived. */
  clear(): void {
    this.#chunk = EMPTY;
    this.#pieces = this.#buffer = undefined;
    this.#prefixLength = 0;
  }

  /** The rest of the message that is being received goes into this buffer, after what has arrived. */
  receiveInto(buffer: Buffer): void {
    let at = 0;
    for (const piece of this.#pieces?.splice(0) ?? []) at += piece.copy(buffer, at);
    this.#buffer = buffer;
  }

  /** Length of the message that is being received; 0 between messages. */
  get expected(): number {
    return this.#pieces === undefined ? 0 : this.#length;
  }

  /** How much of that message has arrived. */
  get received(): number {
    return this.#pieces === undefined ? 0 : this.#received;
  }

  /** The next complete message: in the buffer that it was received into, if there was one. */
  next(): Buffer | undefined {
    if (this.#pieces !== undefined) return this.#goOn(this.#pieces);
    const chunk = this.#chunk;
    if (chunk.length === 0) return undefined;
    if (this.#prefixLength === 0 && chunk.length >= PREFIX) {
      this.#readPrefix(chunk);
      const end = PREFIX + this.#length;
      if (chunk.length >= end) {
        this.#chunk = chunk.length === end ? EMPTY : chunk.subarray(end);
        return chunk.subarray(PREFIX, end);
      }
      this.#chunk = chunk.subarray(PREFIX);
    } else {
      const taken = Math.min(PREFIX - this.#prefixLength, chunk.length);
      this.#prefix ??= Buffer.allocUnsafeSlow(PREFIX);
      chunk.copy(this.#prefix, this.#prefixLength, 0, taken);
      this.#prefixLength += taken;
      this.#chunk = chunk.subarray(taken);
      if (this.#prefixLength < PREFIX) return undefined;
      this.#prefixLength = 0;
      this.#readPrefix(this.#prefix);
    }
    this.#received = 0;
    this.#pieces = [];
    return this.#goOn(this.#pieces);
  }

  #goOn(pieces: Buffer[]): Buffer | undefined {
    const chunk = this.#chunk;
    const taken = Math.min(this.#length - this.#received, chunk.length);
    this.#received += taken;
    this.#chunk = taken === chunk.length ? EMPTY : chunk.subarray(taken);
    const buffer = this.#buffer;
    if (buffer !== undefined) chunk.copy(buffer, this.#received - taken, 0, taken);
    else if (taken > 0) keep(pieces, taken === chunk.length ? chunk : chunk.subarray(0, taken));
    if (this.#received < this.#length) return undefined;
    this.#pieces = this.#buffer = undefined;
    return buffer === undefined ? Buffer.concat(pieces) : buffer.subarray(0, this.#length);
  }

  #readPrefix(prefix: Buffer): void {
    if (prefix[0] !== 0) throw new UnreadableStream('compressed');
    this.#length = prefix.readUInt32BE(1);
    if (this.#length > this.maxLength) throw new UnreadableStream('too long', this.maxLength);
  }
}

/** A byte is copied each time the length of its piece doubles, until the piece is no longer short. */
function keep(pieces: Buffer[], piece: Buffer): void {
  for (let last = pieces.at(-1); last !== undefined && piece.length < SHORT; last = pieces.at(-1)) {
    if (last.length > piece.length) break;
    pieces.pop();
    piece = Buffer.concat([last, piece]);
  }
  if (piece.length >= SHORT && piece.buffer.byteLength > MOST_KEPT * piece.length) {
    const copy = Buffer.allocUnsafeSlow(piece.length);
    piece.copy(copy);
    piece = copy;
  }
  pieces.push(piece);
}

const EMPTY = Buffer.alloc(0);
