import { NONE } from './ledger.ts';
import { type Group, notEmpty, split } from './name-groups.ts';
import { leavesOf } from '../store/resource.ts';
import { itemsOf, priorOf, type Sent } from './sent.ts';
import { type Names, type References, Served } from '../store/served.ts';
import type { Subscription } from './subscription.ts';
import { type Referring, type UsesByTime, usesOf } from './uses.ts';
import type { WorldView } from '../store/world.ts';

/** How long a stream waits for what it can prove, in milliseconds. */
export interface BarrierTimes {
  /** Retries in back-off look a cluster up again: it stays this long after the last table let go of it. */
  readonly lingerMs: number;
  /** A wait for an answer ends here; what waited is sent anyway, and counted. */
  readonly timeoutMs: number;
  /** An answer that is missing for so long is held back by something that warms. */
  readonly overdueMs: number;
  /** After this time it is asked whether the client has choked on something that it refused. */
  readonly stuckMs: number;
  /** A former listener routes on for so long. Of a client that does not say: Istio's default. */
  readonly drainMs: number;
}

export const BARRIER_TIMES: BarrierTimes = {
  lingerMs: 5_000,
  timeoutMs: 10_000,
  overdueMs: 10_000,
  stuckMs: 1_000,
  drainMs: 45_000,
};

export interface BarrierEvents {
  /** A wait ended by timeout. */
  timedOut(): void;
  /** The client has not answered for long, and was sent again what it may be waiting for. */
  overdue(): void;
}

/** The subscriptions of one stream by what they are to a barrier. */
export interface Parties extends Referring {
  /** What others refer to: clusters. */
  readonly guarded: Subscription | undefined;
  /** What belongs to it: assignments. */
  readonly followers: readonly Subscription[];
  readonly view: WorldView;
}

/** New names that were sent together. */
interface Arrival extends Group {
  readonly since: number;
  /** Nonce of the response that carried them. */
  readonly nonce: number;
  /** Nonce of the response that carried what belongs to them, sent after that; 0 before. */
  readonly followed: number;
  /** Something was held back because of one of them. */
  awaited: boolean;
}

/** Names that left the world together, and that the client may all use, or none of them. */
interface Departure extends Group {
  readonly since: number;
  /** Since when nothing that the client may use names one of them. */
  readonly freeAt: number | undefined;
  readonly timedOut: boolean;
}

/**
 * Make before break, for one stream. A table or listener that names a new cluster waits until the client can use the
 * cluster; a cluster that left the world stays until nothing that the client may still use names it.
 *
 * A new cluster is usable when the client acknowledged the response that carried it, or (those answers are held back
 * while anything warms) subscribed to its assignment and acknowledged one that was sent after it. A live cluster that
 * is changed in place waits for nothing: the old one serves until the new one is warm.
 *
 * It looks at the few clusters that come or go, and costs nothing while there are none.
 */
export class Barrier {
  readonly #times: BarrierTimes;
  readonly #references: References;
  readonly #events: BarrierEvents;
  /** They end with the answer, or after {@link BarrierTimes.timeoutMs}. */
  #arrivals: readonly Arrival[] = [];
  #departures: readonly Departure[] = [];
  /** What was kept when they were last brought up to date. */
  #departing: Names = NONE;
  /** What former listeners named that their successors do not, and until when they may route to it. */
  readonly #drains = new Map<string, number>();
  /** Set when a former listener's clusters are unknown: all are kept until then. */
  #drainsAll = 0;
  /** A response whose new clusters cannot be told apart; everything waits for its answer. */
  #unknown: { readonly since: number; readonly nonce: number } | undefined;
  readonly #stuck: Intervals;
  readonly #overdue: Intervals;

  constructor(times: BarrierTimes, references: References, events: BarrierEvents) {
    this.#times = times;
    this.#references = references;
    this.#events = events;
    this.#stuck = new Intervals(times.stuckMs);
    this.#overdue = new Intervals(times.overdueMs);
  }

  /** A response with guarded resources went out that are new to the client. */
  sent(names: ReadonlySet<string>, nonce: number, now: number): void {
    const earlier = this.#arrivals.map((arrival) => split(arrival, names)[1]);
    this.#arrivals = fewer(notEmpty([...earlier, { names, since: now, nonce, followed: 0, awaited: false }]));
    this.#stuck.restart();
  }

  /**
   * A client that routes already does not say what it holds: it came back in state of the world, or without versions.
   * The answer comes when all of it is warm.
   */
  sentUnknown(sent: Sent, now: number): void {
    this.#unknown = { since: now, nonce: sent.nonce };
  }

  /** Nothing that refers to guarded resources may be sent. */
  get blocksAll(): boolean {
    return this.#unknown !== undefined;
  }

