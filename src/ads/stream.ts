import { status as Status } from '@grpc/grpc-js';
import type { Delivery } from './delivery.ts';
import type { Frame } from './frames.ts';
import { SLICE_BYTES } from './slice-writer.ts';
import { type Gate, Place } from './gate.ts';
import { readNode } from './node.ts';
import { type Call, Sink } from './sink.ts';
import { type Receiving, Source } from './source.ts';
import type { ConnectedProxy } from './types.ts';
import { type DiscoveryRequest, BadRequest } from './wire-read.ts';
import type { WorldView } from './world.ts';

/** What a stream needs of the server. */
export interface StreamHost {
  readonly announcing: Gate;
  readonly complete: Gate;
  readonly receiving: Receiving;
  now(): number;
  read(bytes: Uint8Array): DiscoveryRequest;
  open(stream: AdsStream, view: WorldView): Delivery;
  connected(proxy: ConnectedProxy): void;
  closed(stream: AdsStream): void;
  wake(stream: AdsStream): void;
  /** Something that takes milliseconds may be done now, before others have their turn. */
  hasTime(): boolean;
  failed(stream: AdsStream, error: unknown): void;
}

/** A connection that takes nothing for so long makes room for others; its bytes stay where they are. */
const STALLED_MS = 2_000;
/** A longer request may take milliseconds. */
const LARGE = 65_536;
/** Whoever does not say what it is for so long is no proxy. */
const SILENT_MS = 60_000;

/** One ADS stream: reads requests, and writes what its delivery owes, one piece at a time. */
export class AdsStream {
  readonly id: string;
  readonly #openedAt: number;
  /** Who it is; undefined before its first request. The rest of the node is not kept. */
  proxy: { readonly nodeId: string; readonly build: string } | undefined;
  delivery: Delivery | undefined;
  /** Is in the queue of streams to be served. */
  queued = false;
  readonly #host: StreamHost;
  readonly #call: Call;
  readonly #sink: Sink;
  readonly #source: Source;
  readonly #announcing: Place;
  #announced = false;
  readonly #complete: Place;
  /** A request that waits for the stream's turn; meanwhile no other is read. */
  #waiting: DiscoveryRequest | undefined;
  #writing = false;
  /** Since its last turn. */
  #timePassed = false;
  #progressAt = 0;
  #closed = false;

