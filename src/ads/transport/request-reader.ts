import type { Buffer } from 'node:buffer';
import type { BufferPool } from '../wire/buffer-pool.ts';
import { Deframer, UnreadableStream } from '../wire/deframer.ts';
import { StateAge } from './state-age.ts';
import { Permit, type FairSemaphore } from '../../base/fair-semaphore.ts';
import { type Call, http2StreamOf } from './frame-writer.ts';

/** What all readers of a server share. */
export interface Receiving {
  /** The first message of a stream may not be longer: its sender has not identified itself yet. */
  readonly maxFirstLength: number;
  /** No message may be longer. */
  readonly maxLength: number;
  /** For all messages that are {@link LARGE} and unfinished, or kept until their stream is resumed. */
  readonly budget: ReceivingBudget;
  /** Buffers that they are received into. */
  readonly buffers: BufferPool;
}

/** Bytes. A client that announces longer messages than sidecars send takes no room from sidecars. */
export interface ReceivingBudget {
  /** For messages that are not {@link HUGE}. */
  readonly large: FairSemaphore;
  readonly huge: FairSemaphore;
}

export interface RequestReaderEvents {
  /** The bytes are valid only during the call; see {@link RequestReader.hold}. */
  message(bytes: Uint8Array): void;
  /** The client has nothing more to say. */
  end(): void;
  unreadable(error: UnreadableStream): void;
  /** Something else went wrong, such as that there is no memory left for its message. */
  failed(error: unknown): void;
  /**
   * A message began and does not end, of which this much has come; or room for it was missing for too long, which is not
   * the client's fault.
   */
  late(what: 'message' | 'room', come?: string): void;
}

/**
 * A longer message is received only when there is room for it. This much may wait in the HTTP/2 window of every stream
 * anyway. What has come by then is over this by a frame or two, and its buffer has 128 KiB.
 */
export const LARGE = 65_536;
/** Longer than what a sidecar sends when it reconnects to a mesh of ten thousand services with two ports each. */
export const HUGE = 4_194_304;

/**
 * How long a message may take from first byte to last, and how long nothing of it may arrive. Milliseconds. There is one
 * more for this many bytes received.
 */
interface Patience {
  readonly whole: number;
  readonly standstill: number;
  readonly bytesPerMs: number;
}

/** The speed of one HTTP/2 window per round trip of 130 ms. */
const PATIENT: Patience = { whole: 30_000, standstill: 10_000, bytesPerMs: 500 };
/**
 * If others wait for the room that it has; of time in which this process waits for clients, because in the rest of it
 * they wait for this process. Many that come at once share what there is: the speed is a quarter.
 */
const PRESSED: Patience = { whole: 2_000, standstill: 2_000, bytesPerMs: 125 };
/** A client whose message gets no room for this long is better served by another replica. */
const ROOM_MS = 60_000;

/** How long a message takes, by one clock. */
class Waits {
  readonly #whole = new StateAge();
  readonly #piece = new StateAge();

  /** Whether the message, or the wait for its next piece, has lasted longer than that. Undefined if there is none. */
  exceed(
    { whole, standstill, bytesPerMs }: Patience,
    { message, piece, received }: { message: number | undefined; piece: number | undefined; received: number },
    now: number,
  ): boolean {
    const lasts = this.#whole.of(message, now);
    const stands = this.#piece.of(piece, now);
    return lasts >= whole + received / bytesPerMs || stands >= standstill;
  }
}

/**
 * Where the requests of one stream come from: the HTTP/2 stream below the call, for the same reasons as
 * {@link FrameWriter} (for each message, grpc-js takes several rounds of the event loop and copies), or else the call.
 *
 * The requests of reconnecting clients are hundreds of kilobytes each. Only a limited number of these bytes are
 * received at a time; flow control holds up the rest.
 */
