import { accept, provenBy } from './acceptance.ts';
import { type AskedContext, awaitAsked } from './asked.ts';
import type { Standing } from './awaited.ts';
import { type BarrierEvents, returnedIn } from './barrier.ts';
import type { BarrierTimes } from './barrier-times.ts';
import { blame, isTolerated } from './blame.ts';
import type { Canaries, Gate, Waiter } from './canaries.ts';
import { gateOf } from './gates.ts';
import { Guard } from './guard.ts';
import { either, take } from './composition.ts';
import type { BadRequest } from '../bad-request.ts';
import { Busy } from './busy.ts';
import type { HeapShare } from '../heap-share.ts';
import type { Difference, Differences } from '../store/differences.ts';
import type { News, Watcher } from '../store/forest.ts';
import type { Frame, Frames } from '../wire/frames.ts';
import { isGuarded } from './parties.ts';
import { isLocalReason } from './local-reasons.ts';
import { shortMessage } from './rejections.ts';
import { rejectedOf } from './rejected-names.ts';
import { RejectedRoom } from './rejected-room.ts';
import type { Sent } from './sent.ts';
import { NO_ROLLOUTS, type Rollout } from '../rollouts/rollout.ts';
import type { References, Served } from '../store/served.ts';
import { Subscription, type SubscriptionContext } from './subscription.ts';
import type { ResourceType, ResourceTypes } from '../types.ts';
import { Unseen, type UnseenContext } from './unseen.ts';
import type { DiscoveryRequest } from '../wire/wire-read.ts';
import type { WorldView } from '../store/world.ts';

/** What a delivery reports to its stream. */
export interface DeliveryEvents extends BarrierEvents {
  /** Something may be owed: {@link Delivery.next} should be called. */
  wake(): void;
  sent(type: ResourceType, frame: Frame, sent: Sent): void;
  /** The client asks for a type for the first time. */
  asked(type: ResourceType): void;
  /** A response was rejected. `items` is empty while the culprit is unknown. */
  rejected(type: ResourceType, items: readonly Served[], message: string): void;
  unknownType(typeUrl: string): void;
  /** A request answers a response that is no longer the newest. */
  expired(type: ResourceType): void;
}

/** Nearly all of it is the same for all streams of one kind. */
export interface DeliveryContext extends SubscriptionContext, AskedContext, UnseenContext {
  readonly types: ResourceTypes;
  readonly frames: Frames;
  readonly references: References;
  readonly times: BarrierTimes;
  readonly canaries: Canaries;
  /** Memory for what clients reject. */
  readonly rejected: HeapShare;
  /** Only in tests: what is owed is sent at once, and removed at once. */
  readonly unguarded: boolean;
}

/**
 * One stream's share of the protocol, without its connection: subscriptions by type, in the order in which a push is
 * sent. Changes only mark; what is owed is computed when the stream can take it, so a slow stream always gets the
 * newest state.
 */
export class Delivery implements Watcher {
  readonly #context: DeliveryContext;
  readonly #events: DeliveryEvents;
  readonly #client: Waiter;
  readonly #subscriptions: (Subscription | undefined)[] = [];
  readonly #busy = new Busy(this.#subscriptions);
  /** Type URL of what others refer to, once it was requested. */
  #guardedUrl: string | undefined;
  readonly #guard: Guard;
  readonly #rejected: RejectedRoom;
  #view: WorldView;
  /** Nonce of the newest response of any type. */
  #nonce = 0;
  readonly #unseen: Unseen;
  #acknowledged = false;

