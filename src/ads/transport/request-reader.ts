import type { Buffer } from 'node:buffer';
import type { BufferPool } from '../wire/buffer-pool.ts';
import { Deframer, UnreadableStream } from '../wire/deframer.ts';
import { Lasting } from './lasting.ts';
import { Permit, type FairSemaphore } from './fair-semaphore.ts';
import { type Call, http2StreamOf } from './frame-writer.ts';

/** What all readers of a server share. */
export interface Receiving {
  /** The first message of a stream may not be longer: who sends it has not said who it is. */
  readonly maxFirstLength: number;
  /** No message may be longer. */
  readonly maxLength: number;
  /** For all messages that are {@link LARGE} and not finished, or kept until their stream is resumed. */
  readonly budget: ReceivingBudget;
  /** What they are received into. */
  readonly buffers: BufferPool;
}

/** Bytes. Whoever announces longer messages than sidecars send takes no room from sidecars. */
export interface ReceivingBudget {
  /** For messages that are not {@link HUGE}. */
  readonly large: FairSemaphore;
  readonly huge: FairSemaphore;
}

export interface RequestReaderEvents {
  /** The bytes are valid during the call only; see {@link RequestReader.hold}. */
  message(bytes: Uint8Array): void;
  /** The client has no more to say. */
  end(): void;
  unreadable(error: UnreadableStream): void;
  /** A message has begun and does not end; or there was no room for it for too long, which is not the client's fault. */
  late(what: 'message' | 'room'): void;
}

/**
 * A message that is longer than this is received when there is room for it. As much may wait in the HTTP/2 window of
 * every stream anyway.
 */
export const LARGE = 65_536;
/** Longer than what a sidecar sends that comes back to a mesh of ten thousand services with two ports each. */
export const HUGE = 4_194_304;

/** How long a message may take from its first bytes to its last, and how long nothing of it may come. Milliseconds. */
interface Patience {
  readonly whole: number;
  readonly standstill: number;
}

const PATIENT: Patience = { whole: 30_000, standstill: 10_000 };
/** With room that others wait for. */
const PRESSED: Patience = { whole: 2_000, standstill: 2_000 };
/** And for so many bytes that have come a millisecond more. A window of HTTP/2 for each round trip of 130 ms is as fast. */
const BYTES_PER_MS = 500;
/** Who is not received for so long is better served by another replica. */
const ROOM_MS = 60_000;

/**
 * Where the requests of one stream come from: the HTTP/2 stream below the call, for the reasons of {@link FrameWriter}
 * (grpc-js takes several rounds of the event loop and copies for each message), else the call.
 *
 * The requests of clients that come back are hundreds of kilobytes each. Only so many bytes of them are received at a
 * time; the others are held up by flow control.
 */
export class RequestReader {
  readonly #call: Call;
  readonly #events: RequestReaderEvents;
  readonly #deframer: Deframer;
  readonly #http2: ReturnType<typeof http2StreamOf>;
  readonly #maxLength: number;
  readonly #address: string;
  readonly #budget: ReceivingBudget;
  readonly #buffers: BufferPool;
  /** Of a large message, had or waited for. */
  #room: Permit | undefined;
  /** What a large message is received into, until it has been handled. */
  #buffer: Buffer | undefined;
  /** What the reader waits for, and for how long. */
  readonly #waits = new Lasting();
  /** The same for a standstill. */
  readonly #stands = new Lasting();
  /** Messages that came. */
  #count = 0;
  /** Pieces of messages that came. */
  #chunks = 0;
  #paused = false;
  #ended = false;
  /** Said by the client before the last messages were taken. */
  #endsAfter = false;