export class RequestReader {
  readonly #call: Call;
  readonly #events: RequestReaderEvents;
  readonly #deframer: Deframer;
  readonly #http2: ReturnType<typeof http2StreamOf>;
  readonly #maxLength: number;
  readonly #address: string;
  readonly #budget: ReceivingBudget;
  /** Room for a large message, held or waited for. */
  #room: Permit | undefined;
  /** How long it has waited for room, and its message for its end. */
  readonly #waited = new StateAge();
  readonly #patient = new Waits();
  readonly #pressed = new Waits();
  /** Messages received. */
  #count = 0;
  /** Pieces of messages received. */
  #chunks = 0;
  /** Its messages wait; the stream below is paused once more of them comes. */
  #paused = false;
  #pausedBelow = false;
  #ended = false;
  /** The client has ended the stream, and its last messages are yet to be taken. */
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
    this.#deframer = new Deframer(maxFirstLength, buffers);
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
    // grpc-js has paused it until the call is read.
    stream.resume();
  }

  /** For a large message: held or waited for. */
  get room(): readonly Permit[] {
    return this.#room === undefined ? [] : [this.#room];
  }

  /** There is no room for its message yet. */
  get waitsForRoom(): boolean {
    return this.#room?.waiting === true;
  }

  /** Pauses; the bytes of the message that just came stay as they are until {@link resume}. */
  hold(bytes: Uint8Array): Uint8Array {
    this.#paused = true;
    if (this.#http2 === undefined) this.#pauseBelow();
    // A short one is copied, if the chunk that it came in is much longer.
    return 2 * bytes.byteLength >= bytes.buffer.byteLength ? bytes : new Uint8Array(bytes);
  }

  resume(): void {
    this.#paused = false;
    this.#leaveRoom();
    this.#resumeBelow();
    this.#take();
    this.#finish();
  }

  #pauseBelow(): void {
    this.#pausedBelow = true;
    (this.#http2 ?? this.#call).pause();
  }

  #resumeBelow(): void {
    if (!this.#pausedBelow) return;
    this.#pausedBelow = false;
    (this.#http2 ?? this.#call).resume();
  }

  /** The stream below may live on for a while; nothing of its messages does. */
  close(): void {
    this.#ended = true;
    this.#deframer.clear();
    this.#leaveRoom();
  }

  /**
   * Time passes, about a second.
   *
   * @param idle milliseconds in which the event loop has waited; without it, it always has.
   */
  tick(now: number, idle = now): void {
    if (this.#waited.of(this.waitsForRoom || undefined, now) >= ROOM_MS) this.#events.late('room');
    const { expected, received } = this.#deframer;
    // What waits for room cannot come.
    const unfinished = !this.#paused && !this.#ended && !this.waitsForRoom && expected > 0;
    const message = unfinished ? this.#count : undefined;
    const piece = unfinished ? this.#chunks : undefined;
    const isLate = this.#patient.exceed(PATIENT, { message, piece, received }, now);
    const isPressed = this.#pressed.exceed(PRESSED, { message, piece, received }, idle);
    if (!isLate && !(isPressed && this.#room?.wanted === true)) return;
    this.#room?.putBehind();
    this.#events.late('message', `${received} of ${expected} bytes`);
  }

  #received(chunk: Buffer): void {
    if (this.#ended) return;
    this.#chunks++;
    this.#deframer.add(chunk);
    if (this.#paused) this.#pauseBelow();
    else this.#take();
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
    this.#contain(() => {
      while (!this.#paused && !this.#ended) {
        const message = this.#deframer.next();
        if (message === undefined) break;
        this.#message(message);
      }
    });
    this.#finish();
    if (!this.#paused && !this.#ended && this.#needsRoom && this.#room === undefined) this.#waitForRoom();
  }

  /** What goes wrong here ends this stream, and not the one that has just made room for it. */
  #contain(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.close();
      if (error instanceof UnreadableStream) this.#events.unreadable(error);
      else this.#events.failed(error);
    }
  }

  /** Only after as much of it has arrived as any stream may have anyway: announcing a message takes no room. */
  get #needsRoom(): boolean {
    const { expected, received } = this.#deframer;
    return expected > LARGE && received >= LARGE;
  }

  #waitForRoom(): void {
    this.#pauseBelow();
    const { expected } = this.#deframer;
    this.#room = new Permit(expected > HUGE ? this.#budget.huge : this.#budget.large, this.#address);
    this.#room.take(
      () =>
        this.#contain(() => {
          this.#deframer.reserve();
          if (!this.#paused) this.#resumeBelow();
        }),
      expected,
    );
  }

  #leaveRoom(): void {
    this.#room?.leave();
    this.#room = undefined;
  }

  #finish(): void {
    if (!this.#endsAfter || this.#paused || this.#ended) return;
    this.#ended = true;
    this.#events.end();
  }
}