  /** A response with what belongs to guarded resources went out. */
  followed(sent: Sent, { guarded }: Parties): void {
    if (this.#arrivals.length === 0) return;
    const names = new Set<string>();
    // It proves nothing about a cluster that it does not belong to: where it was made up for a name that does not exist,
    // and where the client is still to be sent the cluster that it belongs to. Another kind of cluster ignores it.
    for (const { name, holders } of itemsOf(sent))
      if (holders > 0 && guarded?.ledger.pending?.has(name) !== true) names.add(name);
    const arrivals = this.#arrivals.flatMap((arrival) => {
      const [within, without] = split(arrival, names);
      return [{ ...within, followed: sent.nonce }, without];
    });
    this.#arrivals = fewer(notEmpty(arrivals));
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

  /** A response with what belongs to them was accepted. */
  followedAccepted(sent: Sent): void {
    this.#arrivals = this.#arrivals.filter(({ followed }) => !isIn(sent, followed));
    this.#stuck.restart();
  }

  /** Listeners were replaced or removed, or may have been: the former ones drain, and name what they named. */
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

  /** Guarded resources that changed: those that are there again depart anew when they go, however soon that is. */
  present(differences: ReadonlyMap<string, { readonly now: Served | undefined }>): void {
    if (this.#departures.length === 0) return;
    const names = new Set<string>();
    for (const [name, { now }] of differences) if (now !== undefined) names.add(name);
    if (names.size > 0) this.#departures = notEmpty(this.#departures.map((departure) => split(departure, names)[1]));
  }

  /** What must not be sent yet; undefined while nothing is held back. */
  blocks({ guarded, view }: Parties, now: number): ((item: Served) => boolean) | undefined {
    const unsent = new Set<string>();
    for (const [name, held] of guarded?.ledger.pending ?? []) {
      // Only a few unanswered responses may be out: this one has not been sent at all.
      if (held === undefined && !this.#arrivals.some(({ names }) => names.has(name))) unsent.add(name);
    }
    if (unsent.size > 0) this.sent(unsent, Infinity, now);
    if (guarded === undefined || this.#arrivals.length === 0) return undefined;
    const { typeUrl } = guarded.type;
    const isOffered = (name: string): boolean => guarded.ledger.offer(name, view.resolve(typeUrl, name)) !== undefined;
    return ({ resource }) => {
      const awaited = this.#arrivals.find(({ names }) => this.#references.find(resource.body, names, isOffered));
      if (awaited !== undefined) awaited.awaited = true;
      return awaited !== undefined;
    };
  }

  /** Time passes. */
  tick(parties: Parties, now: number): void {
    const isOver = ({ since }: Arrival): boolean => now - since >= this.#times.timeoutMs;
    for (const arrival of this.#arrivals) if (isOver(arrival) && arrival.awaited) this.#events.timedOut();
    this.#arrivals = this.#arrivals.filter((arrival) => !isOver(arrival));
    if (this.#unknown !== undefined && now - this.#unknown.since >= this.#times.timeoutMs) {
      this.#unknown = undefined;
      this.#events.timedOut();
    }
    this.#release(parties, now);
    this.#takeBackStuck(parties, now);
    this.#repeatOverdue(parties, now);
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
    for (const departure of this.#departures) {
      const [drained, rest] = split(departure, this.#drains);
      const [inForce, others] = split(rest, uses.lasting.names);
      const [unanswered, unused] = split(others, uses.awaited.names);
      const goesOn = [drained, inForce].map((part) => ({ ...part, freeAt: undefined }));
      waiting.push(...goesOn, this.#age(unanswered, uses, true, now), this.#age(unused, uses, false, now));
    }
    const isOver = ({ freeAt }: Departure): boolean => freeAt !== undefined && now - freeAt >= this.#times.lingerMs;
    this.#departures = notEmpty(waiting).filter((departure) => !isOver(departure));
    for (const departure of waiting) if (isOver(departure)) guarded!.release(departure.names);
  }

  /** Of names that nothing which is known to be in force names. `named`: by something that the client may yet use. */
  #age(departure: Departure, { lasting, awaited }: UsesByTime, named: boolean, now: number): Departure {
    if (departure.names.size === 0) return departure;
    const { since, timedOut } = departure;
    const isFree = { ...departure, freeAt: departure.freeAt ?? now };
    const isUsed = { ...departure, freeAt: undefined };
    if (now < this.#drainsAll) return isUsed;
    // What drains (kept), or stays in force after a refusal, goes on for as long as it takes; but what is
    // unknown holds nothing back for longer than an old listener can.
    if (lasting.all && now - since < this.#times.drainMs) return isUsed;
    if (timedOut || !(awaited.all || named)) return isFree;
    if (now - since < this.#times.timeoutMs) return isUsed;
    this.#events.timedOut();
    return { ...isFree, timedOut: true };
  }

  /**
   * Some refused clusters warm for ever: Envoy then holds the refusal itself back. It shows in what it does not do: it
   * acknowledged assignments that were sent later, and did not subscribe to that of this cluster. Taken back, it frees
   * all answers. Looked for when the client has acknowledged assignments, and then in growing intervals.
   */
  #takeBackStuck({ guarded, followers, view }: Parties, now: number): void {
    const oldest = guarded?.inFlight.oldest;
    if (oldest === undefined || !this.#stuck.isDue(oldest.at, now)) return;
    for (const sent of guarded!.inFlight) {
      if (now - sent.at < this.#times.stuckMs || sent.prior === undefined) continue;
      for (const follower of followers) {
        if (follower.inFlight.ackedNonce <= sent.nonce) continue;
        for (const item of itemsOf(sent)) {
          const isNew = priorOf(sent, item) === undefined;
          if (
            !isNew ||
            follower.interest.has(item.name) ||
            view.resolve(follower.type.typeUrl, item.name) === undefined
          )
            continue;
          guarded!.suspectStuck(item, undefined, now);
        }
      }
    }
  }

  /**
   * While anything warms Envoy holds all its answers back; what it waits for may have been lost on it (an assignment
   * that came before its cluster). It is sent again, in growing intervals.
   */
  #repeatOverdue({ guarded, followers, view }: Parties, now: number): void {
    const oldest = guarded?.inFlight.oldest;
    if (oldest === undefined) {
      this.#overdue.restart();
      return;
    }
    if (!this.#overdue.isDue(oldest.at, now)) return;
    this.#events.overdue();
    const attempt = this.#overdue.count;
    for (const follower of followers) {
      // Perhaps it warms since before it came back, and nothing of that has been sent here.
      if (attempt === 2) follower.repeatAll();
      for (const sent of guarded!.inFlight) {
        if (sent.prior === undefined) follower.repeatAll();
        else if (attempt > 2 && follower.inFlight.ackedNonce > sent.nonce) takeBackChanged(guarded!, sent, now);
        follower.follow(sent, view);
      }
    }
  }
}

/** Perhaps one of them is a new version of a live cluster, which the client has refused without saying so. */
function takeBackChanged(guarded: Subscription, sent: Sent, now: number): void {
  for (const item of itemsOf(sent)) {
    const prior = sent.prior?.get(item.name);
    if (prior instanceof Served) guarded.suspectStuck(item, prior, now);
  }
}

/** The times at which something that lasts is looked at: further and further apart. */
class Intervals {
  readonly #first: number;
  #ms: number;
  #at = 0;
  /** How often it was due since it began. */
  count = 0;

  constructor(ms: number) {
    this.#first = this.#ms = ms;
  }

  /** Whether it has lasted long enough since it began, and since the last time. */
  isDue(since: number, now: number): boolean {
    if (now - Math.max(since, this.#at) < this.#ms) return false;
    this.#at = now;
    this.#ms = Math.min(this.#ms * 2, MAX_REPEAT_MS);
    this.count++;
    return true;
  }

  restart(): void {
    this.#ms = this.#first;
    this.#at = this.count = 0;
  }
}

const MAX_REPEAT_MS = 300_000;

/** Whatever may be sent is looked up in each of so many arrivals; of more, those that began first become one. */
const MAX_ARRIVALS = 16;

/** A client could be sent each cluster by itself, and answer nothing. */
function fewer(arrivals: readonly Arrival[]): readonly Arrival[] {
  if (arrivals.length <= MAX_ARRIVALS) return arrivals;
  const early = arrivals.slice(0, -MAX_ARRIVALS / 2);
  const [unsent, sent] = [true, false].map((is) => early.filter(({ nonce }) => (nonce === Infinity) === is));
  return [...together(unsent!), ...together(sent!), ...arrivals.slice(-MAX_ARRIVALS / 2)];
}

/** They end when the last of them is answered, or when the first of them has waited for too long. */
function together(arrivals: readonly Arrival[]): readonly Arrival[] {
  if (arrivals.length === 0) return [];
  return [
    {
      names: new Set(arrivals.flatMap(({ names }) => [...names.keys()])),
      since: Math.min(...arrivals.map(({ since }) => since)),
      nonce: Math.max(...arrivals.map(({ nonce }) => nonce)),
      followed: arrivals.every(({ followed }) => followed > 0)
        ? Math.max(...arrivals.map(({ followed }) => followed))
        : 0,
      awaited: arrivals.some(({ awaited }) => awaited),
    },
  ];
}

/** Departures as they were, of names that are still kept, and those of new ones. */
function departuresOf(kept: Names, former: readonly Departure[], now: number): readonly Departure[] {
  const departures: Departure[] = [];
  const known = new Set<string>();
  for (const departure of former) {
    const [still] = split(departure, kept);
    if (still.names.size === 0) continue;
    // The map that other streams share, too: what is let go as a whole is not gone through.
    if (still.names.size === kept.size) return [{ ...still, names: kept }];
    departures.push(still);
    for (const name of still.names.keys()) known.add(name);
  }
  const [, added] = split({ names: kept, since: now, freeAt: undefined, timedOut: false }, known);
  return added.names.size === 0 ? departures : [...departures, added];
}

/** Whether a nonce is one of those that a response stands for. */
function isIn({ first, nonce: last }: Sent, nonce: number): boolean {
  return first <= nonce && nonce <= last;
}
