import { accept } from './acceptance.ts';
import { Barrier, type BarrierEvents, type BarrierTimes, type Parties } from './barrier.ts';
import { blame, isTolerated } from './blame.ts';
import { take } from './composition.ts';
import type { Differences } from '../store/differences.ts';
import type { News, Watcher } from '../store/forest.ts';
import type { FormerWorld } from '../store/former-world.ts';
import type { Frame, Frames } from '../wire/frames.ts';
import { shortMessage } from './refusals.ts';
import { newNamesOf, type Sent } from './sent.ts';
import type { References, Served } from '../store/served.ts';
import { Subscription, type SubscriptionContext } from './subscription.ts';
import type { ResourceType, ResourceTypes } from '../types.ts';
import type { DiscoveryRequest } from '../wire/wire-read.ts';
import type { Sight, WorldView } from '../store/world.ts';

/** What a delivery reports to its stream. */
export interface DeliveryEvents extends BarrierEvents {
  /** Something may be owed: {@link Delivery.next} should be called. */
  wake(): void;
  sent(type: ResourceType, frame: Frame): void;
  /** A response was rejected. `items` is empty while the culprit is unknown. */
  refused(type: ResourceType, items: readonly Served[], message: string): void;
  unknownType(typeUrl: string): void;
}

/** What a delivery needs; nearly all of it is the same for all streams of one kind. */
export interface DeliveryContext extends SubscriptionContext {
  readonly types: ResourceTypes;
  readonly frames: Frames;
  readonly references: References;
  readonly times: BarrierTimes;
  /** Remembers a world as it is now. */
  remember(view: WorldView): FormerWorld;
  move(before: FormerWorld, after: WorldView): Differences;
  update(sight: Sight, news: readonly News[]): Differences;
}

/**
 * One stream's share of the protocol, without its connection: subscriptions by type, in the order in which a push is
 * sent. Changes only mark; what is owed is computed when the stream can take it, so a slow stream always gets the
 * newest state.
 */
export class Delivery implements Watcher {
  readonly #context: DeliveryContext;
  readonly #events: DeliveryEvents;
  readonly #subscriptions: (Subscription | undefined)[] = [];
  #barrier: Barrier | undefined;
  #parties: Parties;
  #view: WorldView;
  /** Nonce of the newest response of any type. */
  #nonce = 0;
  /** Published since the stream's last turn, oldest first; shared by all streams of a root. A turn empties it. */
  #unseen: News[] = [];
  /** What the stream saw before a move that is yet to be carried out; {@link #unseen} refers to it. */
  #former: FormerWorld | undefined;
  /** The client was connected before: its listeners and tables may use new clusters as soon as it has them. */
  #resumedAt: number | undefined;

  constructor(context: DeliveryContext, view: WorldView, events: DeliveryEvents) {
    this.#context = context;
    this.#view = view;
    this.#events = events;
    this.#parties = this.#partiesNow();
    view.watchers.add(this);
  }

  get view(): WorldView {
    return this.#view;
  }

  /** By type, in order; undefined for types that were not requested. */
  get subscriptions(): readonly (Subscription | undefined)[] {
    return this.#subscriptions;
  }

