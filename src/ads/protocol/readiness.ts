import type { BarrierTimes } from './barrier-times.ts';
import type { Parties } from './parties.ts';
import type { Blocked } from './composition.ts';
import { leavesOf } from '../store/resource.ts';
import { type Held, type References, Served } from '../store/served.ts';
import type { HeldNames } from './ledger.ts';
import type { Subscription } from './subscription.ts';
import type { ResourceType } from '../types.ts';
import type { WorldView } from '../store/world.ts';
import { usesOf } from './uses.ts';

/**
 * Live clusters that lose their last ready endpoint or get their first one, for one stream: requests that move at the
 * same time must find endpoints before and after.
 *
 * - An assignment that loses its last ready endpoint waits for the tables and listeners that are about to leave its
 *   cluster: it would be ahead of them. It lingers after that, as a cluster does that nothing names any more: retries in
 *   back-off look for an endpoint again. A cluster that stays in use is emptied at once. One that is changed meanwhile,
 *   and warms, has its former endpoints until then.
 * - A table waits for an owed assignment that brings the first ready endpoint: that may be waiting for the answer to
 *   an earlier one.
 */
export class Readiness {
  readonly #references: References;
  readonly #times: Pick<BarrierTimes, 'lingerMs' | 'timeoutMs'>;
  /** Since when the assignment of a cluster that changes so is owed. */
  #since: Times = NEVER;
  /** When it was last seen that the client may yet use the cluster of an assignment that is about to be emptied. */
  #usedAt: Times = NEVER;

  /** @param times what takes longer than `timeoutMs` is not waited for. */
  constructor(references: References, times: Pick<BarrierTimes, 'lingerMs' | 'timeoutMs'>) {
    this.#references = references;
    this.#times = times;
  }

  /** Which of these assignments must not be sent yet; undefined while nothing is held back. */
  blocksAssignments(of: Subscription, parties: Parties, now: number): Blocked {
    const changes = changesIn(of, parties);
    if (changes !== NO_CHANGES || this.#since.size > 0) this.#note(changes, now);
    if (changes.emptied.size + this.#usedAt.size === 0) return undefined;
    return this.#blocked(changes, parties, now);
  }

  #blocked(changes: Changes, parties: Parties, now: number): Blocked {
    const left = this.#left(this.#recent(changes.emptied, now), parties, now);
    return left.size === 0 ? undefined : ({ name }) => left.has(name);
  }

  /** Which tables and listeners must not be sent yet; undefined while nothing is held back. */
  blocksReferrers(parties: Parties, now: number): Blocked {
    for (const follower of parties.followers) {
      if (follower.ledger.pending === undefined) continue;
      const filled = this.#recent(changesIn(follower, parties).filled, now);
      if (filled.size > 0) return ({ resource }) => this.#references.find(resource.body, filled, () => true);
    }
    return undefined;
  }

  /** What is no longer owed is waited for as long as at first when it is owed again. */
  settle(parties: Parties): void {
    if (this.#since.size > 0) this.#settle(parties);
  }

  #settle({ followers }: Parties): void {
    const isOwed = (name: string): boolean => followers.some(({ ledger }) => ledger.pending?.has(name) === true);
    this.#since = new Map([...this.#since].filter(([name]) => isOwed(name)));
  }

  #note({ emptied, filled }: Changes, now: number): void {
    this.#since = new Map([...emptied, ...filled].map((name) => [name, this.#since.get(name) ?? now]));
  }

  #recent(names: ReadonlySet<string>, now: number): ReadonlySet<string> {
    return new Set([...names].filter((name) => now - (this.#since.get(name) ?? now) < this.#times.timeoutMs));
  }

  /** Names that nothing refers to any more, except what the client may yet use, or has used until a moment ago. */
  #left(names: ReadonlySet<string>, parties: Parties, now: number): ReadonlySet<string> {
    const { lasting, awaited } = usesOf(parties, this.#references, names, now);
    const usedAt = new Map([...this.#usedAt].filter(([name]) => names.has(name)));
    for (const used of [lasting.names, awaited.names]) for (const name of used.keys()) usedAt.set(name, now);
    this.#usedAt = usedAt;
    const left = new Set([...usedAt].flatMap(([name, at]) => (now - at < this.#times.lingerMs ? [name] : [])));
    if (left.size === 0) return left;
    for (const { interest } of parties.referrers) {
      for (const batch of interest.in(parties.view).batches)
        this.#references.findIn(batch, left, (name) => !left.delete(name));
    }
    return left;
  }
}

type Times = ReadonlyMap<string, number>;
const NEVER: Times = new Map();

/** Owed assignments by what they change: names of those that lose all ready endpoints, or get the first one. */
type Changes = Readonly<Record<'emptied' | 'filled', ReadonlySet<string>>>;

const NO_CHANGES: Changes = { emptied: new Set(), filled: new Set() };

function changesIn(of: Subscription, { view }: Parties): Changes {
  const { all, type, ledger, context } = of;
  if (all || ledger.pending === undefined) return NO_CHANGES;
  const shared = context.shared();
  const common = ledger.commonIn(shared);
  if (common !== undefined) return (common.readiness ??= changesOf(type, ledger.pending, view));
  const marks = ledger.pending.size < shared.many ? undefined : ledger.marks;
  return marks === undefined
    ? changesOf(type, ledger.pending, view)
    : shared.readiness.of([type, view, marks.pending], () => changesOf(type, marks.pending, view));
}

function changesOf({ typeUrl }: ResourceType, pending: HeldNames, view: WorldView): Changes {
  const emptied = new Set<string>();
  const filled = new Set<string>();
  for (const [name, held] of pending) {
    const present = view.resolve(typeUrl, name);
    // What the client holds of it may be unknown: then nothing is known to change.
    if (present === undefined || typeof held === 'string' || isReady(present) === isReady(held)) continue;
    (isReady(present) ? filled : emptied).add(name);
  }
  return emptied.size + filled.size === 0 ? NO_CHANGES : { emptied, filled };
}

function isReady(held: Exclude<Held, string>): boolean {
  if (!(held instanceof Served)) return false;
  for (const leaf of leavesOf(held.resource.body)) if (leaf.unready === true) return false;
  return true;
}
