import { blame } from './blame.ts';
import type { Changes, Watcher } from './forest.ts';
import type { Frame, Frames } from './frames.ts';
import { shortMessage } from './refusals.ts';
import { itemsOf, type Sent } from './sent.ts';
import type { Served } from './served.ts';
import { Subscription, type SubscriptionContext } from './subscription.ts';
import type { ResourceType, ResourceTypes } from './types.ts';
import type { DiscoveryRequest } from './wire-read.ts';
import type { WorldView } from './world.ts';

/** What a delivery tells its stream. */
export interface DeliveryEvents {
  /** Something may be owed: {@link Delivery.next} wants to be called. */
  wake(): void;
  sent(type: ResourceType, frame: Frame): void;
  /** A response was refused: by this resource, or by nobody knows which. */
  refused(type: ResourceType, item: Served | undefined, message: string): void;
  unknownType(typeUrl: string): void;
}

/** Changes that wait to be looked at; more are folded at once. They are shared by all streams of a root. */
const MAX_WAITING = 16;

/**
 * One stream's share of the protocol, without its connection: subscriptions by type, in the order in which a push is
 * sent. Changes only mark; what is owed is worked out when the stream can take it, so that a slow one always gets the
 * newest state.
 */
export class Delivery implements Watcher {
  readonly #types: ResourceTypes;
  readonly #context: SubscriptionContext;
  readonly #frames: Frames;
  readonly #events: DeliveryEvents;
  readonly #subscriptions: (Subscription | undefined)[] = [];
  #view: WorldView;
  #waiting: Changes[] = [];

  constructor(
    types: ResourceTypes,
    context: SubscriptionContext,
    frames: Frames,
    view: WorldView,
    events: DeliveryEvents,
  ) {
    this.#types = types;
    this.#context = context;
    this.#frames = frames;
    this.#view = view;
    this.#events = events;
    view.watchers.add(this);
  }

  get view(): WorldView {
    return this.#view;
  }

  /** By type, in order; undefined where nothing was requested. */
  get subscriptions(): readonly (Subscription | undefined)[] {
    return this.#subscriptions;
  }

  /** The world of the stream is another one from now on. */
  move(view: WorldView): void {
    if (view === this.#view) return;
    this.#fold();
    for (const subscription of this.#subscriptions) subscription?.moved(this.#view, view);
    this.#view.watchers.delete(this);
    this.#view = view;
    view.watchers.add(this);
    this.#events.wake();
  }

  close(): void {
    this.#view.watchers.delete(this);
    for (const subscription of this.#subscriptions) subscription?.close();
    this.#waiting = [];
  }

  changed(changes: Changes): void {
    this.#waiting.push(changes);
    if (this.#waiting.length >= MAX_WAITING) this.#fold();
    this.#events.wake();
  }

  request(request: DiscoveryRequest, now: number): void {
    this.#fold();
    const index = this.#types.findIndex((type) => type.typeUrl === request.typeUrl);
    const type = this.#types[index];
    if (type === undefined) {
      this.#events.unknownType(request.typeUrl);
      return;
    }
    let subscription = this.#subscriptions[index];
    if (subscription === undefined) {
      subscription = new Subscription(type, this.#context, this.#isGuarded(type));
      this.#subscriptions[index] = subscription;
      subscription.begin(request, this.#view);
    } else if (this.#answer(subscription, request, now)) {
      if (this.#context.delta) subscription.subscribe(request, this.#view);
      else subscription.replace(request);
    }
    if (subscription.owes) this.#events.wake();
  }

  /** The next response in the order of types, if one may be sent. */
  next(now: number): Frame | undefined {
    this.#fold();
    for (const subscription of this.#subscriptions) {
      const sent = subscription?.take(this.#view);
      if (sent !== undefined) return this.#send(subscription!, sent, now);
    }
    return undefined;
  }

  /** Time passes: to be called about once a second. */
  tick(now: number): void {
    for (const subscription of this.#subscriptions) {
      if (subscription === undefined) continue;
      subscription.retry(now);
      if (subscription.owes) this.#events.wake();
    }
  }

  get owes(): boolean {
    return this.#waiting.length > 0 || this.#subscriptions.some((subscription) => subscription?.owes === true);
  }

  /** Whether the next response carries everything of a type. */
  get owesAll(): boolean {
    return this.#subscriptions.some((subscription) => subscription?.all === true);
  }

  #send(subscription: Subscription, sent: Sent, now: number): Frame {
    const { type } = subscription;
    const { delta } = this.#context;
    const frame = this.#frames.of(
      { typeUrl: type.typeUrl, delta, batches: sent.batches, removed: sent.removed },
      subscription.sentNonce,
    );
    sent.nonce = sent.first = subscription.sentNonce = frame.nonce;
    sent.at = now;
    this.#followBehind(type, sent);
    this.#events.sent(type, frame);
    return frame;
  }

  /** What belongs to changed resources is sent right behind them: a client warms them, and need not ask again. */
  #followBehind(type: ResourceType, sent: Sent): void {
    for (const follower of this.#subscriptions) {
      if (follower?.type.behind !== type.typeUrl) continue;
      if (sent.prior === undefined) {
        if (follower.sentNonce > 0) follower.askAll();
        continue;
      }
      for (const item of itemsOf(sent)) if (sent.prior.has(item.name)) follower.repeat(item.name, this.#view);
    }
  }

  /** False: the request answers a response that is not the newest any more, and says nothing. */
  #answer(subscription: Subscription, request: DiscoveryRequest, now: number): boolean {
    if (request.nonce === '') return true;
    const { error } = request;
    const settled = subscription.settle(Number(request.nonce), error !== undefined, request.version);
    if (settled === undefined) return this.#context.delta;
    for (const sent of settled.accepted) subscription.accept(sent);
    if (error !== undefined && settled.refused.length > 0) {
      const message = shortMessage(error.message);
      const culprits = blame(subscription, settled.refused, error.message, now);
      for (const item of culprits) this.#events.refused(subscription.type, item, message);
      if (culprits.length === 0) this.#events.refused(subscription.type, undefined, message);
    }
    return true;
  }

  #fold(): void {
    if (this.#waiting.length === 0) return;
    for (const changes of this.#waiting) {
      for (const subscription of this.#subscriptions) {
        const names = subscription === undefined ? undefined : changes.get(subscription.type.typeUrl);
        if (names !== undefined) subscription!.changed(names, this.#view);
      }
    }
    this.#waiting = [];
  }

  #isGuarded(type: ResourceType): boolean {
    return this.#types.some((other) => other.refersTo === type.typeUrl);
  }
}
