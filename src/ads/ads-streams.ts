import { randomInt } from 'node:crypto';
import { status as Status } from '@grpc/grpc-js';
import { ContentHasher } from './content-hash.ts';
import { BARRIER_TIMES } from './barrier.ts';
import { Scratch } from './deframer.ts';
import { Delivery, type DeliveryContext } from './delivery.ts';
import { Frames } from './frames.ts';
import { Gate } from './gate.ts';
import { NameSets } from './name-set.ts';
import type { Publication, WorldChange } from './publication.ts';
import type { AdsServerOptions } from './server.ts';
import type { Call } from './sink.ts';
import { type AdsCounts, AdsStats, type StreamState, stateOf } from './stats.ts';
import { References } from './served.ts';
import { Store } from './store.ts';
import { AdsStream, type StreamHost } from './stream.ts';
import { readDeltaRequest, readRequest } from './wire-read.ts';
import type { WorldView } from './world.ts';

const STREAMS_PER_TURN = 64;
const TURN_MS = 8;
/** Large requests that come in one round of the event loop are handled at once for so long. */
const REQUESTS_MS = 4;
/** Streams that wait for their first world, and streams that are sent everything of a type, at one time. */
const MAX_ANNOUNCING = 256;
const MAX_COMPLETE = 32;
/** Requests that are longer end their stream. */
export const MAX_REQUEST_BYTES = 16 * 1024 * 1024;
/** Large requests that are received at one time. */
const MAX_RECEIVING = 64;
/** Type URLs that are asked for and not served; more than these are not told apart. */
const MAX_UNKNOWN_TYPES = 64;

/** All streams, the store that they see, and the queue of those that something is owed to. */
export class AdsStreams {
  readonly #options: AdsServerOptions;
  readonly #hasher = new ContentHasher([randomInt(2 ** 32), randomInt(2 ** 32)]);
  readonly #store = new Store(this.#hasher);
  readonly #sets = new NameSets(this.#hasher);
  readonly #frames = new Frames();
  readonly #announcing = new Gate(MAX_ANNOUNCING);
  readonly #complete = new Gate(MAX_COMPLETE);
  readonly #receiving = { maxLength: MAX_REQUEST_BYTES, large: new Gate(MAX_RECEIVING), scratch: new Scratch() };
  readonly #streams = new Map<string, AdsStream>();
  readonly #unknownTypes = new Set<string>();
  readonly #stats: AdsStats;
  readonly #references = new References();
  readonly #delta: StreamHost;
  readonly #stateOfTheWorld: StreamHost;
  #queue: AdsStream[] = [];
  #scheduled = false;
  /** When requests of this round of the event loop have to wait for turns; undefined before the first large one. */
  #roundEnds: number | undefined;
  /** Something was sent, or somebody came, since the last tick. */
  #active = false;
  #lastId = 0;

  constructor(options: AdsServerOptions) {
    this.#options = options;
    this.#stats = new AdsStats(options.types);
    this.#delta = this.#host(true);
    this.#stateOfTheWorld = this.#host(false);
  }

  accept(call: Call, delta: boolean): void {
    if (!this.#options.ready()) {
      call.emit('error', { code: Status.UNAVAILABLE, details: 'the configuration is not synchronised yet' });
      return;
    }
    const id = `stream-${++this.#lastId}`;
    this.#streams.set(id, new AdsStream(id, call, delta ? this.#delta : this.#stateOfTheWorld));
  }

