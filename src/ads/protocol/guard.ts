import { Absences } from './absences.ts';
import { Barrier, type BarrierEvents, comesOrGoes } from './barrier.ts';
import type { BarrierTimes } from './barrier-times.ts';
import type { Gate } from './canaries.ts';
import { type Blocked, either } from './composition.ts';
import { heldWith } from './gates.ts';
import { type Parties, partiesOf } from './parties.ts';
import { Readiness } from './readiness.ts';
import { newNamesOf, type Sent } from './sent.ts';
import type { Difference } from '../store/differences.ts';
import type { References } from '../store/served.ts';
import type { SharedWork } from '../store/shared-work.ts';
import type { WorldView } from '../store/world.ts';
import type { Subscription } from './subscription.ts';
import type { ResourceTypes } from '../types.ts';

/** The same for all streams of one kind. */
export interface GuardContext {
  readonly types: ResourceTypes;
  readonly references: References;
  readonly times: BarrierTimes;
  /** Only in tests: nothing is guarded. */
  readonly unguarded: boolean;
  /** A new one with each publication. */
  shared(): SharedWork;
}

/**
 * What a stream must not be sent yet, so that its client loses no request: {@link Barrier}, {@link Readiness} and
 * {@link Absences} as one.
 */
export class Guard {
  readonly #context: GuardContext;
  readonly #events: BarrierEvents;
  readonly #readiness: Readiness;
  /** Undefined while nobody asks for what does not exist. */
  #absences: Absences | undefined;
  /** Undefined while no cluster comes or goes. */
  #barrier: Barrier | undefined;
  /** The client was connected before: its listeners and tables may use new clusters as soon as it has them. */
  #resumedAt: number | undefined;
  #parties: Parties;

  constructor(context: GuardContext, events: BarrierEvents, view: WorldView) {
    this.#context = context;
    this.#events = events;
    this.#readiness = new Readiness(context.references, context.times);
    this.#parties = partiesOf([], context, { view, resumedAt: undefined });
  }

  get parties(): Parties {
    return this.#parties;
  }

  get resumed(): boolean {
    return this.#resumedAt !== undefined;
  }

  /** Subscriptions came, or the stream moved to another world. */
  look(subscriptions: readonly (Subscription | undefined)[], view: WorldView): void {
    this.#parties = partiesOf(subscriptions, this.#context, { view, resumedAt: this.#resumedAt });
  }

  /** The client says that it was connected before; what it was sent so far may be new to it. */
  resume(now: number): void {
    if (this.#resumedAt !== undefined) return;
    this.#resumedAt = now;
    for (const sent of this.#parties.guarded?.inFlight ?? []) this.#arrived(sent, now);
  }

  /** Nothing that refers to clusters may be sent. */
  get blocksAll(): boolean {
    return this.#barrier?.blocksAll === true && !this.#context.unguarded;
  }

  /** Which resources must not be sent yet. `gate`: the one of the clusters. */
  blocks(subscription: Subscription, gate: Gate, now: number): Blocked {
    const { refersTo, behind } = subscription.type;
    const { unguarded } = this.#context;
    if (behind !== undefined) {
      const unready = unguarded ? undefined : this.#readiness.blocksAssignments(subscription, this.#parties, now);
      return gate === 'open' ? unready : either(unready, heldWith(gate, this.#parties));
    }
    if (refersTo === undefined || unguarded) return undefined;
    const { guarded } = this.#parties;
    const needsNone = this.#barrier === undefined && guarded?.ledger.pending === undefined;
    const unproven = needsNone ? undefined : this.#needBarrier().blocks(this.#parties, now);
    return either(unproven, this.#readiness.blocksReferrers(this.#parties, now));
  }

  /** See {@link Absences}. */
  keepsSilent({ all, ledger }: Subscription, now: number): boolean {
    if (!all && ledger.asked === undefined) return false;
    return (this.#absences ??= new Absences(this.#context.times)).keepSilent(this.#parties, now);
  }

  /** A response was handed to the connection. */
  sent({ type, guarded }: Subscription, sent: Sent, now: number): void {
    if (type.drains === true) this.#drains(sent, now);
    if (guarded) {
      // A starting client asks for listeners when its first clusters are ready: nothing needs to be held back before.
      if (this.#resumedAt !== undefined || this.#parties.referrers.length > 0) this.#arrived(sent, now);
    } else if (type.behind !== undefined) this.#barrier?.followed(sent, this.#parties);
  }

  accepted({ type, guarded }: Subscription, sent: Sent, now: number): void {
    if (guarded) this.#barrier?.accepted(sent);
    else if (type.behind !== undefined) this.#barrier?.followedAccepted(sent);
    if (type.drains === true) this.#drains(sent, now);
  }

  rejected({ guarded }: Subscription, rejected: readonly Sent[]): void {
    if (guarded) for (const each of rejected) this.#barrier?.answered(each);
  }

  /** Clusters changed, and are owed. `returned`: see {@link Barrier.returned}. */
  changed(clusters: ReadonlyMap<string, Difference>, returned: readonly string[]): void {
    this.#barrier?.present(clusters, this.#parties);
    if (returned.length > 0) this.#needBarrier().returned(returned);
  }

  /** Where nothing is owed, nothing is waited for. */
  settle(): void {
    this.#readiness.settle(this.#parties);
    if (this.#absences?.settle(this.#parties) === true) this.#absences = undefined;
  }

  /** Something may become due as time passes. */
  get awaitsTime(): boolean {
    return this.#barrier !== undefined || comesOrGoes(this.#parties);
  }

  /** Time passes. */
  tick(now: number): void {
    if (this.awaitsTime && this.#needBarrier().tick(this.#parties, now)) this.#barrier = undefined;
  }

  #needBarrier(): Barrier {
    return (this.#barrier ??= new Barrier(this.#context.times, this.#context.references, this.#events));
  }

  /** Former listeners drain once their successors serve: not before these are sent, nor long after the answer. */
  #drains(sent: Sent, now: number): void {
    for (const held of sent.prior?.values() ?? [sent.before]) {
      if (held === undefined) continue;
      this.#needBarrier().drains(sent, now);
      return;
    }
  }

  #arrived(sent: Sent, now: number): void {
    if (sent.prior === undefined) {
      this.#needBarrier().sentUnknown(sent, now);
      return;
    }
    const { batches, prior } = sent;
    const added = this.#context.shared().news.of([batches, prior], () => newNamesOf(sent));
    const news = this.#barrier?.withReturned(added, sent) ?? added;
    if (news.size > 0) this.#needBarrier().sent(news, sent.nonce, now);
  }
}
