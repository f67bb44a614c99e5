import type { Buffer } from 'node:buffer';
import { Deframer, type Scratch, UnreadableStream } from './deframer.ts';
import { type Gate, Place } from './gate.ts';
import { type Call, http2StreamOf } from './sink.ts';

/** What all sources of a server share. */
export interface Receiving {
  /** No message may be longer. */
  readonly maxLength: number;
  /** Whoever receives a large message has a place of it. */
  readonly large: Gate;
  readonly scratch: Scratch;
}

export interface SourceEvents {
  /** The bytes are valid during the call only. */
  message(bytes: Uint8Array): void;
  /** The client has no more to say. */
  end(): void;
  unreadable(error: UnreadableStream): void;
}

/** A message that is longer than this is received while few others are. */
const LARGE = 65_536;

/**
 * Where the requests of one stream come from: the HTTP/2 stream below the call, for the reasons of {@link Sink} (grpc-js
 * takes several rounds of the event loop and copies for each message), else the call.
 *
 * The requests of clients that come back are hundreds of kilobytes each. Only so many are received at a time; the
 * others are held up by flow control.
 */
export class Source {
  readonly #call: Call;
  readonly #events: SourceEvents;
  readonly #deframer: Deframer;
  readonly #http2: ReturnType<typeof http2StreamOf>;
  readonly #place: Place;
  /** Has had its place for longer than a tick. */
  #slow = false;
  #paused = false;
  #ended = false;
  /** Said by the client before the last messages were taken. */
  #endsAfter = false;

  constructor(call: Call, { maxLength, large, scratch }: Receiving, events: SourceEvents) {
    this.#call = call;
    this.#events = events;
    this.#deframer = new Deframer(maxLength, scratch);
    this.#place = new Place(large);
    this.#http2 = http2StreamOf(call);
    const stream = this.#http2 ?? call;
    stream.on('end', () => {
      this.#endsAfter = true;
      this.#finish();
    });
    if (this.#http2 === undefined) {
      stream.on('data', (bytes: Uint8Array) => events.message(bytes));
      return;
    }
    stream.removeAllListeners('data');
    stream.on('data', (chunk: Buffer) => this.#received(chunk));
    // grpc-js has paused it, until somebody reads the call.
    stream.resume();
  }

  pause(): void {
    this.#paused = true;
    (this.#http2 ?? this.#call).pause();
  }

  resume(): void {
    this.#paused = false;
    (this.#http2 ?? this.#call).resume();
    this.#take();
    this.#finish();
  }

  close(): void {
    this.#ended = true;
    this.#place.leave();
  }

  /** Time passes, about a second: a client that is slow to send its message lets others go first for a while. */
  tick(): void {
    if (!this.#place.had) return;
    if (this.#slow) this.#place.leave();
    this.#slow = true;
  }

  #received(chunk: Buffer): void {
    if (this.#ended) return;
    this.#deframer.add(chunk);
    if (!this.#paused) this.#take();
  }

  #take(): void {
    if (this.#http2 === undefined) return;
    try {
      while (!this.#paused && !this.#ended) {
        const message = this.#deframer.next();
        if (message === undefined) break;
        this.#place.leave();
        this.#events.message(message);
      }
    } catch (error) {
      if (!(error instanceof UnreadableStream)) throw error;
      this.close();
      this.#events.unreadable(error);
      return;
    }
    this.#finish();
    if (!this.#paused && !this.#ended && this.#deframer.expected > LARGE && !this.#place.had) this.#waitForPlace();
  }

  #waitForPlace(): void {
    this.#http2?.pause();
    this.#place.take(() => {
      this.#slow = false;
      if (!this.#paused) this.#http2?.resume();
    });
  }

  #finish(): void {
    if (!this.#endsAfter || this.#paused || this.#ended) return;
    this.#ended = true;
    this.#events.end();
  }
}
