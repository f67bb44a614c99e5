import type { PeerIdentity } from '../types.ts';
import { randomInt } from 'node:crypto';
import { status as Status } from '@grpc/grpc-js';
import { ContentHasher } from '../store/content-hash.ts';
import { Arrivals } from './arrivals.ts';
import { BARRIER_TIMES } from '../protocol/barrier-times.ts';
import { Canaries } from '../protocol/canaries.ts';
import { shareForRejected } from '../protocol/rejected-room.ts';
import { Convergence } from './convergence.ts';
import { Delivery, type DeliveryContext } from '../protocol/delivery.ts';
import { Shutdown } from './shutdown.ts';
import { Endings } from './endings.ts';
import { Frames } from '../wire/frames.ts';
import { addressOfPeer } from './address.ts';
import { ADS_LIMITS, type Limit, LimitCounts } from './limits.ts';
import { NameSets } from '../store/name-set.ts';
import { provenTenant } from '../tenant.ts';
import { FairSemaphore } from '../../base/fair-semaphore.ts';
import type { Publication, WorldChange } from '../store/publication.ts';
import type { AdsServerOptions } from './server-options.ts';
import { type Call, FrameWriter } from './frame-writer.ts';
import { type GivenType, givenOf } from './given.ts';
import { type AdsCounts, type AdsMeasure, AdsStats, type StreamState, stateOf } from './stats.ts';
import { receiving } from './receiving.ts';
import { Round } from './round.ts';
import { Clients } from './siblings.ts';
import { Rollouts } from '../rollouts/rollouts.ts';
import { Batch, References } from '../store/served.ts';
import { Store } from '../store/store.ts';
import { AdsStream, OLD_AGE, type StreamHost } from './stream.ts';
import { requestReader, type StreamKind, typesOf } from './stream-kind.ts';
import { Turns } from './turns.ts';
import { UnknownTypes } from './unknown-types.ts';
import type { WorldView } from '../store/world.ts';

/** What a turn hands to connections, which copy and send it right after the turn: that takes about as long again. */
const TURN_BYTES = 8 * 1024 * 1024;
/** Streams that may wait for their first world, and streams that may be sent everything of a type, at one time. */
const MAX_ANNOUNCING = 256;
const MAX_COMPLETE = 32;
/** Questions about this server that are being answered, half of them for one address. */
const MAX_ANSWERING = 4;
/** Addresses that kept room for too long are served after all others for at most this long. */
const FORGIVE_MS = 60_000;

/** What the deliveries of all streams of one kind share. */
type CommonContext = Omit<DeliveryContext, 'address' | 'recipient'>;

