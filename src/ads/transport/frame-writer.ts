import { constants, type Http2Stream } from 'node:http2';
import { Buffer } from 'node:buffer';
import { Metadata, type ServerDuplexStream } from '@grpc/grpc-js';
import { grpcStatus } from '../../base/grpc-status.ts';
import { PREFIX } from '../wire/deframer.ts';
import type { Frame } from '../wire/frames.ts';
import { SLICE_BYTES } from '../wire/slice-writer.ts';

/** How much is handed to a connection at once, if the connection keeps no buffer of that size. */
const PLAINTEXT_BYTES = 16 * SLICE_BYTES;

export type Call = ServerDuplexStream<Uint8Array, Uint8Array>;

/**
 * Where one stream's frames go. The fast way is the HTTP/2 stream below the call: grpc-js would copy every message for
 * every stream. (This is a private field of 1.14.7; if it is missing, messages go through `call.write`.) Never both.
 *
 * A large frame is written in pieces, each after the previous one was taken. With TLS these are slices: a connection
 * keeps a buffer as large as its largest write.
 */
export class FrameWriter {
  readonly #call: Call;
  readonly #http2: Http2Stream | undefined;
  readonly #atOnce: number;

  constructor(call: Call) {
    this.#call = call;
    this.#http2 = http2StreamOf(call);
    this.#atOnce = this.#http2?.session?.encrypted === true ? SLICE_BYTES : PLAINTEXT_BYTES;
    call.sendMetadata(new Metadata());
  }

  /** Bytes bypass grpc-js. */
  get direct(): boolean {
    return this.#http2 !== undefined;
  }

  /** Nothing of the stream is left. True if unknown, that is, without access to the HTTP/2 stream. */
  get gone(): boolean {
    return this.#http2?.destroyed ?? true;
  }

  /** The status is sent after what was written. */
  end(code: number, details: string): void {
    this.#call.emit('error', grpcStatus(code, details));
  }

  /** Ends the stream at once, and drops what was not taken. */
  cut(): void {
    this.#http2?.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
  }

  /**
   * Allows no new streams on this connection, which closes after its last one: the client reconnects, maybe to another
   * replica.
   */
  leaveConnection(): void {
    const session = this.#http2?.session;
    if (session !== undefined && !session.closed) session.close();
  }

  /** Calls `done` when the connection took the last byte, with false if it is gone. `progress`: some were taken. */
  write(frames: readonly Frame[], done: (taken: boolean) => void, progress: () => void): void {
    const http2 = this.#http2;
    if (http2 === undefined) {
      this.#writeMessages(frames, 0, done, progress);
      return;
    }
    const [first] = frames;
    if (frames.length === 1 && first!.slices.length === 1) {
      if (http2.destroyed || http2.writableEnded) done(false);
      else http2.write(first!.slices[0]!, (error) => done(error == null));
      return;
    }
    const slices = frames.flatMap((frame) => frame.slices);
    const next = (from: number): void => {
      if (http2.destroyed || http2.writableEnded) {
        done(false);
        return;
      }
      let to = from;
      for (let bytes = 0; to < slices.length; to++) {
        bytes += slices[to]!.length;
        if (to > from && bytes > this.#atOnce) break;
      }
      const last = to - 1;
      if (last > from) http2.cork();
      for (let i = from; i < last; i++) http2.write(slices[i]!);
      http2.write(slices[last]!, (error) => {
        if (error != null) done(false);
        else if (to < slices.length) {
          progress();
          next(to);
        } else done(true);
      });
      if (last > from) http2.uncork();
    };
    next(0);
  }

  #writeMessages(frames: readonly Frame[], from: number, done: (taken: boolean) => void, progress: () => void): void {
    const frame = frames[from];
    if (frame === undefined) {
      done(true);
      return;
    }
    if (this.#call.cancelled) {
      done(false);
      return;
    }
    const message = Buffer.concat(frame.slices).subarray(PREFIX);
    this.#call.write(message, (error: Error | null | undefined) => {
      if (error != null) {
        done(false);
        return;
      }
      progress();
      this.#writeMessages(frames, from + 1, done, progress);
    });
  }
}

/** The HTTP/2 stream below a call, if there is no interceptor in between. */
export function http2StreamOf(call: Call): Http2Stream | undefined {
  const inner = (call as unknown as { call?: { stream?: unknown; nextCall?: unknown } }).call;
  const stream = inner?.stream as Partial<Http2Stream> | undefined;
  // With interceptors `call` is a chain, and bytes must not bypass it.
  if (inner === undefined || inner.nextCall !== undefined || stream === undefined) return undefined;
  return typeof stream.write === 'function' && typeof stream.cork === 'function' && 'rstCode' in stream
    ? (stream as Http2Stream)
    : undefined;
}