  /** Marks what is concerned. What a stream makes of it is for the stream's turn. */
  apply(publication: Publication): void {
    for (const change of publication.worlds) {
      const stream = this.#streams.get(change.stream);
      if (stream?.proxy !== undefined) stream.contain(() => this.#setWorld(stream, change));
    }
    this.#store.apply(publication);
    this.#frames.outdate();
  }

  /** Time passes: about once a second. */
  tick(): void {
    const now = this.#options.now();
    for (const stream of this.#streams.values()) stream.tick(now);
    if (!this.#active) {
      this.#frames.clear();
      this.#store.shared.clear();
      this.#receiving.scratch.clear();
    }
    this.#active = false;
  }

  counts(): AdsCounts {
    let pending = 0;
    for (const stream of this.#streams.values()) if (stream.delivery?.owes === true) pending++;
    return this.#stats.counts({
      streams: this.#streams.size,
      pendingStreams: pending,
      waitingForWorld: this.#announcing.waiting,
      waitingForPlace: this.#complete.waiting,
      ...this.#store.size,
      nameSets: this.#sets.size,
    });
  }

  streams(): StreamState[] {
    const { overdueMs } = { ...BARRIER_TIMES, ...this.#options.times };
    const before = this.#options.now() - overdueMs;
    return [...this.#streams.values()].flatMap((stream) => stateOf(stream, before));
  }

  close(): void {
    for (const stream of this.#streams.values()) stream.end(Status.UNAVAILABLE, 'the server is shutting down');
  }

  #host(delta: boolean): StreamHost {
    const context: DeliveryContext = {
      delta,
      types: this.#options.types,
      frames: this.#frames,
      references: this.#references,
      times: { ...BARRIER_TIMES, ...this.#options.times },
      sets: this.#sets,
      once: (resource) => this.#store.once(resource),
      remember: (view) => this.#store.remember(view),
    };
    const read = delta ? readDeltaRequest : readRequest;
    return {
      announcing: this.#announcing,
      complete: this.#complete,
      receiving: this.#receiving,
      now: () => this.#options.now(),
      read: (bytes) => read(bytes, this.#hasher),
      open: (stream, view) => this.#open(stream, view, context),
      connected: (proxy) => this.#options.events.connected(proxy),
      closed: (stream) => this.#closed(stream),
      wake: (stream) => this.#wake(stream),
      hasTime: () => this.#hasTime(),
      failed: (stream, error) => {
        this.#stats.failures++;
        this.#options.log.warn('a stream failed', { stream: stream.id, error: String(error) });
      },
    };
  }

  #open(stream: AdsStream, view: WorldView, context: DeliveryContext): Delivery {
    this.#active = true;
    const { nodeId = '', build = '' } = stream.proxy ?? {};
    return new Delivery(context, view, {
      wake: () => this.#wake(stream),
      sent: (type, frame) => {
        this.#active = true;
        this.#stats.sent(type, frame);
      },
      refused: (type, item, message) => {
        this.#stats.refused(type);
        const about = item === undefined ? {} : { name: item.name, version: item.version };
        this.#options.events.refused({ stream: stream.id, nodeId, build, typeUrl: type.typeUrl, ...about, message });
      },
      timedOut: () => this.#stats.timeouts++,
      overdue: () => this.#stats.overdue++,
      unknownType: (typeUrl) => this.#warnOfType(typeUrl),
    });
  }

  #setWorld(stream: AdsStream, { world, error }: WorldChange): void {
    if (error !== undefined) {
      stream.end(Status.INVALID_ARGUMENT, error);
      return;
    }
    let unused: WorldView | undefined = this.#store.enter(world ?? { roots: [], qualifiers: [] });
    try {
      unused = stream.world(unused);
    } finally {
      if (unused !== undefined) this.#store.leave(unused);
    }
  }

  #closed(stream: AdsStream): void {
    if (!this.#streams.delete(stream.id)) return;
    const { delivery } = stream;
    if (delivery !== undefined) {
      delivery.close();
      this.#store.leave(delivery.view);
    }
    const { proxy, id } = stream;
    if (stream.announced && proxy !== undefined)
      this.#options.events.disconnected({ stream: id, nodeId: proxy.nodeId });
  }

  #wake(stream: AdsStream): void {
    if (stream.queued) return;
    stream.queued = true;
    this.#queue.push(stream);
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => this.#turn());
  }

  /** False: what comes in this round of the event loop has taken long enough. */
  #hasTime(): boolean {
    const now = this.#options.now();
    if (this.#roundEnds === undefined) {
      this.#roundEnds = now + REQUESTS_MS;
      setImmediate(() => (this.#roundEnds = undefined));
    }
    return now < this.#roundEnds;
  }

  /** Serves some of the waiting streams, and then lets the event loop do the rest of its work. */
  #turn(): void {
    const until = this.#options.now() + TURN_MS;
    let served = 0;
    for (const stream of this.#queue) {
      if (served === STREAMS_PER_TURN || (served > 0 && this.#options.now() > until)) break;
      served++;
      stream.queued = false;
      stream.serve();
    }
    this.#queue = this.#queue.slice(served);
    this.#scheduled = this.#queue.length > 0;
    if (this.#scheduled) setImmediate(() => this.#turn());
  }

  #warnOfType(typeUrl: string): void {
    if (this.#unknownTypes.has(typeUrl) || this.#unknownTypes.size >= MAX_UNKNOWN_TYPES) return;
    this.#unknownTypes.add(typeUrl);
    this.#options.log.warn('a proxy asks for a type that is not served', { typeUrl: typeUrl.slice(0, 256) });
  }
}
