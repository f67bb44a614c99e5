import { composeOwed, composeState } from './composition.ts';
import type { Change } from './forest.ts';
import { InFlight } from './in-flight.ts';
import { Ledger } from './ledger.ts';
import type { Move } from './move.ts';
import type { NameSet, NameSets } from './name-set.ts';
import type { Batch, Held, Served } from './served.ts';
import { itemsOf, type Sent, type Trial } from './sent.ts';
import type { ResourceType } from './types.ts';
import { BadRequest, type DiscoveryRequest, MAX_NAMES, type RequestedVersions } from './wire-read.ts';
import type { Sight, WorldView } from './world.ts';

/** What the subscriptions of one stream have in common. */
export interface SubscriptionContext {
  readonly delta: boolean;
  readonly sets: NameSets;
  /** A resource that is in no list, for a single answer. */
  once(resource: Served['resource']): Served;
}

const UNKNOWN_VERSION = '';
/** Un-ACKed responses to a type whose answers are held back, in state of the world. */
const MAX_HELD_BACK = 3;

/**
 * What one stream asked for of one type and what it is still owed: the same machine for state of the world and delta,
 * for wildcards and names. A name that is neither owed nor on its way is current at the client, so that the steady
 * state is empty. Names are owed together with what the client holds of them, not with what happened meanwhile: a
 * resource that changes and changes back is not sent.
 *
 * One response at a time waits for its answer. Clusters are the exception: Envoy applies every response at once but
 * holds its answers back while any cluster warms, and in state of the world then answers the newest only.
 */
export class Subscription {
  readonly type: ResourceType;
  readonly ledger = new Ledger();
  readonly context: SubscriptionContext;
  /** What left the world is kept by the client: until it unsubscribes, or until {@link release}. */
  readonly #keeps: boolean;
  readonly #maxInFlight: number;
  /** Other resources refer to those of this type. */
  readonly guarded: boolean;
  wildcard = false;
  names: NameSet;
  /** Everything subscribed is owed, whatever the client holds. */
  all = false;
  /** What the client held of each name when it came: nothing, or nobody knows what. */
  before: Held;
  readonly inFlight: InFlight;
  trial: Trial | undefined;
  /** Names that requests left out which were not heard. */
  #givenUp: Set<string> | undefined;

  constructor(type: ResourceType, context: SubscriptionContext, guarded: boolean) {
    this.type = type;
    this.context = context;
    this.#keeps = guarded || type.whenAbsent !== undefined;
    this.guarded = guarded;
    this.#maxInFlight = !guarded ? 1 : context.delta ? Infinity : MAX_HELD_BACK;
    this.names = context.sets.empty;
    this.inFlight = new InFlight(context.delta);
  }

  /** Responses carry the whole state: what is left out is deleted by the client. */
  get wholeState(): boolean {
    return this.type.fullState && !this.context.delta;
  }

  /** After a refusal the client is given back what it had. */
  get reinstates(): boolean {
    return this.guarded || this.type.behind !== undefined;
  }

  has(name: string): boolean {
    return this.wildcard || this.names.has(name);
  }

  get owes(): boolean {
    return this.all || this.ledger.pending !== undefined;
  }

