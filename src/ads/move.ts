import type { FormerWorld } from './former-world.ts';
import { type List, variantOf } from './forest.ts';
import type { Served } from './served.ts';
import type { WorldView } from './world.ts';

type Visit = (name: string, was: Served | undefined, now: Served | undefined) => void;

/**
 * From what a stream saw to what it sees. Worlds have most of their lists in common: of these only what has changed in
 * the meantime is looked at.
 */
export class Move {
  readonly #before: FormerWorld;
  readonly #after: WorldView;
  /** Lists that only one of the two has. */
  readonly #left: readonly List[];
  readonly #entered: readonly List[];
  /** Lists that are seen in another way. */
  readonly #common: readonly List[];

  constructor(before: FormerWorld, after: WorldView) {
    this.#before = before;
    this.#after = after;
    const lists = [...new Set(before.roots.flatMap((root) => [...root.lists]))];
    const isIn = (list: List): boolean => after.roots.some((root) => root.lists.has(list));
    const wasIn = (list: List): boolean => before.roots.some((root) => root.lists.has(list));
    this.#left = lists.filter((list) => !isIn(list));
    const alike = before.qualifiers.join('\n') === after.qualifiers.join('\n');
    this.#common = alike ? [] : lists.filter(isIn);
    this.#entered = after.roots.flatMap((root) => [...root.lists.keys()].filter((list) => !wasIn(list)));
  }

  /** The names of a type that may be different, with what was seen of them and what is; some of them more than once. */
  visit(typeUrl: string, visit: Visit): void {
    const before = this.#before;
    const after = this.#after;
    const look = (name: string): void => visit(name, before.resolve(typeUrl, name), after.resolve(typeUrl, name));
    for (const name of before.excluded) if (!after.excluded.has(name)) look(name);
    for (const name of after.excluded) if (!before.excluded.has(name)) look(name);
    const changed = before.roots.map((root) => root.changed(typeUrl)).filter((names) => names.size > 0);
    for (const names of changed) for (const name of names.keys()) look(name);
    for (const list of this.#common) {
      for (const [name, member] of list.members.get(typeUrl) ?? []) if (member instanceof Map) look(name);
    }
    // Nearly every name is in one list, and the other world does not have it.
    const holders = before.holders.get(typeUrl);
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
