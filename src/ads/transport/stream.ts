import { BadRequest } from '../bad-request.ts';
import { Answering, type AnsweringHost } from './answering.ts';
import { status as Status } from '@grpc/grpc-js';
import type { Delivery } from '../protocol/delivery.ts';
import { drainTimeOf } from '../protocol/listener-drain-time.ts';
import type { Endings } from './endings.ts';
import type { Frame } from '../wire/frames.ts';
import { SLICE_BYTES } from '../wire/slice-writer.ts';
import { StateAge } from './state-age.ts';
import type { Limit } from './limits.ts';
import { readNode, UnfitNode } from './node.ts';
import { addressOfPeer } from './address.ts';
import { Permit, type FairSemaphore } from '../../base/fair-semaphore.ts';
import { type Call, FrameWriter } from './frame-writer.ts';
import { type Receiving, RequestReader } from './request-reader.ts';
import type { Waiting } from './turns.ts';
import { TypeHistory } from './type-history.ts';
import type { TenantOf } from '../tenant.ts';
import type { ConnectedProxy, Denial, PeerIdentity } from '../types.ts';
import type { DiscoveryRequest } from '../wire/wire-read.ts';
import type { Rollout } from '../rollouts/rollout.ts';
import type { WorldView } from '../store/world.ts';

/** What a stream needs of the server. */
export interface StreamHost extends AnsweringHost {
  readonly announcing: FairSemaphore;
  readonly complete: FairSemaphore;
  readonly receiving: Receiving;
  readonly endings: Endings;
  /** Maximum age of the next stream, in milliseconds. */
  maxAge(): number;
  now(): number;
  /** Milliseconds in which the event loop has waited; only differences count. */
  idle(): number;
  read(bytes: Uint8Array): DiscoveryRequest;
  open(stream: AdsStream, view: WorldView): Delivery;
  readonly tenantOf: TenantOf;
  admit(proxy: ConnectedProxy, address: string): Denial | undefined;
  connected(proxy: ConnectedProxy, address: string): void;
  isDeferred(stream: AdsStream): boolean;
  closed(stream: AdsStream): void;
  limited(limit: Limit): void;
  /** This server ends the stream, with this gRPC status. */
  ended(stream: AdsStream, code: number, details: string): void;
  /** The connection has taken what it was handed, after this many milliseconds. */
  taken(stream: AdsStream, ms: number): void;
  /** The stream uses the public API of grpc-js. */
  indirect(): void;
  wake(stream: AdsStream): void;
  /** What arrives now may be handled at once; otherwise others have their turn first. */
  hasTime(): boolean;
  failed(stream: AdsStream, error: unknown): void;
}

/** Why a stream ends that has done nothing wrong. */
export const OLD_AGE = 'the stream has reached its maximum age';

/** What is kept of a stream's node. */
export interface ProxyIdentity {
  readonly nodeId: string;
  readonly build: string;
  readonly tenant: string;
  /** How long its former listeners keep serving, in milliseconds, if it says so. */
  readonly drainMs: number | undefined;
}

/** A connection that takes its data more slowly makes room for others; its bytes stay where they are. */
const STALLED_MS = 2_000;
const BYTES_PER_MS = 8_000;
/** A connection that takes nothing for this long is ended, even if it answers pings: its response stays in memory. */
const STUCK_MS = 120_000;
/** A client that is not a proxy by then is disconnected: it sent no request, or only asked questions. */
const SILENT_MS = 60_000;
/**
 * A client whose configuration is being computed keeps its place for this long: those that would come instead need the
 * same time of this replica, and it would begin again elsewhere.
 */
const COMPUTED_MS = 300_000;
/** A client whose turn has not come yet makes room for others after this long. */
const WORLD_MS = 60_000;
/** The same if others wait for what it holds. */
const DEFERRED_MS = 10_000;

/** One ADS stream: reads requests, and writes what its delivery owes, one piece at a time. */
export class AdsStream {
  readonly id: string;
  /** IP address of the client. */
  readonly address: string;
  /** Address and port of the client: the same for all streams of a connection. */
  readonly connection: string;
  readonly openedAt: number;
  readonly history = new TypeHistory();
  readonly #endsAt: number;
  /** Who the client is; undefined before its first request. The rest of the node is not kept. */
  proxy: ProxyIdentity | undefined;
  delivery: Delivery | undefined;
  /** In the queue of streams to be served. */
  queued = false;
  behind: Waiting | undefined;
  readonly #identity: PeerIdentity | undefined;
  readonly #host: StreamHost;
  readonly #writer: FrameWriter;
  readonly #reader: RequestReader;
  readonly #announcing: Permit;
  #announced = false;
  readonly #complete: Permit;
  readonly #answering: Answering;
  /** A request that waits for the stream's turn; no other is read meanwhile. */
  #request: DiscoveryRequest | undefined;
  #writing = false;
  /** Time has passed since its last turn. */
  #timePassed = false;
  #writingSince = 0;
  #writingBytes = 0;
  #progressAt = 0;
  /** Made once: a stream is written to for every change. */
  readonly #taken = (taken: boolean): void => this.#written(taken);
  readonly #progressed = (): void => void (this.#progressAt = this.#host.now());
  readonly #stuck = new StateAge();
  readonly #silent = new StateAge();
  readonly #worldless = new StateAge();
  #closed = false;