  /**
   * Moves the stream to another world. {@link catchUp} compares the two, with the new one as it is by then: until then
   * nothing needs to be heard, and of several moves, only the world before the first one is remembered.
   */
  move(view: WorldView): void {
    if (view === this.#view) return;
    this.#former ??= this.#context.remember(this.#view);
    this.#view.watchers.delete(this);
    this.#view = view;
    this.#events.wake();
  }

  close(): void {
    this.#view.watchers.delete(this);
    this.#former?.release();
    this.#former = undefined;
    for (const subscription of this.#subscriptions) subscription?.close();
    this.#unseen = [];
  }

  changed(news: News): void {
    this.#unseen.push(news);
    this.#events.wake();
  }

  request(request: DiscoveryRequest, now: number): void {
    this.catchUp();
    const { types } = this.#context;
    const index = types.findIndex((type) => type.typeUrl === request.typeUrl);
    const type = types[index];
    if (type === undefined) {
      this.#events.unknownType(request.typeUrl);
      return;
    }
    let subscription = this.#subscriptions[index];
    if (subscription === undefined) {
      subscription = new Subscription(type, this.#context, this.#isGuarded(type), this.#context.times.timeoutMs);
      this.#subscriptions[index] = subscription;
      if (request.versions.count > 0 || request.version !== '') this.#resume(now);
      subscription.begin(request, this.#view, this.#resumedAt !== undefined);
      this.#parties = this.#partiesNow();
      if (type.behind !== undefined) this.#followEarlier(subscription);
    } else if (this.#answer(subscription, request, now)) {
      if (this.#context.delta) subscription.subscribe(request, this.#view);
      else subscription.replace(request, this.#view);
    }
    if (this.owes) this.#events.wake();
  }

  /** The next response, in the order of types, if one may be sent. */
  next(now: number): Frame | undefined {
    this.catchUp();
    for (const subscription of this.#subscriptions) {
      if (subscription?.owes !== true) continue;
      const refers = subscription.type.refersTo !== undefined;
      if (refers && this.#barrier?.blocksAll === true) continue;
      const blocked = refers ? this.#blocks(now) : undefined;
      const sent = take(subscription, this.#view, now, blocked);
      if (sent !== undefined) return this.#send(subscription, sent, now);
    }
    return undefined;
  }

  /** Time passes: to be called about once a second, followed by {@link next}. */
  tick(now: number): void {
    this.catchUp();
    for (const subscription of this.#subscriptions) subscription?.retry(now);
    this.#tickBarrier(now);
  }

  /** There are changes, or a move to another world, that have not been looked at yet. */
  get isBehind(): boolean {
    return this.#unseen.length > 0 || this.#former !== undefined;
  }

  /** The client has acknowledged something that it was sent. */
  get acknowledged(): boolean {
    return this.#subscriptions.some((subscription) => (subscription?.inFlight.ackedNonce ?? 0) > 0);
  }

  get owes(): boolean {
    if (this.isBehind) return true;
    for (const subscription of this.#subscriptions) if (subscription?.owes === true) return true;
    return false;
  }

  /** Whether the next response carries everything of a type. */
  get owesAll(): boolean {
    for (const subscription of this.#subscriptions) if (subscription?.all === true) return true;
    return false;
  }

  #send(subscription: Subscription, sent: Sent, now: number): Frame {
    const { type } = subscription;
    const { delta } = this.#context;
    const content = { typeUrl: type.typeUrl, delta, batches: sent.batches, removed: sent.removed };
    const frame = this.#context.frames.of(content, this.#nonce);
    this.#nonce = frame.nonce;
    subscription.inFlight.handed(sent, frame, now);
    if (type.drains === true) this.#drains(sent, now);
    if (subscription.guarded) {
      // A starting client asks for listeners when its first clusters are ready: nothing needs to be held back before.
      if (this.#resumedAt !== undefined || this.#parties.referrers.length > 0) this.#arrived(sent, now);
    } else if (type.behind !== undefined) {
      this.#barrier?.followed(sent, this.#parties);
    }
    this.#followBehind(type, sent);
    this.#events.sent(type, frame);
    return frame;
  }

  /** What belongs to changed resources is sent right after them: a client warms them, and need not ask again. */
  #followBehind(type: ResourceType, sent: Sent): void {
    for (const follower of this.#subscriptions) {
      if (follower?.type.behind === type.typeUrl) follower.follow(sent, this.#view);
    }
  }

  /** The same for what was sent before this type was first requested: the client asked without knowing of it. */
  #followEarlier(follower: Subscription): void {
    for (const sent of this.#parties.guarded?.inFlight ?? []) follower.follow(sent, this.#view);
  }

  /** False: the request answers a response that is no longer the newest, and does not count. */
  #answer(subscription: Subscription, request: DiscoveryRequest, now: number): boolean {
    if (request.nonce === '') return true;
    const { error } = request;
    const settled = subscription.inFlight.settle(Number(request.nonce), error !== undefined, request.version);
    if (settled === undefined) {
      if (!this.#context.delta) subscription.unheard(request);
      return this.#context.delta;
    }
    for (const sent of settled.accepted) this.#accept(subscription, sent, now);
    if (error === undefined || settled.refused.length === 0) return true;
    const [sent] = settled.refused;
    if (settled.refused.length === 1 && isTolerated(sent!, error.message)) {
      this.#accept(subscription, sent!, now);
      return true;
    }
    if (subscription.guarded) for (const each of settled.refused) this.#barrier?.answered(each);
    const message = shortMessage(error.message);
    const culprits = blame(subscription, settled.refused, error.message, now);
    this.#events.refused(subscription.type, culprits, message);
    return true;
  }

  #accept(subscription: Subscription, sent: Sent, now: number): void {
    const { type } = subscription;
    accept(subscription, sent, this.#view);
    if (subscription.guarded) this.#barrier?.accepted(sent);
    else if (type.behind !== undefined) this.#barrier?.followedAccepted(sent);
    if (type.drains === true) this.#drains(sent, now);
  }

  /** Former listeners drain once their successors serve: not before these are sent, nor long after the answer. */
  #drains(sent: Sent, now: number): void {
    for (const held of sent.prior?.values() ?? [sent.before]) {
      if (held === undefined) continue;
      this.#needBarrier().drains(sent, now);
      return;
    }
  }

  /** Marks what is affected by the changes since the last call. Until then, all streams of a root share them. */
  catchUp(): void {
    if (this.#unseen.length > 0) {
      const update = this.#context.update(this.#former ?? this.#view, this.#unseen);
      this.#mark(update);
      this.#unseen = [];
    }
    if (this.#former === undefined) return;
    const move = this.#context.move(this.#former, this.#view);
    this.#mark(move);
    this.#former.release();
    this.#former = undefined;
    this.#view.watchers.add(this);
    this.#parties = this.#partiesNow();
  }

  #mark(differences: Differences): void {
    for (const subscription of this.#subscriptions) subscription?.changed(differences);
    const { guarded } = this.#parties;
    if (guarded !== undefined) this.#barrier?.present(differences.of(guarded.type.typeUrl));
  }

  /** A stream in which no cluster comes or goes has no barrier. */
  #needBarrier(): Barrier {
    return (this.#barrier ??= new Barrier(this.#context.times, this.#context.references, this.#events));
  }

  /** The client says that it was connected before; what it was sent so far may be new to it. */
  #resume(now: number): void {
    if (this.#resumedAt !== undefined) return;
    this.#resumedAt = now;
    for (const sent of this.#parties.guarded?.inFlight ?? []) this.#arrived(sent, now);
  }

  #arrived(sent: Sent, now: number): void {
    if (sent.prior === undefined) {
      this.#needBarrier().sentUnknown(sent, now);
      return;
    }
    const { batches, prior } = sent;
    const news = this.#context.shared().news.of([batches, prior], () => newNamesOf(sent));
    if (news.size > 0) this.#needBarrier().sent(news, sent.nonce, now);
  }

  #blocks(now: number): ((item: Served) => boolean) | undefined {
    const { guarded } = this.#parties;
    if (this.#barrier === undefined && guarded?.ledger.pending === undefined) return undefined;
    return this.#needBarrier().blocks(this.#parties, now);
  }

  #tickBarrier(now: number): void {
    const { guarded } = this.#parties;
    if (this.#barrier === undefined && guarded?.ledger.kept === undefined && (guarded?.inFlight.size ?? 0) === 0)
      return;
    this.#needBarrier().tick(this.#parties, now);
  }

  #partiesNow(): Parties {
    const present = this.#subscriptions.filter((subscription) => subscription !== undefined);
    const referrers = present.filter((subscription) => subscription.type.refersTo !== undefined);
    const allAsked = referrers.length === this.#context.types.filter((type) => type.refersTo !== undefined).length;
    return {
      guarded: present.find((subscription) => subscription.guarded),
      referrers,
      followers: present.filter((subscription) => subscription.type.behind !== undefined),
      view: this.#view,
      resumed: this.#resumedAt !== undefined,
      silentUntil: allAsked || this.#resumedAt === undefined ? 0 : this.#resumedAt + this.#context.times.lingerMs,
    };
  }

  #isGuarded(type: ResourceType): boolean {
    return this.#context.types.some((other) => other.refersTo === type.typeUrl);
  }
}