  /** @param address of the client. */
  constructor(
    call: Call,
    address: string,
    { maxFirstLength, maxLength, budget, buffers }: Receiving,
    events: RequestReaderEvents,
  ) {
    this.#call = call;
    this.#events = events;
    this.#deframer = new Deframer(maxFirstLength);
    this.#buffers = buffers;
    this.#maxLength = maxLength;
    this.#address = address;
    this.#budget = budget;
    this.#http2 = http2StreamOf(call);
    const stream = this.#http2 ?? call;
    stream.on('end', () => {
      this.#endsAfter = true;
      this.#finish();
    });
    if (this.#http2 === undefined) {
      stream.on('data', (bytes: Uint8Array) => this.#receivedWhole(bytes));
      return;
    }
    stream.removeAllListeners('data');
    stream.on('data', (chunk: Buffer) => this.#received(chunk));
    // grpc-js has paused it, until somebody reads the call.
    stream.resume();
  }

  /** There is no room for its message yet. */
  get waitsForRoom(): boolean {
    return this.#room?.waiting === true;
  }

  /** Pauses; the bytes of the message that has just come stay as they are until {@link resume}. */
  hold(bytes: Uint8Array): Uint8Array {
    this.#paused = true;
    (this.#http2 ?? this.#call).pause();
    // A short one is copied: what it came in is much longer.
    return bytes.buffer === this.#buffer?.buffer ? bytes : new Uint8Array(bytes);
  }

  resume(): void {
    this.#paused = false;
    this.#leaveRoom();
    (this.#http2 ?? this.#call).resume();
    this.#take();
    this.#finish();
  }

  /** The stream below may live on for a while; nothing of its messages does. */
  close(): void {
    this.#ended = true;
    this.#deframer.clear();
    this.#leaveRoom();
  }

  /** Time passes, about a second. */
  tick(now: number): void {
    if (this.waitsForRoom) {
      if (this.#waits.of('room', now) >= ROOM_MS) this.#events.late('room');
      return;
    }
    const { expected, received } = this.#deframer;
    const unfinished = !this.#paused && !this.#ended && expected > 0;
    const { whole, standstill } = this.#room?.wanted === true ? PRESSED : PATIENT;
    const lasts = this.#waits.of(unfinished ? this.#count : undefined, now);
    const stands = this.#stands.of(unfinished ? this.#chunks : undefined, now);
    if (lasts < whole + received / BYTES_PER_MS && stands < standstill) return;
    this.#room?.putBehind();
    this.#events.late('message');
  }

  #received(chunk: Buffer): void {
    if (this.#ended) return;
    this.#chunks++;
    this.#deframer.add(chunk);
    if (!this.#paused) this.#take();
  }

  #receivedWhole(bytes: Uint8Array): void {
    if (this.#ended) return;
    if (bytes.length > this.#deframer.maxLength) {
      this.close();
      this.#events.unreadable(new UnreadableStream('too long', this.#deframer.maxLength));
      return;
    }
    this.#message(bytes);
  }

  #message(bytes: Uint8Array): void {
    this.#count++;
    this.#deframer.maxLength = this.#maxLength;
    this.#events.message(bytes);
    if (!this.#paused) this.#leaveRoom();
  }

  #take(): void {
    if (this.#http2 === undefined) return;
    try {
      while (!this.#paused && !this.#ended) {
        const message = this.#deframer.next();
        if (message === undefined) break;
        this.#message(message);
      }
    } catch (error) {
      if (!(error instanceof UnreadableStream)) throw error;
      this.close();
      this.#events.unreadable(error);
      return;
    }
    this.#finish();
    if (!this.#paused && !this.#ended && this.#needsRoom && this.#room === undefined) this.#waitForRoom();
  }

  /** Not before as much of it has come as streams may have anyway: to announce a message takes nothing. */
  get #needsRoom(): boolean {
    const { expected, received } = this.#deframer;
    return expected > LARGE && received >= LARGE;
  }

  #waitForRoom(): void {
    this.#http2?.pause();
    const { expected } = this.#deframer;
    this.#room = new Permit(expected > HUGE ? this.#budget.huge : this.#budget.large, this.#address);
    this.#room.take(() => {
      // It may have come meanwhile.
      if (this.#deframer.expected !== expected) return;
      this.#buffer = this.#buffers.take(expected);
      this.#deframer.receiveInto(this.#buffer);
      if (!this.#paused) this.#http2?.resume();
    }, expected);
  }

  #leaveRoom(): void {
    if (this.#buffer !== undefined) this.#buffers.give(this.#buffer);
    this.#buffer = undefined;
    this.#room?.leave();
    this.#room = undefined;
  }

  #finish(): void {
    if (!this.#endsAfter || this.#paused || this.#ended) return;
    this.#ended = true;
    this.#events.end();
  }
}
