import type { IdentityMemo } from '../../base/identity-memo.ts';
import { Awaited } from './awaited.ts';
import { compareHeld, keepMissing, mayGoOnWith } from './held-names.ts';
import { InFlight } from './in-flight.ts';
import { Interest, type InterestContext } from './interest.ts';
import { CommonMarks, Ledger, type Marks } from './ledger.ts';
import type { Difference, Differences } from '../store/differences.ts';
import { UNKNOWN } from './rejections.ts';
import type { EncodedResource } from '../store/resource.ts';
import type { Recipient } from '../rollouts/recipient.ts';
import { type Held, type Names, Served } from '../store/served.ts';
import type { SharedWork } from '../store/shared-work.ts';
import { itemsOf, type Sent, Trial } from './sent.ts';
import type { ResourceType } from '../types.ts';
import type { DiscoveryRequest } from '../wire/wire-read.ts';
import { WholeRejection } from './whole-rejection.ts';
import type { WorldView } from '../store/world.ts';

/** What the subscriptions of one stream share. */
export interface SubscriptionContext extends InterestContext {
  readonly delta: boolean;
  readonly recipient: Recipient;
  /** A new one with each publication. */
  shared(): SharedWork;
  /** A resource that is in no list, for a single answer. */
  once(resource: Served['resource']): Served;
}

/** State of the world: un-ACKed responses to a type whose answers are held back; one more each time a wait ends. */
const MAX_HELD_BACK = 3;

const [GUARDED, FREE] = [{}, {}];

/**
 * What one stream asked for of one type, and what it is still owed: the same machine for state of the world and delta,
 * wildcards and names. A name that is neither owed nor on its way is current at the client, so the steady state is
 * empty. Owed names are recorded with what the client holds of them, not with what happened meanwhile: a resource that
 * changes and changes back is not sent.
 *
 * Only one response at a time awaits its answer. Clusters are the exception: Envoy applies every response at once, but
 * holds its answers back while any cluster warms, and in state of the world then answers only the newest.
 */
export class Subscription {
  readonly type: ResourceType;
  readonly ledger = new Ledger();
  readonly context: SubscriptionContext;
  readonly #maxInFlight: number;
  /** Milliseconds after which a held-back answer is no longer waited for. */
  readonly #patience: number;
  /** Other resources refer to those of this type. */
  readonly guarded: boolean;
  readonly interest: Interest;
  #all = false;
  #known = false;
  #before: Held;
  /** State of the world: it came back with names, and whatever was there under these. */
  #mayHoldAll = false;
  #cameWithVersions = false;
  #cameWithCurrent = false;
  readonly inFlight: InFlight;
  readonly awaited: Awaited;
  #trial: Trial | undefined;
  #wholeRejection: WholeRejection | undefined;
  #asked: string[] = [];

  constructor(type: ResourceType, context: SubscriptionContext, guarded: boolean, patience = Infinity) {
    this.type = type;
    this.context = context;
    this.guarded = guarded;
    this.#maxInFlight = !guarded ? 1 : context.delta ? Infinity : MAX_HELD_BACK;
    this.#patience = guarded ? patience : Infinity;
    this.interest = new Interest(type, context);
    this.inFlight = new InFlight(context.delta, this.interest);
    this.awaited = new Awaited(context.recipient);
  }

  /** Everything subscribed is owed, whatever the client holds. */
  get all(): boolean {
    return this.#all;
  }

  /** What was rejected is being sent in pieces. */
  get trial(): Trial | undefined {
    return this.#trial;
  }

  /** With {@link all}: the client holds what it was sent, apart from names that are owed separately. */
  get known(): boolean {
    return this.#known;
  }

  /** With {@link all}, unless {@link known}: what the client holds of each name, nothing or {@link UNKNOWN}. */
  get before(): Held {
    return this.#before;
  }

  /** The client said what it holds already, when it began. */
  get cameWithVersions(): boolean {
    return this.#cameWithVersions;
  }

  /** Some of that is what there is: it has been sent this before, maybe by another replica. */
  get cameWithCurrent(): boolean {
    return this.#cameWithCurrent;
  }

  /** Everything is in a response, or is owed name by name from now on. */
  ceaseOwingAll(): void {
    this.#all = false;
  }