/** All streams, and the store that they see. */
export class AdsStreams {
  readonly #options: AdsServerOptions;
  readonly #hasher = new ContentHasher([randomInt(2 ** 32), randomInt(2 ** 32)]);
  readonly #store = new Store(this.#hasher);
  readonly #sets = new NameSets(this.#hasher);
  readonly #frames = new Frames();
  readonly #announcing = new FairSemaphore(MAX_ANNOUNCING);
  readonly #complete = new FairSemaphore(MAX_COMPLETE);
  readonly #answering = new FairSemaphore(MAX_ANSWERING);
  readonly #receiving = receiving();
  readonly #endings = new Endings();
  readonly #limits = new LimitCounts();
  readonly #arrivals: Arrivals;
  #shutdown: Shutdown | undefined;
  #isClosed = false;
  readonly #streams = new Map<string, AdsStream>();
  readonly #unknownTypes: UnknownTypes;
  readonly #stats: AdsStats;
  readonly #references = new References();
  readonly #rollouts: Rollouts;
  readonly #canaries: Canaries;
  readonly #rejected = shareForRejected();
  readonly #clients: Clients;
  readonly #hosts = new Map<StreamKind, StreamHost>();
  readonly #convergence: Convergence<AdsStream>;
  readonly #turns = new Turns<AdsStream>({
    now: () => this.#options.now(),
    begin: () => {
      // The request that a turn handles is followed by those that its client sent after it.
      this.#round.hasTime();
      this.#sent = 0;
    },
    serve: (stream, now) => {
      stream.serve(now);
      if (stream.delivery?.owes !== true) this.#convergence.caughtUp(stream, this.#options.now());
    },
    isFull: () => this.#sent > TURN_BYTES,
  });
  #measure: AdsMeasure | undefined;
  /** Bytes sent in the present turn. */
  #sent = 0;
  readonly #round = new Round(() => this.#options.now());
  #forgaveAt = 0;
  /** Something was sent, or a stream was opened, since the last tick. */
  #active = false;
  #lastId = 0;
  /** The last error that was logged: they come as fast as connections do. */
  #acceptError: string | undefined;

  constructor(options: AdsServerOptions) {
    this.#options = options;
    this.#rollouts = options.rollouts ?? new Rollouts({ after: () => {}, settled: () => {}, changed: () => {} });
    const { now, after = (ms, work) => void setTimeout(work, ms).unref() } = options;
    this.#canaries = new Canaries({ now, after, isOn: options.canaries ?? true });
    this.#unknownTypes = new UnknownTypes(options.log);
    this.#stats = new AdsStats(options.types);
    this.#arrivals = new Arrivals({ ...ADS_LIMITS, ...options.limits }.maxStreams);
    this.#clients = new Clients(options.types, (stream) => this.#wake(stream));
    this.#convergence = new Convergence((ms) => options.events.converged?.(ms));
  }

  /** @param identity who the client has proven to be; undefined on the plaintext port. */
  accept(call: Call, kind: StreamKind, identity?: PeerIdentity): void {
    if (!this.#options.ready()) {
      this.refuse(call, Status.UNAVAILABLE, 'the configuration is not synchronised yet');
      return;
    }
    const address = addressOfPeer(call.getPeer());
    const entered = this.#arrivals.enter(address, () => this.#begin(call, kind, identity));
    if (entered === 'full') {
      this.#limits.add('streams');
      this.refuse(call, Status.UNAVAILABLE, 'replica is at its stream limit');
    } else if (entered === 'address full') {
      this.#limits.add('streams_of_address');
      this.refuse(call, Status.RESOURCE_EXHAUSTED, `too many streams from ${address}`);
    } else for (const end of ['cancelled', 'close', 'error']) call.once(end, entered);
  }

  /**
   * Marks what is affected. Streams work out the consequences in their turns.
   * @param changedAt when the first of its changes came, on the clock of the options.
   */
  apply(publication: Publication, changedAt = this.#options.now()): void {
    this.#convergence.during(changedAt, () => this.#apply(publication));
  }

  #apply(publication: Publication): void {
    for (const change of publication.worlds) {
      const stream = this.#streams.get(change.stream);
      if (stream?.proxy !== undefined) stream.contain(() => this.#setWorld(stream, change));
    }
    if (publication.members.length === 0 && publication.lists.length === 0) return;
    this.#store.apply(publication);
    this.#frames.outdate();
  }

  /** Time passes: to be called about once a second. */
  tick(): void {
    const now = this.#options.now();
    this.#arrivals.tick(now);
    if (now - this.#forgaveAt >= FORGIVE_MS) {
      this.#forgaveAt = now;
      for (const scarce of [this.#announcing, ...Object.values(this.#receiving.budget)]) scarce.forgive();
    }
    for (const stream of this.#streams.values()) stream.tick(now);
    for (let cut = this.#endings.tick(now); cut > 0; cut--) this.#limits.add('end_time');
    if (!this.#active) {
      this.#frames.clear();
      this.#store.forget();
      this.#receiving.buffers.clear();
    }
    this.#active = false;
  }

  limited(limit: Limit): void {
    this.#limits.add(limit);
  }

  /** The system failed to hand over a connection. */
  acceptFailed(error: Error): void {
    this.#limits.add('accept');
    if (this.#acceptError === error.message) return;
    this.#acceptError = error.message;
    this.#options.log.warn('Cannot accept proxy connections', { error: error.message });
  }

  measure(measure: AdsMeasure): void {
    this.#measure = measure;
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
      waitingToBegin: this.#arrivals.waiting,
      waitingForTurn: this.#turns.waiting,
      waitingForRoom: this.#receiving.budget.large.waiting + this.#receiving.budget.huge.waiting,
      limits: this.#limits.all(),
    });
  }

  streams(): StreamState[] {
    const { overdueMs } = { ...BARRIER_TIMES, ...this.#options.times };
    const now = this.#options.now();
    return [...this.#streams.values()].flatMap((stream) => stateOf(stream, now, overdueMs));
  }

  /** What a stream is subscribed to, as it is now in its world; empty if there is no such stream. */
  given(id: string): readonly GivenType[] {
    const delivery = this.#streams.get(id)?.delivery;
    return delivery === undefined ? [] : givenOf(delivery);
  }

  /** Refuses new streams from now on, and ends the existing ones over this many milliseconds. */
  drain(ms: number): void {
    this.#shutdown ??= new Shutdown([...this.#streams.values()], this.#options.now(), ms);
  }

  /** Ends the streams that are due in a drain. Returns whether all are gone. */
  drained(): boolean {
    this.#shutdown?.step(this.#options.now());
    return this.#streams.size === 0 && this.#endings.over();
  }

  close(): void {
    this.#isClosed = true;
    for (const stream of this.#streams.values()) stream.end(Status.UNAVAILABLE, 'the server is shutting down');
  }

  #begin(call: Call, kind: StreamKind, identity: PeerIdentity | undefined): void {
    if (this.#shutdown !== undefined) {
      this.refuse(call, Status.UNAVAILABLE, 'the server is shutting down');
      return;
    }
    const id = `stream-${++this.#lastId}`;
    const host = this.#hosts.get(kind) ?? this.#host(kind);
    this.#hosts.set(kind, host);
    this.#streams.set(id, new AdsStream(id, call, host, identity));
  }

  /** Ends a call that never was a stream. */
  refuse(call: Call, code: number, details: string): void {
    const writer = new FrameWriter(call);
    writer.end(code, details);
    this.#endings.add(writer);
  }

  #host(kind: StreamKind): StreamHost {
    const { delta } = kind;
    const store = this.#store;
    const context: CommonContext = {
      delta,
      types: typesOf(kind, this.#options.types),
      frames: this.#frames,
      references: this.#references,
      times: { ...BARRIER_TIMES, ...this.#options.times },
      unguarded: this.#options.unguarded ?? false,
      sets: this.#sets,
      once: (resource) => store.once(resource),
      remember: (view) => store.remember(view),
      move: (before, after, news) => store.move(before, after, news),
      update: (sight, news) => store.update(sight, news),
      rollouts: this.#rollouts,
      broughtIn: (batch, view, type) => store.broughtIn(batch, view, type),
      canaries: this.#canaries,
      rejected: this.#rejected,
      shared: () => store.work,
    };
    const { maxAgeMs } = { ...ADS_LIMITS, ...this.#options.limits };
    return {
      announcing: this.#announcing,
      complete: this.#complete,
      questions: this.#options.questions,
      answering: this.#answering,
      frameOf: (typeUrl, { resources, controlPlane }) =>
        this.#frames.once({
          typeUrl,
          delta,
          batches: [new Batch(resources.map((resource) => store.once(resource)))],
          removed: [],
          ...(controlPlane !== undefined && { controlPlane }),
        }),
      receiving: this.#receiving,
      endings: this.#endings,
      maxAge: () => maxAgeMs * (0.9 + 0.2 * Math.random()),
      limited: (limit) => this.#limits.add(limit),
      ended: (stream, code, details) => this.#ended(stream, code, details),
      indirect: () => this.#indirect(),
      now: () => this.#options.now(),
      idle: () => (this.#options.idle ?? this.#options.now)(),
      read: requestReader(kind, this.#hasher),
      open: (stream, view) => this.#open(stream, view, context),
      tenantOf: this.#options.tenantOf ?? provenTenant,
      admit: (proxy, address) => this.#options.events.admit?.(proxy, address),
      connected: (proxy, address) => this.#options.events.connected(proxy, address),
      isDeferred: ({ id }) => this.#options.events.isDeferred?.(id) ?? false,
      closed: (stream) => this.#closed(stream),
      taken: (stream, ms) => {
        this.#measure?.taken(ms);
        this.#clients.of(stream)?.written(stream);
      },
      wake: (stream) => this.#wake(stream),
      hasTime: () => this.#round.hasTime(),
      failed: (stream, error) => {
        this.#stats.failures++;
        this.#options.log.warn('Stream failed', { stream: stream.id, error: String(error) });
      },
    };
  }

  /** The log says why, unless it is the course of things: maximum age, or the end of this server. */
  #ended({ id, address, proxy }: AdsStream, code: number, reason: string): void {
    const name = Status[code] ?? String(code);
    this.#stats.ended[name] = (this.#stats.ended[name] ?? 0) + 1;
    if (this.#shutdown !== undefined || this.#isClosed || reason === OLD_AGE) return;
    const about = { stream: id, address, ...(proxy && { node: proxy.nodeId }) };
    this.#options.log.warn('Stream ended by this replica', { ...about, code: name, reason });
  }

  /** grpc-js differs from the version that this was written for. */
  #indirect(): void {
    if (this.#stats.indirect++ > 0) return;
    this.#options.log.warn('Unexpected grpc-js version: streams use the slower public API', {});
  }

  #open(stream: AdsStream, view: WorldView, context: CommonContext): Delivery {
    this.#active = true;
    this.#clients.opened(stream);
    const { nodeId = '', build = '', tenant = '', drainMs } = stream.proxy ?? {};
    const times = drainMs === undefined ? context.times : { ...context.times, drainMs };
    const recipient = { stream: stream.id, nodeId, build, tenant };
    return new Delivery({ ...context, address: stream.address, recipient, times }, view, {
      wake: () => this.#wake(stream),
      asked: (type) => {
        this.#clients.of(stream)?.asked(stream, type);
        if (type.onDemand === true) this.#options.events.asked?.(stream.id, type.typeUrl);
      },
      sent: (type, frame, sent) => {
        this.#clients.of(stream)?.sent(stream, type, sent);
        this.#active = true;
        this.#sent += frame.length;
        this.#convergence.sent(stream);
        this.#stats.sent(type, frame);
        this.#measure?.sent(type.shortName, frame.length);
      },
      rejected: ({ typeUrl, ...type }, items, message) => {
        this.#stats.rejected(type);
        stream.rejected(typeUrl, message);
        const [first] = items;
        const about = first === undefined ? {} : { name: first.name, version: first.version, resources: items.length };
        this.#options.events.rejected({ stream: stream.id, nodeId, build, typeUrl, ...about, message });
      },
      timedOut: () => this.#stats.timeouts++,
      overdue: () => this.#stats.overdue++,
      unknownType: (typeUrl) => this.#unknownTypes.warn(typeUrl),
      expired: (type) => this.#stats.expiredNonce(type),
    });
  }

  #setWorld(stream: AdsStream, { world, error, rollouts }: WorldChange): void {
    if (error !== undefined) {
      stream.end(Status.INVALID_ARGUMENT, error);
      return;
    }
    let unused: WorldView | undefined = this.#store.enter(world ?? { roots: [], qualifiers: [] });
    try {
      unused = stream.world(unused, rollouts);
    } finally {
      if (unused !== undefined) this.#store.leave(unused);
    }
  }

  #closed(stream: AdsStream): void {
    if (!this.#streams.delete(stream.id)) return;
    this.#convergence.gone(stream);
    this.#clients.closed(stream);
    const { delivery } = stream;
    if (delivery !== undefined) {
      delivery.close();
      this.#store.leave(delivery.view);
    }
    const { proxy, id } = stream;
    if (stream.announced && proxy !== undefined)
      this.#options.events.disconnected({
        stream: id,
        nodeId: proxy.nodeId,
        acknowledged: delivery?.acknowledged ?? false,
      });
  }

  #wake(stream: AdsStream): void {
    const acknowledges = stream.delivery?.acknowledged === true;
    // What a client gets when it connects does not count as a change.
    if (acknowledges) this.#convergence.marked(stream);
    this.#turns.add(stream, acknowledges);
  }
}