  constructor(id: string, call: Call, host: StreamHost) {
    this.id = id;
    this.#host = host;
    this.#call = call;
    this.#announcing = new Place(host.announcing);
    this.#complete = new Place(host.complete);
    this.#openedAt = host.now();
    this.#sink = new Sink(call);
    this.#source = new Source(call, host.receiving, {
      message: (bytes) => this.#received(bytes),
      end: () => call.end(),
      unreadable: (error) =>
        this.end(error.reason === 'too long' ? Status.RESOURCE_EXHAUSTED : Status.UNIMPLEMENTED, error.message),
    });
    call.on('cancelled', () => this.#close());
    call.on('close', () => this.#close());
    call.on('error', () => this.#close());
  }

  /** The rest of the program has been told of it. */
  get announced(): boolean {
    return this.#announced;
  }

  /**
   * What it may see from now on; returns what it saw before. This only marks: what follows from it is for its turn.
   */
  world(view: WorldView): WorldView | undefined {
    const former = this.delivery?.view;
    if (this.delivery === undefined) this.delivery = this.#host.open(this, view);
    else this.delivery.move(view);
    this.#host.wake(this);
    return former;
  }

  /** Its turn: handles the request that waits, or writes what is owed, unless a former write is still under way. */
  serve(): void {
    this.contain(() => {
      if (this.delivery === undefined) return;
      if (this.#timePassed) this.delivery.tick(this.#host.now());
      this.#timePassed = false;
      if (this.#waiting === undefined) this.#serve(this.delivery);
      else this.#handleWaiting(this.#waiting);
    });
  }

  /** Whatever goes wrong with a stream ends that stream and nothing else. */
  contain(work: () => void): void {
    if (this.#closed) return;
    try {
      work();
    } catch (error) {
      if (error instanceof BadRequest) {
        this.end(error.tooMuch ? Status.RESOURCE_EXHAUSTED : Status.INVALID_ARGUMENT, error.message);
        return;
      }
      this.#host.failed(this, error);
      this.end(Status.INTERNAL, 'internal error');
    }
  }

  tick(now: number): void {
    if (this.#writing && now - this.#progressAt >= STALLED_MS) this.#complete.leave();
    if (this.proxy === undefined && now - this.#openedAt >= SILENT_MS) {
      this.end(Status.DEADLINE_EXCEEDED, 'no request came');
      return;
    }
    this.#source.tick();
    this.#timePassed = true;
    if (this.delivery !== undefined) this.#host.wake(this);
  }

  end(code: number, details: string): void {
    if (this.#closed) return;
    this.#call.emit('error', { code, details });
    this.#close();
  }

  #written(taken: boolean): void {
    this.#writing = false;
    if (!taken || this.#closed) return;
    const { delivery } = this;
    if (delivery?.owesAll !== true) this.#complete.leave();
    if (delivery?.owes === true) this.#host.wake(this);
  }

  #received(bytes: Uint8Array): void {
    this.contain(() => {
      if (this.proxy === undefined) this.#introduce(this.#wait(bytes));
      else if (this.delivery?.waits === true || (bytes.length > LARGE && !this.#host.hasTime())) this.#wait(bytes);
      else this.#handle(this.#host.read(bytes));
    });
  }

  /**
   * Requests wait for the stream's turn where that may take long: when much has to be compared first, and when they are
   * large and others were, too. The first one waits for what the proxy may see.
   */
  #wait(bytes: Uint8Array): DiscoveryRequest {
    this.#waiting = this.#host.read(new Uint8Array(bytes));
    this.#source.pause();
    if (this.delivery !== undefined) this.#host.wake(this);
    return this.#waiting;
  }

  #handleWaiting(request: DiscoveryRequest): void {
    this.#announcing.leave();
    this.#waiting = undefined;
    this.#handle(request);
    this.#host.wake(this);
    this.#source.resume();
  }

  #serve(delivery: Delivery): void {
    delivery.catchUp();
    if (this.#writing) return;
    if (delivery.owesAll && !this.#complete.had) {
      this.#complete.take(() => this.#host.wake(this));
      if (!this.#complete.had) return;
    }
    const now = this.#host.now();
    const frames: Frame[] = [];
    for (let bytes = 0; bytes < SLICE_BYTES;) {
      const frame = delivery.next(now);
      if (frame === undefined) break;
      frames.push(frame);
      bytes += frame.length;
    }
    if (frames.length === 0) {
      this.#complete.leave();
      return;
    }
    this.#writing = true;
    this.#progressAt = now;
    this.#sink.write(
      frames,
      (taken) => this.#written(taken),
      () => {
        this.#progressAt = this.#host.now();
      },
    );
  }

  #introduce(request: DiscoveryRequest): void {
    if (request.node === undefined) throw new BadRequest('the first request of a stream has no node');
    const proxy = readNode(request.node, this.id);
    if (proxy.nodeId === '') throw new BadRequest('the node has no id');
    this.proxy = { nodeId: proxy.nodeId, build: proxy.build };
    this.#announcing.take(() => {
      this.contain(() => {
        this.#announced = true;
        this.#host.connected(proxy);
      });
    });
  }

  #handle(request: DiscoveryRequest): void {
    this.delivery?.request(request, this.#host.now());
  }

  #close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#announcing.leave();
    this.#complete.leave();
    this.#source.close();
    this.#waiting = undefined;
    this.#host.closed(this);
  }
}