  constructor(context: DeliveryContext, view: WorldView, events: DeliveryEvents) {
    this.#context = context;
    this.#view = view;
    this.#events = events;
    this.#unseen = new Unseen(context);
    this.#guard = new Guard(context, events, view);
    this.#rejected = new RejectedRoom(context.rejected, context.address);
    this.#client = { ...context.recipient, wake: () => events.wake() };
    context.canaries.join(this.#client);
  }

  get view(): WorldView {
    return this.#view;
  }

  /** By type, in order; undefined for types that were not requested. */
  get subscriptions(): readonly (Subscription | undefined)[] {
    return this.#subscriptions;
  }

  /** Moves the stream to another world. {@link catchUp} compares the two, with the new one as it is by then. */
  move(view: WorldView, rollouts: readonly Rollout[] = NO_ROLLOUTS): void {
    if (view === this.#view) return;
    if (this.#view.watchers.delete(this)) {
      this.#unseen.moved(this.#view, rollouts);
      view.watchers.add(this);
    }
    this.#view = view;
    this.#events.wake();
  }

  close(): void {
    this.#view.watchers.delete(this);
    this.#context.canaries.leave(this.#client);
    this.#unseen.forget();
    this.#rejected.close();
    for (const subscription of this.#subscriptions) subscription?.close();
    this.#context.rollouts.left(this.#context.recipient);
  }

  changed(news: News): void {
    this.#unseen.published(news);
    this.#events.wake();
  }

  /** Throws a {@link BadRequest} if the client asks for, or rejects, more than there is room for. */
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
    const owedAll = subscription?.all === true;
    if (subscription === undefined) {
      // Before it asks for something, no change concerns it.
      if (this.#subscriptions.length === 0) this.#view.watchers.add(this);
      subscription = new Subscription(type, this.#context, isGuarded(type, types), this.#context.times.timeoutMs);
      this.#subscriptions[index] = subscription;
      if (subscription.guarded) this.#guardedUrl = type.typeUrl;
      if (request.versions.count > 0 || request.version !== '') this.#guard.resume(now);
      subscription.begin(request, this.#view, this.#guard.resumed);
      // Nothing may change for as long as it is here.
      if (subscription.cameWithCurrent) this.#acknowledged = true;
      this.#guard.look(this.#subscriptions, this.#view);
      if (type.behind !== undefined) this.#followEarlier(subscription);
      this.#events.asked(type);
    } else if (this.#answer(subscription, request, now)) {
      if (this.#context.delta) subscription.subscribe(request, this.#view);
      else subscription.replace(request, this.#view);
    }
    this.#busy.add(subscription);
    awaitAsked(subscription, this.#view, owedAll, this.#context);
    this.#hear(subscription);
    if (this.#rejected.isUsed || subscription.ledger.rejections !== undefined)
      this.#rejected.charge(this.#subscriptions);
    this.#settle();
    if (this.owes) this.#events.wake();
  }

  /** Where nothing is owed, nothing that was owed is left to be waited for, unless it is on its way. */
  #settle(): void {
    for (const subscription of this.#busy)
      if (subscription.awaited.owes && !subscription.owes) subscription.awaited.look(this.#standing(subscription));
    this.#busy.settle();
    this.#guard.settle();
  }

  #hear(subscription: Subscription): void {
    const news = subscription.takeRejectionNews();
    if (subscription.awaited.rejects) subscription.awaited.heard(this.#standing(subscription), news);
  }

  #standing(subscription: Subscription): Standing {
    const { all, ledger, inFlight } = subscription;
    return { all, pending: ledger.pending, inFlight, rejectedOf: (names) => rejectedOf(subscription, names, this) };
  }

  /** The next response, in the order of types, if one may be sent. */
  next(now: number): Frame | undefined {
    this.catchUp();
    let guardedGate: Gate = 'open';
    for (const subscription of this.#busy) {
      if (!subscription.owes) continue;
      const { whenAbsent, refersTo } = subscription.type;
      if (refersTo !== undefined && this.#guard.blocksAll) continue;
      const gate = gateOf(subscription, this.#view, this.#context.canaries, this.#client);
      if (subscription.guarded) guardedGate = gate;
      if (gate === 'shut') continue;
      const unsafe = this.#guard.blocks(subscription, guardedGate, now);
      const blocked = gate === 'open' ? unsafe : either(unsafe, gate);
      const keepsSilent =
        whenAbsent !== undefined && refersTo !== undefined && this.#guard.keepsSilent(subscription, now);
      const sent = take(subscription, this.#view, now, blocked, keepsSilent);
      if (sent !== undefined) return this.#send(subscription, sent, now);
    }
    this.#settle();
    return undefined;
  }

  /** Something may become due as time passes. In the steady state, nothing does. */
  get awaitsTime(): boolean {
    if (this.#guard.awaitsTime || this.owes) return true;
    return this.#subscriptions.some((subscription) => subscription?.triesAgain);
  }

  /** Time passes: to be called about once a second while it {@link awaitsTime}, followed by {@link next}. */
  tick(now: number): void {
    if (!this.awaitsTime) return;
    this.catchUp();
    for (const subscription of this.#subscriptions) subscription?.retry(now);
    this.#guard.tick(now);
    this.#busy.addAll();
  }

  /** There are changes, or a move to another world, that have not been looked at yet. */
  get isBehind(): boolean {
    return !this.#unseen.isEmpty;
  }

  /** The client has acknowledged something that it was sent, or came back with something that is still current. */
  get acknowledged(): boolean {
    return this.#acknowledged;
  }

  get owes(): boolean {
    return this.isBehind || this.#busy.owes;
  }

  /** The next response carries everything of a type. */
  get owesAll(): boolean {
    return this.#busy.owesAll;
  }

  #send(subscription: Subscription, sent: Sent, now: number): Frame {
    const { type } = subscription;
    const { delta } = this.#context;
    const content = { typeUrl: type.typeUrl, delta, batches: sent.batches, removed: sent.removed };
    const frame = this.#context.frames.of(content, this.#nonce);
    this.#nonce = frame.nonce;
    subscription.inFlight.handed(sent, frame, now);
    if (subscription.awaited.owes) subscription.awaited.look(this.#standing(subscription));
    if (type.isTried === true) this.#context.canaries.sent(this.#client, sent.batches);
    this.#guard.sent(subscription, sent, now);
    this.follow(type.typeUrl, sent);
    this.#events.sent(type, frame, sent);
    return frame;
  }

  /**
   * What belongs to changed resources is sent right after them: a client warms them, and need not ask again.
   * @param sent by this delivery, or by one for another stream of the client.
   */
  follow(typeUrl: string, sent: Sent): void {
    this.#context.types.forEach(({ behind }, i) => {
      const follower = behind === typeUrl ? this.#subscriptions[i] : undefined;
      if (follower === undefined) return;
      follower.follow(sent, this.#view);
      this.#busy.add(follower);
    });
  }

  /** The same for what was sent before this type was first requested: the client asked without knowing of it. */
  #followEarlier(follower: Subscription): void {
    for (const sent of this.#guard.parties.guarded?.inFlight ?? []) follower.follow(sent, this.#view);
  }

  /** False: the request answers a response that is no longer the newest, and does not count. */
  #answer(subscription: Subscription, request: DiscoveryRequest, now: number): boolean {
    if (request.nonce === '') return true;
    const { error } = request;
    const settled = subscription.inFlight.settle(Number(request.nonce), error !== undefined, request.version);
    if (settled === undefined) {
      this.#events.expired(subscription.type);
      if (!this.#context.delta) subscription.unheard(request);
      return this.#context.delta;
    }
    const { accepted, rejected } = settled;
    if (subscription.inFlight.ackedNonce > 0) this.#acknowledged = true;
    const isNews = error !== undefined && !(rejected.length === 1 && isTolerated(rejected[0]!, error.message));
    const taken = isNews || rejected.length === 0 ? accepted : [...accepted, ...rejected];
    for (const sent of taken) this.#accept(subscription, sent, now);
    if (isNews && rejected.length > 0) this.#reject(subscription, rejected, error.message, now);
    this.#hear(subscription);
    const news = isNews ? rejected : NONE;
    if (news.length > 0 || taken.some(({ concerns }) => concerns.length > 0))
      subscription.awaited.answered(taken, news, this.#standing(subscription));
    return true;
  }

  #reject(subscription: Subscription, rejected: readonly Sent[], message: string, now: number): void {
    this.#guard.rejected(subscription, rejected);
    const words = shortMessage(message);
    const culprits = blame(subscription, rejected, message, now);
    if (subscription.type.isTried === true)
      this.#context.canaries.rejected(this.#client, culprits, isLocalReason(words));
    this.#events.rejected(subscription.type, culprits, words);
  }

  #accept(subscription: Subscription, sent: Sent, now: number): void {
    const { type } = subscription;
    accept(subscription, sent, this.#view);
    if (type.isTried === true) this.#context.canaries.accepted(this.#client, provenBy(subscription, sent));
    this.#guard.accepted(subscription, sent, now);
  }

  /** Marks what is affected by the changes since the last call. Until then, all streams of a root share them. */
  catchUp(): void {
    if (this.#unseen.isEmpty) return;
    const moved = this.#unseen.look(this.#view, (differences, rollouts) => this.#mark(differences, rollouts));
    if (moved) this.#guard.look(this.#subscriptions, this.#view);
  }

  /** @param rollouts that all of it is part of. */
  #mark(differences: Differences, rollouts: readonly Rollout[]): void {
    const { types, unguarded } = this.#context;
    const clusters = this.#guardedUrl === undefined ? NOTHING : differences.of(this.#guardedUrl);
    const returned = clusters.size === 0 ? [] : returnedIn(this.#guard.parties.guarded?.ledger.kept, clusters);
    for (let i = 0; i < this.#subscriptions.length; i++) {
      const { typeUrl } = types[i]!;
      const subscription = differences.of(typeUrl).size === 0 ? undefined : this.#subscriptions[i];
      if (subscription === undefined) continue;
      subscription.changed(differences);
      const { type, interest, awaited } = subscription;
      awaited.changed();
      const concern = differences.concern(type, interest, rollouts);
      if (concern !== undefined) awaited.owe(concern);
      this.#busy.add(subscription);
    }
    if (clusters.size > 0) this.#guard.changed(clusters, returned);
    const { guarded } = this.#guard.parties;
    if (unguarded && guarded !== undefined) {
      guarded.release(guarded.ledger.shareKept());
      this.#busy.add(guarded);
    }
  }
}

const [NONE, NOTHING]: [readonly Sent[], ReadonlyMap<string, Difference>] = [[], new Map()];
