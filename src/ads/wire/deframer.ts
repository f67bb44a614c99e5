import { Buffer } from 'node:buffer';
import type { BufferPool } from './buffer-pool.ts';

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

/**
 * Cuts the bytes of a stream into messages: a flag, four bytes of length, the message. A message that comes in one
 * piece is not copied; otherwise its pieces go into a buffer of the pool, which grows with them unless there is
 * room for all ({@link reserve}). Buffers of the pool are less than twice as long as is asked for, so a message
 * takes less than twice the bytes received so far, or, once there is room, twice its length; beside it, only its last
 * chunk is kept.
 */
export class Deframer {
  /** No message may be longer; read when a message begins. */
  maxLength: number;
  /** What has arrived of one; made when one arrives in pieces. */
  #prefix: Buffer | undefined;
  #prefixLength = 0;
  #length = 0;
  /** A message is being received: its first bytes are in the buffer. */
  #began = false;
  #received = 0;
  /** Of the message that is being received, or of the last one. */
  #buffer: Buffer = EMPTY;
  #chunk: Buffer = EMPTY;
  readonly #pool: BufferPool;

  constructor(maxLength: number, pool: BufferPool) {
    this.maxLength = maxLength;
    this.#pool = pool;
  }

  /** Takes bytes that arrived. */
  add(chunk: Buffer): void {
    this.#chunk = this.#chunk.length === 0 ? chunk : Buffer.concat([this.#chunk, chunk]);
  }

  /** Forgets what has arrived. */
  clear(): void {
    this.#chunk = EMPTY;
    this.#giveBuffer();
    this.#began = false;
    this.#prefixLength = 0;
  }

  /** There is room for the whole message that is being received. */
  reserve(): void {
    this.#reserve(this.#length);
  }

  /** Length of the message that is being received; 0 between messages. */
  get expected(): number {
    return this.#began ? this.#length : 0;
  }

  /** How much of that message has arrived. */
  get received(): number {
    return this.#began ? this.#received : 0;
  }

  /** The next complete message, valid until the next call. */
  next(): Buffer | undefined {
    if (this.#began) return this.#goOn();
    this.#giveBuffer();
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
    this.#began = true;
    return this.#goOn();
  }

  #goOn(): Buffer | undefined {
    const chunk = this.#chunk;
    const taken = Math.min(this.#length - this.#received, chunk.length);
    const needed = this.#received + taken;
    if (this.#buffer.length < needed) this.#reserve(needed);
    chunk.copy(this.#buffer, this.#received, 0, taken);
    this.#received = needed;
    this.#chunk = taken === chunk.length ? EMPTY : chunk.subarray(taken);
    if (this.#received < this.#length) return undefined;
    this.#began = false;
    return this.#buffer.subarray(0, this.#length);
  }

  #reserve(length: number): void {
    const buffer = this.#pool.take(length);
    this.#buffer.copy(buffer, 0, 0, this.#received);
    this.#giveBuffer();
    this.#buffer = buffer;
  }

  #giveBuffer(): void {
    if (this.#buffer !== EMPTY) this.#pool.give(this.#buffer);
    this.#buffer = EMPTY;
  }

  #readPrefix(prefix: Buffer): void {
    if (prefix[0] !== 0) throw new UnreadableStream('compressed');
    this.#length = prefix.readUInt32BE(1);
    if (this.#length > this.maxLength) throw new UnreadableStream('too long', this.maxLength);
  }
}

const EMPTY = Buffer.alloc(0);
