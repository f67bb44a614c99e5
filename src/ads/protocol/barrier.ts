import type { BarrierTimes } from './barrier-times.ts';
import { isIn } from './in-flight.ts';
import type { Difference } from '../store/differences.ts';
import { type HeldNames, NONE } from './ledger.ts';
import { type Arrival, type Departure, departuresOf, fewer, freeSince, split, without } from './name-groups.ts';
import { common } from '../store/names.ts';
import type { Parties } from './parties.ts';
import { leavesOf } from '../store/resource.ts';
import { itemsOf, type Sent } from './sent.ts';
import { isLate, type Names, type References, Served, versionOf } from '../store/served.ts';
import type { Subscription } from './subscription.ts';
import { Stuck } from './stuck.ts';
import { type UsesByTime, usesOf } from './uses.ts';

export interface BarrierEvents {
  /** A wait ended by timeout. */
  timedOut(): void;
  /** The client has not answered for a long time, and was resent what it may be waiting for. */
  overdue(): void;
}

/**
 * Make before break, for one stream. A table or listener that names a new cluster waits until the client can use the
 * cluster; a cluster that left the world stays until nothing that the client may still use names it.
 *
 * A new cluster is usable once the client has acknowledged the response that carried it, or (since those answers are
 * held back while anything warms) once it has subscribed to the cluster's assignment and acknowledged one that was sent
 * later; a cluster that also waits for a secret, only once the client has acknowledged it. A live cluster that is changed in place waits for nothing: the old one serves until the new one is warm.
 *
 * It looks only at the few clusters that come or go, and costs nothing while there are none.
 */
export class Barrier {
  readonly #times: BarrierTimes;
  readonly #references: References;
  readonly #events: BarrierEvents;
  /** Each ends with its answer, or after {@link BarrierTimes.timeoutMs}. */
  #arrivals: readonly Arrival[] = [];
  #departures: readonly Departure[] = [];
  /** What was kept when the departures were last updated. */
  #departing: Names = NONE;
  /** See {@link returned}. */
  readonly #returned = new Set<string>();
  /** Clusters that former listeners named and their successors do not, and until when they may be routed to. */
  readonly #drains = new Map<string, number>();
  /** Set if a former listener's clusters are unknown: all clusters are kept until then. */
  #drainsAll = 0;
  /** A response whose new clusters cannot be identified; everything waits for its answer. */
  #unknown: { readonly since: number; readonly nonce: number } | undefined;
  readonly #stuck: Stuck;

  constructor(times: BarrierTimes, references: References, events: BarrierEvents) {
    this.#times = times;
    this.#references = references;
    this.#events = events;
    this.#stuck = new Stuck(times, () => events.overdue());
  }

