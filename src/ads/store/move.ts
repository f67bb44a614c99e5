import { type Difference, Differences } from './differences.ts';
import type { FormerWorld } from './former-world.ts';
import { Earlier } from './earlier.ts';
import { type List, type News, variantOf } from './forest.ts';
import type { Served } from './served.ts';
import type { WorldView } from './world.ts';

type Visit = (name: string, was: Served | undefined, now: Served | undefined) => void;

/**
 * From what streams saw to what they see, as of one publication. Two worlds have most of their lists in common: of
 * these, only what has changed meanwhile is looked at.
 */
export class Move extends Differences {
  readonly #before: FormerWorld;
  readonly #after: WorldView;
  readonly #news: readonly News[];
  /** Lists that only one of the two worlds has. */
  readonly #left: readonly List[];
  readonly #entered: readonly List[];
  /** Lists that are seen differently: by other qualifiers, or through a root that now has another rank. */
  readonly #common: readonly List[];

  /** @param news of the new world since streams were told to move. */
  constructor(before: FormerWorld, after: WorldView, news: readonly News[] = []) {
    super();
    this.#before = before;
    this.#after = after;
    this.#news = news;
    const lists = [...new Set(before.roots.flatMap((root) => [...root.lists]))];
    const rank = (list: List): number => after.roots.findIndex((root) => root.lists.has(list));
    const formerRank = (list: List): number => before.roots.findIndex((root) => root.lists.has(list));
    const common = lists.filter((list) => rank(list) >= 0);
    this.#left = lists.filter((list) => rank(list) < 0);
    const alike =
      before.qualifiers.join('\n') === after.qualifiers.join('\n') &&
      common.every((list) => rank(list) === formerRank(list));
    this.#common = alike ? [] : common;
    this.#entered = after.roots.flatMap((root) => [...root.lists.keys()].filter((list) => formerRank(list) < 0));
  }

  protected compare(typeUrl: string): ReadonlyMap<string, Difference> {
    const differences = new Map<string, Difference>();
    const earlier = new Earlier(this.#news, typeUrl, this.#after.qualifiers);
    this.#visit(typeUrl, (name, was, now) => {
      if (was !== now) differences.set(name, { was, now, rollouts: earlier.rolloutsOf(name) });
    });
    return differences;
  }

  /** Visits names that may differ, some of them more than once. */
  #visit(typeUrl: string, visit: Visit): void {
    const before = this.#before;
    const after = this.#after;
    const look = (name: string): void => visit(name, before.resolve(typeUrl, name), after.resolve(typeUrl, name));
    for (const name of before.excluded) if (!after.excluded.has(name)) look(name);
    for (const name of after.excluded) if (!before.excluded.has(name)) look(name);
    const changed = before.roots.map((root) => root.changed(typeUrl)).filter((names) => names.size > 0);
    for (const names of changed) for (const name of names.keys()) look(name);
    const holders = before.holders.get(typeUrl);
    for (const list of this.#common) {
      for (const [name, member] of list.members.get(typeUrl) ?? []) {
        if (member instanceof Map || holders?.get(name) !== list) look(name);
      }
    }
    // Nearly every name is in one list, and the other world does not have it.
    const isAlone = (name: string, list: List): boolean =>
      holders?.get(name) === list && !changed.some((names) => names.has(name));
    for (const list of this.#left) {
      for (const [name, member] of list.members.get(typeUrl) ?? []) {
        if (!isAlone(name, list)) look(name);
        else if (!before.excluded.has(name)) visit(name, variantOf(member, before.qualifiers), undefined);
      }
    }
    for (const list of this.#entered) {
      for (const [name, member] of list.members.get(typeUrl) ?? []) {
        if (!isAlone(name, list)) look(name);
        else if (!after.excluded.has(name)) visit(name, undefined, variantOf(member, after.qualifiers));
      }
    }
  }
}
