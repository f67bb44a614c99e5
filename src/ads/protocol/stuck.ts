import type { BarrierTimes } from './barrier-times.ts';
import { Intervals } from './intervals.ts';
import type { Parties } from './parties.ts';
import { itemsOf, priorOf, type Sent } from './sent.ts';
import { type Held, isLate, Served } from '../store/served.ts';
import type { Subscription } from './subscription.ts';

/**
 * Clusters that warm for ever: Envoy then holds back all its answers. They are taken back, or the client is resent what
 * they may be waiting for.
 */
export class Stuck {
  readonly #times: Pick<BarrierTimes, 'stuckMs'>;
  readonly #isOverdue: () => void;
  /** The oldest response without an answer, and since when it is known of nothing that it would wait for. */
  #warm: { readonly nonce: number; readonly since: number } | undefined;
  readonly #due: Intervals;
  readonly #overdue: Intervals;

  /** @param isOverdue the client has not answered for a long time, and is resent what it may be waiting for. */
  constructor(times: Pick<BarrierTimes, 'stuckMs' | 'overdueMs'>, isOverdue: () => void) {
    this.#times = times;
    this.#isOverdue = isOverdue;
    this.#due = new Intervals(times.stuckMs);
    this.#overdue = new Intervals(times.overdueMs);
  }

  /** The client was sent new clusters, or has acknowledged assignments: it is looked at anew. */
  restart(): void {
    this.#due.restart();
  }

  /** Time passes. */
  tick(parties: Parties, now: number): void {
    const { guarded } = parties;
    const oldest = guarded?.inFlight.oldest;
    if (guarded === undefined || oldest === undefined) {
      this.#overdue.restart();
      return;
    }
    this.#takeBack(guarded, oldest, parties, now);
    this.#repeat(guarded, oldest, parties, now);
  }

  /**
   * Some rejected clusters warm forever, and Envoy then holds back the rejection itself. It shows in what Envoy does
   * not do: it acknowledged assignments that were sent later, but did not subscribe to this cluster's. Taking the
   * cluster back frees all answers. Checked when the client has acknowledged assignments, and then at growing
   * intervals.
   *
   * A rejected new version of a live cluster may do the same beside a new cluster. It shows in answers that are missing
   * although the client has whatever the clusters in them wait for.
   */
  #takeBack(guarded: Subscription, oldest: Sent, { followers, view }: Parties, now: number): void {
    if (!this.#due.isDue(oldest.at, now)) return;
    for (const sent of guarded.inFlight) {
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
          suspectStuck(guarded, item, undefined, now);
        }
      }
    }
    if (!areWarm(guarded, followers)) this.#warm = undefined;
    else if (this.#warm?.nonce !== oldest.nonce) this.#warm = { nonce: oldest.nonce, since: now };
    else if (now - this.#warm.since >= this.#times.stuckMs)
      for (const sent of guarded.inFlight) takeBackChanged(guarded, sent, now);
  }

  /**
   * While anything warms, Envoy holds back all its answers; it may have lost what it waits for (an assignment that came
   * before its cluster). That is resent, at growing intervals.
   */
  #repeat(guarded: Subscription, oldest: Sent, { followers, view }: Parties, now: number): void {
    if (!this.#overdue.isDue(oldest.at, now)) return;
    this.#isOverdue();
    const attempt = this.#overdue.count;
    for (const follower of followers) {
      // Perhaps something has been warming since before the client reconnected, and was never sent on this stream.
      if (attempt === 2) follower.repeatAll();
      for (const sent of guarded.inFlight) {
        if (sent.prior === undefined) follower.repeatAll();
        else if (attempt > 2 && follower.inFlight.ackedNonce > sent.nonce) takeBackChanged(guarded, sent, now);
        follower.follow(sent, view);
      }
    }
  }
}

/**
 * Whether the client has acknowledged the assignments that the clusters in unanswered responses wait for, and they wait
 * for nothing else.
 */
function areWarm(guarded: Subscription, followers: readonly Subscription[]): boolean {
  /** With the response that carried it. */
  const newest = new Map<string, readonly [Served, number]>();
  for (const sent of guarded.inFlight) {
    if (sent.prior === undefined) return false;
    for (const name of sent.prior.keys()) newest.delete(name);
    for (const item of itemsOf(sent)) if (sent.prior.has(item.name)) newest.set(item.name, [item, sent.nonce]);
  }
  for (const [name, [item, nonce]] of newest) {
    const has = ({ interest, ledger, inFlight }: Subscription): boolean =>
      inFlight.ackedNonce > nonce &&
      interest.has(name) &&
      ledger.pending?.has(name) !== true &&
      inFlight.last(name) === undefined;
    if (isLate(item) || !followers.some(has)) return false;
  }
  return true;
}

/** One of them may be a new version of a live cluster that the client has rejected without saying so. */
function takeBackChanged(guarded: Subscription, sent: Sent, now: number): void {
  for (const item of itemsOf(sent)) {
    const prior = sent.prior?.get(item.name);
    if (prior instanceof Served) suspectStuck(guarded, item, prior, now);
  }
}

/** The client seems to be stuck on a resource: it is given back what it had, until its answer comes. */
function suspectStuck({ ledger, inFlight }: Subscription, item: Served, prior: Held, now: number): void {
  const { name, version } = item;
  if (ledger.rejections?.forbids(name, version) === true || inFlight.last(name) !== item) return;
  const after = inFlight.sentNonce;
  ledger.reject(name, { version, held: prior, now, about: after, after, suspected: true, message: '' });
  ledger.owe(name, item);
}