  beginTrial(): Trial {
    return (this.#trial ??= new Trial());
  }

  endTrial(): void {
    this.#trial = undefined;
  }

  /** See {@link WholeRejection}. */
  get wholeRejection(): WholeRejection['current'] {
    return this.#wholeRejection?.current;
  }

  rejectWhole(now: number, message: string): void {
    (this.#wholeRejection ??= new WholeRejection()).begin(now, message);
  }

  acceptWhole(): void {
    this.#wholeRejection?.end();
  }

  /** Names of which the client rejects something else than it did at the last call. */
  takeRejectionNews(): Names | 'all' {
    const names = this.ledger.takeNews();
    return this.#wholeRejection?.takeNews() === true ? 'all' : names;
  }

  /** Names that the client has asked for since the last call, apart from {@link all}. */
  takeAsked(): readonly string[] {
    const asked = this.#asked;
    if (asked.length > 0) this.#asked = [];
    return asked;
  }

  /** Responses carry the whole state: the client deletes what is left out. */
  get wholeState(): boolean {
    return this.type.fullState && !this.context.delta;
  }

  /** The answer for a name that does not exist. Under a wildcard, and for other types, the name is reported as gone. */
  absent(name: string): EncodedResource | undefined {
    return this.interest.names.has(name) ? this.type.whenAbsent?.(name) : undefined;
  }

  /** The client keeps what left the world until it unsubscribes, or until {@link release}. */
  keeps(name: string): boolean {
    return this.guarded || (this.type.whenAbsent !== undefined && this.interest.names.has(name));
  }

  get owes(): boolean {
    return this.#all || this.ledger.pending !== undefined;
  }

  /** Whether it waits for answers to what is on its way, or for its pace: then until a tick after that. */
  waits(now: number): boolean {
    if (now - this.inFlight.sentAt < (this.type.paceMs ?? 0)) return true;
    const { newest, size } = this.inFlight;
    return newest !== undefined && size >= this.#maxInFlight && now - newest.at < this.#patience;
  }

  /** The first request of the type on a stream. `resumed`: the client was connected before. */
  begin(request: DiscoveryRequest, view: WorldView, resumed: boolean): void {
    this.interest.begin(request.names);
    this.#all = !this.interest.isEmpty;
    this.#cameWithVersions = this.#all && request.versions.count > 0;
    if (this.#cameWithVersions) {
      const { asked, anyCurrent } = compareHeld(this, request.versions, view);
      this.#all = false;
      this.#cameWithCurrent = anyCurrent;
      this.#asked = asked;
    }
    this.#known = false;
    this.#before = undefined;
    if (this.context.delta || (request.version === '' && !resumed)) return;
    // In state of the world a client does not say what it holds.
    this.#before = UNKNOWN;
    if (request.version === '') return;
    this.#mayHoldAll = true;
    keepMissing(this, view);
  }

  close(): void {
    this.awaited.close(this.inFlight);
    this.interest.close();
    this.ledger.clear();
    this.inFlight.clear();
    this.#trial = undefined;
  }

  /** Delta: names come and go. Honoured whatever else the request says. */
  subscribe(request: DiscoveryRequest, view: WorldView): void {
    if (!request.names.any && !request.removed.any) return;
    const { interest } = this;
    const gone = request.removed.strings();
    interest.remove(gone);
    // Under a wildcard, the client still sees the name, and must be told its state again.
    if (interest.wildcard || request.names.star) this.#wantAgain(gone, view);
    else for (const name of gone) this.ledger.forget(name);
    if (request.removed.star) {
      interest.wildcard = false;
      this.#wildcardEnded();
    }
    const { again, fresh } = interest.add(request.names);
    this.#wantAgain(again, view);
    this.#want(fresh, view);
    if (request.names.star && !interest.wildcard) {
      interest.wildcard = true;
      // The client also takes what is on its way: it must be told which of these names are gone.
      const names = new Set(this.inFlight.lastOf().keys());
      for (const batch of view.all(this.type.typeUrl)) for (const { name } of batch.items) names.add(name);
      this.#want(
        [...names].filter((name) => !interest.names.has(name)),
        view,
      );
    }
  }

  /** State of the world: the names of a request replace the former ones. */
  replace(request: DiscoveryRequest, view: WorldView): void {
    const replaced = this.interest.replace(request.names);
    if (replaced === undefined) return;
    const { added, removed, again, sawAll, wildcard } = replaced;
    if (wildcard === 'ends') this.#wildcardEnded();
    if (wildcard === 'begins') this.#repeatUnknown();
    for (const name of removed) this.ledger.forget(name);
    if (sawAll) this.#wantAgain(added, view);
    else this.#want(added, view);
    this.#want(again, view);
    if (this.interest.isEmpty) this.#all = false;
  }

  /** State of the world: a request that answers an old response. */
  unheard(request: DiscoveryRequest): void {
    this.interest.unheard(request.names, (name) => this.inFlight.last(name) !== undefined);
  }

  /** Something was published, or the stream moved to another world. */
  changed(differences: Differences): void {
    const names = differences.of(this.type.typeUrl);
    if (names.size === 0) return;
    const wanted = this.ledger.isClean && !this.#all ? this.interest.only : undefined;
    const make = (): CommonMarks => CommonMarks.of((ledger) => this.#markIn(ledger, names), this.context.shared());
    this.ledger.share(wanted && differences.commonMarks(this.type, wanted, this.guarded, make));
    if (wanted !== undefined || (this.#owesBlindly && !this.#mayHoldAll && this.ledger.kept === undefined)) return;
    if (this.#all || names.size < this.context.shared().many) {
      for (const [name, { was, now }] of names) if (this.interest.has(name)) this.#mark(name, was, now === undefined);
      return;
    }
    this.#alike(differences.marked, [], (ledger) => this.#markIn(ledger, names));
  }

  #markIn(ledger: Ledger, names: ReadonlyMap<string, Difference>): void {
    for (const [name, { was, now }] of names)
      if (this.interest.has(name)) ledger.mark(name, was, now === undefined && this.keeps(name));
  }

  /** What belongs to the resources just sent is owed again: a client warms these, and need not ask. */
  follow(sent: Sent, view: WorldView): void {
    if (this.#all) return;
    const { typeUrl } = this.type;
    const { batches, prior } = sent;
    const follow = (ledger: Ledger): void => {
      for (const { name } of itemsOf(sent)) {
        if (prior?.has(name) === false || !this.interest.has(name)) continue;
        ledger.ask(name, ledger.offer(name, view.resolve(typeUrl, name)));
      }
    };
    const { many, followed } = this.context.shared();
    if (prior === undefined || prior.size < many) follow(this.ledger);
    else this.#alike(followed, [view, batches, prior], follow);
  }

  /**
   * Changes what is known about the client, or takes over the result for another client: streams of one world mostly
   * hold the same, and still do afterwards.
   */
  #alike(known: IdentityMemo<Marks>, from: readonly object[], change: (ledger: Ledger) => void): void {
    const { marks } = this.ledger;
    if (marks === undefined) {
      change(this.ledger);
      return;
    }
    const { pending, kept, asked } = marks;
    const work = (): Marks => {
      const ledger = new Ledger();
      ledger.take(marks);
      change(ledger);
      return ledger.marks!;
    };
    this.ledger.take(
      known.of([this.type, this.guarded ? GUARDED : FREE, ...this.interest.key, pending, kept, asked, ...from], work),
    );
  }

  /** Nothing that the client uses needs these names, which left the world: they may go. */
  release(names: Names): void {
    this.ledger.letGo(names);
  }

  /** Something was rejected, and is tried again later. */
  get triesAgain(): boolean {
    return this.ledger.rejections !== undefined || this.wholeRejection !== undefined;
  }

  /** Tries what was rejected again, when it is due. */
  retry(now: number): void {
    for (const [name, held] of this.ledger.rejections?.due(now, this.ledger.pending) ?? []) {
      if (this.ledger.pending?.has(name) !== true) this.ledger.owe(name, held);
    }
    if (this.#wholeRejection?.isDue(now) === true && this.inFlight.size === 0) this.#repeatUnknown();
  }

  /** Everything is owed again to a client that has accepted what it was sent. */
  repeatAll(): void {
    if (this.#all) return;
    this.#all = !this.interest.isEmpty;
    this.#known = true;
  }

  /** The same for a client that may hold any of it, in any version. */
  #repeatUnknown(): void {
    if (this.#all && !this.#known) return;
    this.#all = !this.interest.isEmpty;
    this.#known = false;
    this.#before = UNKNOWN;
  }

  /** Changes make no difference: everything is owed anyway, whatever the client holds. */
  get #owesBlindly(): boolean {
    return this.#all && !this.#known;
  }

  /** The client asks for names: it has nothing, or has given it up; but it may yet take what is on its way. */
  #want(names: readonly string[], view: WorldView): void {
    const onTheWay = this.inFlight.lastOf(names);
    this.inFlight.amend(new Map([...onTheWay.keys()].map((name) => [name, undefined])));
    for (const name of names) this.#ask(name, onTheWay.get(name), view);
  }

  /** The client asks again for names that it is subscribed to: it may have what it was sent. */
  #wantAgain(names: readonly string[], view: WorldView): void {
    const { ledger, type } = this;
    const onTheWay = this.inFlight.lastOf(names);
    const had = (name: string): Held => {
      if (ledger.kept?.has(name) === true) return ledger.kept.get(name);
      return this.#owesBlindly ? this.#before : ledger.uses(name, view.resolve(type.typeUrl, name));
    };
    for (const name of names) this.#ask(name, onTheWay.get(name) ?? had(name), view);
  }

  #ask(name: string, held: Held, view: WorldView): void {
    const { ledger } = this;
    const present = view.resolve(this.type.typeUrl, name);
    const unknown = typeof ledger.kept?.get(name) === 'string' && !this.guarded;
    if (present !== undefined || unknown || !this.keeps(name)) ledger.unkeep(name);
    if (held instanceof Served && this.keeps(name) && present === undefined) ledger.keep(name, held);
    if (ledger.offer(name, present) === undefined) ledger.rejections?.pardon(name);
    ledger.ask(name, held);
    this.#asked.push(name);
  }

  #mark(name: string, was: Served | undefined, gone: boolean): void {
    if (this.#owesBlindly && this.ledger.kept?.has(name) !== true) {
      if (this.#mayHoldAll && gone && mayGoOnWith(this, name)) this.ledger.keep(name, UNKNOWN);
      return;
    }
    this.ledger.mark(name, was, gone && this.keeps(name));
  }

  #wildcardEnded(): void {
    const { names } = this.interest;
    this.#all &&= names.size > 0;
    const { pending, kept, rejections } = this.ledger;
    for (const name of [...(pending?.keys() ?? []), ...(kept?.keys() ?? []), ...(rejections?.names.keys() ?? [])]) {
      if (!names.has(name)) this.ledger.forget(name);
    }
  }
}
