import type { FormerWorld } from './former-world.ts';
import type { List } from './forest.ts';
import type { WorldView } from './world.ts';

/**
 * From what a stream saw to what it sees. Worlds have most of their lists in common: of these only what has changed in
 * the meantime is looked at.
 */
export class Move {
  readonly before: FormerWorld;
  readonly after: WorldView;
  /** Lists that one of the two has, and the other has not. */
  readonly #lists: readonly List[];
  /** Lists that are seen in another way. */
  readonly #common: readonly List[];

  constructor(before: FormerWorld, after: WorldView) {
    this.before = before;
    this.after = after;
    const lists: List[] = [];
    const common: List[] = [];
    const alike = before.qualifiers.join('\n') === after.qualifiers.join('\n');
    for (const root of before.roots) {
      for (const list of root.lists) {
        if (!after.roots.some((other) => other.lists.has(list))) lists.push(list);
        else if (!alike) common.push(list);
      }
    }
    for (const root of after.roots) {
      for (const list of root.lists.keys()) if (!before.roots.some((other) => other.lists.has(list))) lists.push(list);
    }
    this.#lists = lists;
    this.#common = common;
  }

  /** The names of a type that may be different, some of them more than once. */
  *names(typeUrl: string): Generator<string> {
    const { before, after } = this;
    for (const name of before.excluded) if (!after.excluded.has(name)) yield name;
    for (const name of after.excluded) if (!before.excluded.has(name)) yield name;
    for (const list of this.#lists) yield* list.members.get(typeUrl)?.keys() ?? [];
    for (const root of before.roots) yield* root.changed(typeUrl);
    for (const list of this.#common) {
      for (const [name, member] of list.members.get(typeUrl) ?? []) if (member instanceof Map) yield name;
    }
  }
}
