import { Buffer } from 'node:buffer';

/** The messages of a gRPC stream cannot be read on: too long, compressed. */
export class UnreadableStream extends Error {
  readonly reason: 'too long' | 'compressed';

  constructor(reason: 'too long' | 'compressed') {
    super(reason === 'too long' ? 'a message is longer than may be' : 'compressed messages are not supported');
    this.reason = reason;
  }
}

/** Larger buffers are not kept. */
const LARGEST_KEPT = 1024 * 1024;
const STEP = 65_536;

/**
 * Memory that messages are put together in, for all streams of a server. It is used again and again: what comes in
 * pieces would else keep the pieces alive, and hundreds of megabytes of them are what a garbage collector looks at most.
 */
export class Scratch {
  #free: Buffer[] = [];

  /** So many bytes, until they are given back. */
  take(length: number): Buffer {
    const index = this.#free.findIndex((buffer) => buffer.length >= length);
    if (index >= 0) return this.#free.splice(index, 1)[0]!;
    // A little more than needed: the next one may be a little longer.
    return Buffer.allocUnsafeSlow(length > LARGEST_KEPT ? length : Math.ceil(length / STEP) * STEP);
  }

  give(buffer: Buffer): void {
    if (buffer.length <= LARGEST_KEPT) this.#free.push(buffer);
  }

  clear(): void {
    this.#free = [];
  }
}

const PREFIX = 5;
/** Pieces that are shorter than this are merged, so that a client that sends byte by byte costs hardly more memory. */
const SHORT = 4096;

/**
 * Cuts the bytes of a stream into messages: a flag, four bytes of length, the message. One that comes in one piece is not
 * copied; the pieces of another one are kept until the last of them is there, or {@link gather} is called.
 */
export class Deframer {
  readonly #maxLength: number;
  readonly #scratch: Scratch;
  readonly #prefix = Buffer.allocUnsafeSlow(PREFIX);
  #prefixLength = 0;
  /** Of the message that is being received, or was returned last. */
  #length = 0;
  /** Those of its bytes that have arrived and are not in the buffer; undefined between messages. */
  #pieces: Buffer[] | undefined;
  #received = 0;
  #buffer: Buffer | undefined;
  #chunk: Buffer = EMPTY;

  constructor(maxLength: number, scratch: Scratch) {
    this.#maxLength = maxLength;
    this.#scratch = scratch;
  }

  /** Bytes that arrived. */
  add(chunk: Buffer): void {
    this.#chunk = this.#chunk.length === 0 ? chunk : Buffer.concat([this.#chunk, chunk]);
  }

  /** Length of the message that is being received; 0 between messages. */
  get expected(): number {
    return this.#pieces === undefined ? 0 : this.#length;
  }

  /** Takes the memory for the message that is being received, now that it will come soon. */
  gather(): void {
    if (this.#pieces === undefined || this.#buffer !== undefined) return;
    this.#buffer = this.#scratch.take(this.#length);
    join(this.#pieces, this.#buffer);
    this.#pieces = [];
  }

  /** The message that was returned last, or is being received, is not needed any more. */
  release(): void {
    if (this.#buffer !== undefined) this.#scratch.give(this.#buffer);
    this.#buffer = undefined;
  }

  /** The next message that is complete. It is valid until {@link release}, which must be called before the next one. */
  next(): Buffer | undefined {
    if (this.#pieces !== undefined) return this.#goOn(this.#pieces);
    const chunk = this.#chunk;
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
    const piece = taken === chunk.length ? chunk : chunk.subarray(0, taken);
    if (this.#buffer !== undefined) this.#buffer.set(piece, this.#received - taken);
    else if (taken > 0) keep(pieces, piece);
    if (this.#received < this.#length) return undefined;
    this.gather();
    this.#pieces = undefined;
    return this.#buffer!.subarray(0, this.#length);
  }

  #readPrefix(prefix: Buffer): void {
    if (prefix[0] !== 0) throw new UnreadableStream('compressed');
    this.#length = prefix.readUInt32BE(1);
    if (this.#length > this.#maxLength) throw new UnreadableStream('too long');
  }
}

function join(pieces: readonly Buffer[], into: Buffer): void {
  let at = 0;
  for (const piece of pieces) {
    into.set(piece, at);
    at += piece.length;
  }
}

/** A byte is copied as often as the length of its piece doubles, until that is not short any more. */
function keep(pieces: Buffer[], piece: Buffer): void {
  for (let last = pieces.at(-1); last !== undefined && piece.length < SHORT; last = pieces.at(-1)) {
    if (last.length > piece.length) break;
    pieces.pop();
    piece = Buffer.concat([last, piece]);
  }
  pieces.push(piece);
}

const EMPTY = Buffer.alloc(0);