  /** The first request of the type on a stream, or one that starts anew. */
  begin(request: DiscoveryRequest, view: WorldView): void {
    this.close();
    this.wildcard = request.names.star || (this.type.wildcard && request.names.count === 0);
    this.names = this.context.sets.of(request.names);
    this.all = this.wildcard || this.names.size > 0;
    if (this.all && request.versions.hash.count > 0) this.#compare(request.versions, view);
    this.before = undefined;
    if (this.context.delta || request.version === '') return;
    this.before = UNKNOWN_VERSION;
    if (this.#keeps) this.#keepMissing(view);
  }

  close(): void {
    this.context.sets.release(this.names);
    this.names = this.context.sets.empty;
    this.ledger.clear();
    this.inFlight.clear();
    this.trial = undefined;
  }

  /** Delta: names come and go. Honoured whatever else the request says. */
  subscribe(request: DiscoveryRequest, view: WorldView): void {
    const { sets } = this.context;
    const gone = request.removed.strings();
    if (gone.length > 0) {
      const before = this.names;
      this.names = sets.without(before, gone);
      sets.release(before);
      // Under a wildcard the client keeps seeing the name, and has to be told its state once more.
      for (const name of gone) {
        if (this.wildcard) this.ledger.ask(name, undefined);
        else this.ledger.forget(name);
      }
    }
    if (request.removed.star) this.#endWildcard();
    const added = request.names.strings();
    if (added.length > 0) {
      const before = this.names;
      if (before.size + added.length > MAX_NAMES) throw new BadRequest('the stream has too many names', true);
      this.names = sets.with(before, added);
      sets.release(before);
      this.#want(added, view);
    }
    if (request.names.star && !this.wildcard) {
      this.wildcard = true;
      for (const batch of view.all(this.type.typeUrl)) {
        for (const item of batch.items) if (!this.names.has(item.name)) this.ledger.ask(item.name, undefined);
      }
    }
  }

  /**
   * State of the world: a request that answers an old response, and is not heard. But what it leaves out the client
   * has given up: should the next one name it again, it has to be answered.
   */
  unheard(request: DiscoveryRequest): void {
    const { sets } = this.context;
    const names = sets.of(request.names);
    if (names !== this.names) {
      for (const name of this.names.names) if (!names.has(name)) (this.#givenUp ??= new Set<string>()).add(name);
    }
    sets.release(names);
  }

  /** State of the world: the names of a request replace the former ones. */
  replace(request: DiscoveryRequest, view: WorldView): void {
    const { names } = request;
    if (names.count === 0 && !names.any && this.wildcard && this.names.size === 0) return;
    const before = this.names;
    const next = this.context.sets.of(names);
    const star = names.star && !this.wildcard;
    this.names = next;
    if (!names.star) this.wildcard = false;
    if (star) {
      this.wildcard = true;
      this.all = true;
    }
    if (next !== before) {
      this.#want(
        [...next.names].filter((name) => !before.has(name)),
        view,
      );
      for (const name of before.names) if (!this.has(name)) this.ledger.forget(name);
    }
    if (this.#givenUp !== undefined)
      this.#want(
        [...this.#givenUp].filter((name) => this.names.has(name)),
        view,
      );
    this.#givenUp = undefined;
    if (this.names.size === 0 && !this.wildcard) this.all = false;
    this.context.sets.release(before);
  }

  changed(names: ReadonlyMap<string, readonly Change[]>, view: Sight): void {
    for (const [name, changes] of names) {
      if (!this.has(name) || view.excluded.has(name)) continue;
      for (const { qualifier, was, now } of changes) {
        if (qualifier !== '' && !view.qualifiers.includes(qualifier)) continue;
        this.#mark(name, was, now === undefined && view.resolve(this.type.typeUrl, name) === undefined);
      }
    }
  }

  /** The stream moved to another world. */
  moved(move: Move): void {
    move.visit(this.type.typeUrl, (name, was, now) => {
      if (was !== now && this.has(name)) this.#mark(name, was, now === undefined);
    });
  }

  /** A name that left the world is no longer needed by anything that the client uses: it may go. */
  release(name: string): void {
    if (this.ledger.kept?.has(name) === true) this.ledger.owe(name, this.ledger.unkeep(name));
  }

  /** The client seems to choke on a resource: it is given back what it had, until its answer comes. */
  doubt(item: Served, prior: Held, now: number): void {
    if (this.ledger.refusals?.forbids(item.name, item.version) === true || this.inFlight.last(item.name) !== item)
      return;
    const after = this.inFlight.sentNonce;
    this.ledger.refuse(item.name, { version: item.version, held: prior, now, about: after, after, doubted: true });
    this.ledger.owe(item.name, item);
  }

  /** Refused versions whose time has come are tried again. */
  retry(now: number): void {
    for (const [name, held] of this.ledger.refusals?.due(now) ?? []) this.ledger.owe(name, held);
  }

  /** Owed in any case, where the client is known to hold the present version. */
  repeat(name: string, view: WorldView): void {
    if (!this.all && this.has(name))
      this.ledger.ask(name, this.ledger.offer(name, view.resolve(this.type.typeUrl, name)));
  }

  repeatAll(): void {
    this.all = this.wildcard || this.names.size > 0;
  }

  /**
   * The next response, if one is owed and may be sent now. The caller sets its nonce. What `blocked` says yes to
   * stays owed.
   */
  take(view: WorldView, blocked?: (item: Served) => boolean): Sent | undefined {
    if (!this.owes || this.inFlight.size >= this.#maxInFlight) return undefined;
    const sent = this.wholeState ? composeState(this, view, blocked) : composeOwed(this, view, blocked);
    if (sent === undefined) return undefined;
    const { refusals } = this.ledger;
    if (refusals !== undefined) for (const item of itemsOf(sent)) refusals.gave(item.name, item);
    this.inFlight.add(sent);
    return sent;
  }

  /** A response was accepted. That says nothing of bytes that this client has refused before. */
  accept(sent: Sent): void {
    if (sent.trial) this.trial?.answered();
    const { refusals } = this.ledger;
    if (refusals === undefined) return;
    for (const { name, version } of itemsOf(sent)) {
      // Taken back without need.
      if (refusals.doubts(name) && refusals.forbids(name, version)) {
        this.ledger.ask(name, refusals.held(name));
        refusals.forget(name);
      } else {
        refusals.accepted(name, version, sent.nonce);
      }
    }
  }

  /** The client asks for names: it has nothing, or has given it up; but what is on its way it may yet take. */
  #want(names: readonly string[], view: WorldView): void {
    const onTheWay = this.inFlight.lastOf(names);
    for (const name of names) {
      const held = onTheWay.get(name);
      if (held !== undefined && this.#keeps && view.resolve(this.type.typeUrl, name) === undefined) {
        this.ledger.keep(name, held);
      }
      this.ledger.ask(name, held);
    }
  }

  #mark(name: string, was: Served | undefined, gone: boolean): void {
    if (this.all && this.ledger.kept?.has(name) !== true) return;
    this.ledger.mark(name, was, gone && this.#keeps);
  }

  /** What a reconnecting client holds: only differences are owed. Equal hashes are the usual case, and cost nothing. */
  #compare(versions: RequestedVersions, view: WorldView): void {
    const { typeUrl } = this.type;
    this.all = false;
    const { batches, missing } = this.subscribed(view);
    let [a, b, count] = [0, 0, 0];
    for (const { hash } of batches) [a, b, count] = [(a + hash.a) | 0, (b + hash.b) | 0, count + hash.count];
    if (missing.length === 0 && versions.hash.equals({ a, b, count })) return;
    const { items, held } = versions.compare(batches);
    for (const { name, version } of items) {
      const has = held.get(name);
      held.delete(name);
      if (has === undefined) this.ledger.ask(name, undefined);
      else if (has !== version) this.ledger.owe(name, has);
    }
    for (const name of missing) if (!held.has(name)) this.ledger.ask(name, undefined);
    for (const [name, version] of held) {
      if (this.has(name) && view.resolve(typeUrl, name) === undefined) this.ledger.mark(name, version, this.#keeps);
    }
  }

  /**
   * A client that comes back in state of the world does not say what it holds. Of names that do not exist any more it
   * is left with what it has, which old listeners and tables may use; but a cluster must not wait.
   */
  #keepMissing(view: WorldView): void {
    const { behind } = this.type;
    for (const name of this.subscribed(view).missing) {
      if (behind === undefined || view.resolve(behind, name) === undefined) this.ledger.keep(name, UNKNOWN_VERSION);
    }
  }

  #endWildcard(): void {
    this.wildcard = false;
    this.all = false;
    const { pending, kept } = this.ledger;
    for (const name of [...(pending?.keys() ?? []), ...(kept?.keys() ?? [])]) {
      if (!this.names.has(name)) this.ledger.forget(name);
    }
  }

  /** What the world has of what is subscribed, and the names that it does not have. */
  subscribed(view: WorldView): { batches: readonly Batch[]; missing: readonly string[] } {
    const { typeUrl } = this.type;
    if (!this.wildcard) return view.select(typeUrl, this.names);
    const missing = [...this.names.names].filter((name) => view.resolve(typeUrl, name) === undefined);
    return { batches: view.all(typeUrl), missing };
  }
}