  /** A response was sent with guarded resources that are new to the client. */
  sent(names: ReadonlySet<string>, nonce: number, now: number): void {
    const earlier = without(this.#arrivals, names);
    if (names.size > 0) {
      this.#arrivals = fewer([...earlier, { names, since: now, nonce, followed: 0, awaited: false }]);
    }
    this.#stuck.restart();
  }

  /**
   * A client that already routes does not say what it holds: it reconnected in state of the world, or without versions.
   * It answers when everything is warm.
   */
  sentUnknown(sent: Sent, now: number): void {
    this.#unknown = { since: now, nonce: sent.nonce };
  }

  /** Nothing that refers to guarded resources may be sent. */
  get blocksAll(): boolean {
    return this.#unknown !== undefined;
  }

  /** A response was sent with what belongs to guarded resources. */
  followed(sent: Sent, { guarded }: Parties): void {
    if (this.#arrivals.length === 0) return;
    const names = new Set<string>();
    // An assignment proves nothing about a cluster that it does not belong to: if it was made up for a name that does
    // not exist, or if the client has yet to be sent its cluster. A cluster of another kind ignores it, and one that
    // needs more is not ready with it.
    for (const { name, holders } of itemsOf(sent)) {
      if (holders === 0 || guarded?.ledger.pending?.has(name) === true) continue;
      if (!isLate(guarded?.inFlight.last(name))) names.add(name);
    }
    const arrivals: Arrival[] = [];
    for (const arrival of this.#arrivals) {
      const [within, rest] = split(arrival, names);
      if (within !== undefined) arrivals.push({ ...within, followed: sent.nonce });
      if (rest !== undefined) arrivals.push(rest);
    }
    this.#arrivals = fewer(arrivals);
  }

  /** A response with guarded resources was answered, one way or the other. */
  answered(sent: Sent): void {
    if (this.#unknown !== undefined && this.#unknown.nonce <= sent.nonce) this.#unknown = undefined;
  }

  /** A response with guarded resources was accepted. */
  accepted(sent: Sent): void {
    this.answered(sent);
    this.#arrivals = this.#arrivals.filter(({ nonce }) => !isIn(sent, nonce));
  }

  /** A response with what belongs to guarded resources was accepted. */
  followedAccepted(sent: Sent): void {
    this.#arrivals = this.#arrivals.filter(({ followed }) => !isIn(sent, followed));
    this.#stuck.restart();
  }

  /** Listeners were replaced or removed, or may have been: the former ones drain, and still name their clusters. */
  drains(sent: Sent, now: number): void {
    const until = now + this.#times.drainMs;
    if (sent.prior === undefined) {
      if (sent.before !== undefined) this.#drainsAll = until;
      return;
    }
    const successors = new Map<string, Served>();
    for (const item of itemsOf(sent)) successors.set(item.name, item);
    for (const [name, held] of sent.prior) {
      if (typeof held === 'string') this.#drainsAll = until;
      if (!(held instanceof Served)) continue;
      const named = new Set<string>();
      for (const leaf of leavesOf(held.resource.body)) for (const cluster of leaf.clusters) named.add(cluster);
      const successor = successors.get(name);
      if (successor !== undefined) {
        this.#references.find(successor.resource.body, named, (still) => {
          named.delete(still);
          return false;
        });
      }
      for (const cluster of named) this.#drains.set(cluster, until);
    }
  }

  /**
   * Guarded resources changed, and are owed: those that are back start a new departure when they leave again, however
   * soon.
   */
  present(differences: ReadonlyMap<string, { readonly now: Served | undefined }>, { guarded }: Parties): void {
    for (const name of this.#returned) {
      const difference = differences.get(name);
      const isHeld = difference?.now?.version === versionOf(guarded?.ledger.pending?.get(name));
      if (difference !== undefined && (difference.now === undefined || isHeld)) this.#notReturned(name);
    }
    if (this.#departures.length === 0) return;
    const names = new Set<string>();
    for (const [name, { now }] of differences) if (now !== undefined) names.add(name);
    if (names.size > 0) this.#departures = without(this.#departures, names);
  }

  /**
   * Names that left the world and are back with another content, before the client was told that they were gone: it is
   * yet to be sent what tables lead to now. To these, they are new names.
   */
  returned(names: Iterable<string>): void {
    for (const name of names) this.#returned.add(name);
  }

  /** It has left once more, or is again what the client has, before it was sent: nothing is to be waited for. */
  #notReturned(name: string): void {
    this.#returned.delete(name);
    const names = new Set([name]);
    this.#arrivals = this.#arrivals.flatMap((each) => (each.nonce === Infinity ? (split(each, names)[1] ?? []) : each));
  }

  /** What a response has of those, with names that are new to the client. */
  withReturned(news: ReadonlySet<string>, sent: Sent): ReadonlySet<string> {
    if (this.#returned.size === 0) return news;
    const names = new Set(news);
    for (const { name } of itemsOf(sent)) if (this.#returned.delete(name)) names.add(name);
    return names;
  }

  /** What must not be sent yet; undefined while nothing is held back. */
  blocks({ guarded, view }: Parties, now: number): ((item: Served) => boolean) | undefined {
    const unsent = new Set<string>();
    for (const [name, held] of guarded?.ledger.pending ?? []) {
      // Only a few unanswered responses may be out: this cluster has not been sent at all.
      const isNew = held === undefined || this.#returned.has(name);
      if (isNew && !this.#arrivals.some(({ names }) => names.has(name))) unsent.add(name);
    }
    if (unsent.size > 0) this.sent(unsent, Infinity, now);
    if (guarded === undefined || this.#arrivals.length === 0) return undefined;
    const { typeUrl } = guarded.type;
    const isOffered = (name: string): boolean => guarded.ledger.offer(name, view.resolve(typeUrl, name)) !== undefined;
    return ({ resource }) => {
      const awaited = this.#arrivals.find(({ names }) => this.#references.named(resource.body, names).some(isOffered));
      if (awaited !== undefined) awaited.awaited = true;
      return awaited !== undefined;
    };
  }

  /** Time passes. Returns whether nothing comes or goes any more. */
  tick(parties: Parties, now: number): boolean {
    const isOver = ({ since }: Arrival): boolean => now - since >= this.#times.timeoutMs;
    for (const arrival of this.#arrivals) if (isOver(arrival) && arrival.awaited) this.#events.timedOut();
    this.#arrivals = this.#arrivals.filter((arrival) => !isOver(arrival));
    if (this.#unknown !== undefined && now - this.#unknown.since >= this.#times.timeoutMs) {
      this.#unknown = undefined;
      this.#events.timedOut();
    }
    this.#release(parties, now);
    const { guarded } = parties;
    this.#stuck.tick(parties, now);
    return guarded?.inFlight.oldest === undefined && this.#isOver(guarded, now);
  }

  /** Nothing comes or goes any more. */
  #isOver(guarded: Subscription | undefined, now: number): boolean {
    const groups = this.#arrivals.length + this.#departures.length + this.#returned.size + this.#drains.size;
    return groups === 0 && guarded?.ledger.kept === undefined && this.#drainsAll <= now && !this.blocksAll;
  }

  #release(parties: Parties, now: number): void {
    for (const [name, until] of this.#drains) if (until <= now) this.#drains.delete(name);
    const { guarded } = parties;
    const kept = guarded?.ledger.shareKept() ?? NONE;
    if (kept !== this.#departing) this.#departures = departuresOf(kept, this.#departures, now);
    this.#departing = kept;
    if (kept.size === 0) return;
    const uses = usesOf(parties, this.#references, kept, now);
    const waiting: Departure[] = [];
    const wait = (departure: Departure): void => {
      const { freeAt } = departure;
      if (freeAt === undefined || now - freeAt < this.#times.lingerMs) waiting.push(departure);
      else guarded!.release(departure.names);
    };
    for (const departure of this.#departures) {
      const [drained, undrained] = split(departure, this.#drains);
      if (drained !== undefined) wait(freeSince(drained, undefined));
      if (undrained === undefined) continue;
      const [inForce, others] = split(undrained, uses.lasting.names);
      if (inForce !== undefined) wait(freeSince(inForce, undefined));
      if (others === undefined) continue;
      const [unanswered, unused] = split(others, uses.awaited.names);
      if (unanswered !== undefined) wait(this.#age(unanswered, uses, true, now));
      if (unused !== undefined) wait(this.#age(unused, uses, false, now));
    }
    this.#departures = waiting;
  }

  /** For names that nothing known to be in force names. `named`: something that the client may yet use names them. */
  #age(departure: Departure, { lasting, awaited }: UsesByTime, named: boolean, now: number): Departure {
    const { since, timedOut, freeAt = now } = departure;
    if (now < this.#drainsAll) return freeSince(departure, undefined);
    // What drains (kept), or stays in force after a rejection, takes as long as it takes; but what is unknown holds
    // nothing back for longer than an old listener can.
    if (lasting.all && now - since < this.#times.drainMs) return freeSince(departure, undefined);
    if (timedOut || !(awaited.all || named)) return freeSince(departure, freeAt);
    if (now - since < this.#times.timeoutMs) return freeSince(departure, undefined);
    this.#events.timedOut();
    return { ...departure, freeAt, timedOut: true };
  }
}

/** A client has clusters that left the world, or is yet to acknowledge others. */
export function comesOrGoes({ guarded }: Parties): boolean {
  return guarded !== undefined && (guarded.ledger.kept !== undefined || guarded.inFlight.size > 0);
}

/** Names that left the world, which the client still has, and that are back as something else. */
export function returnedIn(
  kept: HeldNames | undefined,
  differences: ReadonlyMap<string, Difference>,
): readonly string[] {
  if (kept === undefined) return NO_NAMES;
  return [...common(kept, differences)].filter((name) => {
    const now = differences.get(name)?.now;
    return now !== undefined && now.version !== versionOf(kept.get(name));
  });
}

const NO_NAMES: readonly string[] = [];