  constructor(id: string, call: Call, host: StreamHost, identity?: PeerIdentity) {
    this.id = id;
    this.#identity = identity;
    this.connection = call.getPeer();
    this.address = addressOfPeer(this.connection);
    this.#host = host;
    this.#announcing = new Permit(host.announcing, this.address);
    this.#complete = new Permit(host.complete, this.address);
    this.openedAt = host.now();
    this.#endsAt = this.openedAt + host.maxAge();
    this.#writer = new FrameWriter(call);
    if (!this.#writer.direct) host.indirect();
    const failed = (error: unknown): void =>
      this.contain(() => {
        throw error;
      });
    this.#answering = new Answering(host, this.#writer, this.address, {
      answered: () => this.#reader.resume(),
      denied: ({ code, message }) => this.end(Status[code], message),
      failed,
    });
    this.#reader = new RequestReader(call, this.address, host.receiving, {
      message: (bytes) => this.#received(bytes),
      end: () => {
        call.end();
        this.#close();
        host.endings.add(this.#writer);
      },
      unreadable: (error) => {
        if (error.reason === 'too long') this.#limit('message_size', Status.RESOURCE_EXHAUSTED, error.message);
        else this.end(Status.UNIMPLEMENTED, error.message);
      },
      failed,
      late: (what, come) => {
        if (what === 'message')
          this.#limit('message_time', Status.DEADLINE_EXCEEDED, `the message was not completed in time: ${come}`);
        else
          this.#limit('message_memory', Status.UNAVAILABLE, 'no receive buffer became available; try another replica');
      },
    });
    call.on('cancelled', () => this.#close());
    call.on('close', () => this.#close());
    call.on('error', () => this.#close());
  }

  /** The rest of the program has been told about it. */
  get announced(): boolean {
    return this.#announced;
  }

  /**
   * Sets what it may see from now on; returns what it saw before. This only marks: the consequences are worked out in
   * its turn.
   */
  world(view: WorldView, rollouts?: readonly Rollout[]): WorldView | undefined {
    const former = this.delivery?.view;
    if (this.delivery === undefined) this.delivery = this.#host.open(this, view);
    else this.delivery.move(view, rollouts);
    this.#host.wake(this);
    return former;
  }

  rejected(typeUrl: string, message: string): void {
    const subscription = this.delivery?.subscriptions.find((each) => each?.type.typeUrl === typeUrl);
    this.history.rejected(typeUrl, message, subscription?.inFlight.sentNonce ?? 0);
  }

  /** Its turn: handles the waiting request, and writes what is owed unless an earlier write is still under way. */
  serve(now = this.#host.now()): void {
    const { delivery } = this;
    if (this.#closed || delivery === undefined) return;
    try {
      if (this.#timePassed) delivery.tick(now);
      this.#timePassed = false;
      if (this.#request !== undefined) this.#handleWaiting(this.#request);
      this.#serve(delivery, now);
    } catch (error) {
      this.#failed(error);
    }
  }

  /** Whatever goes wrong with a stream ends that stream and nothing else. */
  contain(work: () => void): void {
    if (this.#closed) return;
    try {
      work();
    } catch (error) {
      this.#failed(error);
    }
  }

  #failed(error: unknown): void {
    if (error instanceof BadRequest) {
      if (error instanceof UnfitNode) this.#host.limited('node_size');
      else if (error.tooMuch) this.#host.limited('request_size');
      this.end(error.tooMuch ? Status.RESOURCE_EXHAUSTED : Status.INVALID_ARGUMENT, error.message);
      return;
    }
    this.#host.failed(this, error);
    this.end(Status.INTERNAL, 'internal error');
  }

  tick(now: number): void {
    if (this.#writing && now - this.#writingSince >= STALLED_MS + this.#writingBytes / BYTES_PER_MS)
      this.#complete.leave();
    const silent = this.proxy === undefined && !this.#reader.waitsForRoom;
    if (this.#silent.of(silent || undefined, now) >= SILENT_MS) {
      if (this.#answering.began) this.end(Status.DEADLINE_EXCEEDED, 'questions are answered for 60 s');
      else this.#limit('first_request_time', Status.DEADLINE_EXCEEDED, 'no discovery request within 60 s');
    } else if (this.#isWorldlessTooLong(now)) {
      for (const permit of this.#wanted) permit.putBehind();
      this.#limit('world_time', Status.UNAVAILABLE, 'no configuration was assigned in time; try another replica');
    } else if (this.#stuck.of(this.#writing ? this.#progressAt : undefined, now) >= STUCK_MS) {
      this.#limit('write_time', Status.DEADLINE_EXCEEDED, 'client stopped reading responses');
    } else if (now >= this.#endsAt) {
      this.#host.limited('age');
      this.retire(OLD_AGE);
    } else {
      this.#reader.tick(now, this.#host.idle());
      if (this.delivery?.awaitsTime !== true) return;
      this.#timePassed = true;
      this.#host.wake(this);
    }
  }

  /** What it holds and others wait for. */
  get #wanted(): readonly Permit[] {
    return [this.#announcing, ...this.#reader.room].filter(({ held, wanted }) => held && wanted);
  }

  #isWorldlessTooLong(now: number): boolean {
    const lasts = this.#worldless.of((this.#announced && this.delivery === undefined) || undefined, now);
    if (lasts < DEFERRED_MS) return false;
    if (lasts >= COMPUTED_MS) return true;
    return (lasts >= WORLD_MS || this.#wanted.length > 0) && this.#host.isDeferred(this);
  }

  /** Ends it, and makes its client reconnect rather than open a stream on the same connection. */
  retire(details: string): void {
    if (this.#closed) return;
    this.#writer.leaveConnection();
    this.end(Status.UNAVAILABLE, details);
  }

  end(code: number, details: string): void {
    if (this.#closed) return;
    this.#host.ended(this, code, details);
    this.#writer.end(code, details);
    this.#close();
    this.#host.endings.add(this.#writer);
  }

  #limit(limit: Limit, code: number, details: string): void {
    this.#host.limited(limit);
    this.end(code, details);
  }

  #written(taken: boolean): void {
    this.#writing = false;
    if (!taken || this.#closed) return;
    this.#host.taken(this, this.#host.now() - this.#writingSince);
    const { delivery } = this;
    if (delivery?.owesAll !== true) this.#complete.leave();
    if (delivery?.owes === true) this.#host.wake(this);
  }

  #received(bytes: Uint8Array): void {
    if (this.#closed) return;
    try {
      if (this.proxy === undefined) this.#introduce(this.#wait(bytes));
      else if (this.delivery?.isBehind === true || !this.#host.hasTime()) this.#wait(bytes);
      else this.#handle(this.#host.read(bytes));
    } catch (error) {
      this.#failed(error);
    }
  }

  /**
   * Requests wait for the stream's turn if much must be compared first, or if those before them have taken long: a few
   * bytes may ask for a lot. The first request waits for what the proxy may see.
   */
  #wait(bytes: Uint8Array): DiscoveryRequest {
    this.#request = this.#host.read(this.#reader.hold(bytes));
    if (this.delivery !== undefined) this.#host.wake(this);
    return this.#request;
  }

  #handleWaiting(request: DiscoveryRequest): void {
    this.#announcing.leave();
    this.#request = undefined;
    this.#handle(request);
    this.#reader.resume();
  }

  #serve(delivery: Delivery, now: number): void {
    delivery.catchUp();
    if (this.#writing) return;
    if (delivery.owesAll && !this.#complete.held) {
      let waits = false;
      // If there is no wait, this turn goes on; otherwise each unused place would cause another turn, without end.
      this.#complete.take(() => {
        if (waits) this.#host.wake(this);
      });
      waits = !this.#complete.held;
      if (waits) return;
    }
    const frames: Frame[] = [];
    let bytes = 0;
    while (bytes < SLICE_BYTES) {
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
    this.#writingSince = this.#progressAt = now;
    this.#writingBytes = bytes;
    this.#writer.write(frames, this.#taken, this.#progressed);
  }

  #introduce(request: DiscoveryRequest): void {
    if (this.#answering.isQuestion(request)) {
      this.#request = undefined;
      this.#answering.ask(request, { address: this.address, ...(this.#identity && { identity: this.#identity }) });
      return;
    }
    if (request.node === undefined) throw new BadRequest('the first request of a stream has no node');
    const proxy = { ...readNode(request.node, this.id), ...(this.#identity && { identity: this.#identity }) };
    if (proxy.nodeId === '') throw new BadRequest('the node has no id');
    const tenant = this.#host.tenantOf(proxy, this.address);
    this.proxy = { nodeId: proxy.nodeId, build: proxy.build, tenant, drainMs: drainTimeOf(proxy.metadata) };
    this.#announcing.take(() => {
      this.contain(() => {
        const refusal = this.#host.admit(proxy, this.address);
        if (refusal !== undefined) {
          this.end(Status[refusal.code], refusal.message);
          return;
        }
        this.#announced = true;
        this.#host.connected(proxy, this.address);
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
    this.#answering.close();
    this.#reader.close();
    this.#request = undefined;
    this.#host.closed(this);
  }
}
