import { IdentityMemo } from '../../base/identity-memo.ts';
import { joinRollouts, type Rollout } from '../rollouts/rollout.ts';
import { type Change, type Changes, ChangeSet, eachMember, type List, type Root } from './forest.ts';
import type { SharedBatches } from './shared-batches.ts';

/** A root, what changed for it, and the lists with these changes unless lists came or went. */
export type RootChanges = readonly [root: Root, changes: Changes, lists?: readonly List[]];

/**
 * What a publication changed for each root: climbs from the lists, so that no other root is looked at.
 * @param touched lists whose members changed.
 * @param moved roots that gained or lost lists.
 * @param shared is told of roots that nobody watches.
 */
export function* changesByRoot(
  touched: ReadonlyMap<List, ChangeSet>,
  moved: ReadonlySet<Root>,
  shared: Pick<SharedBatches, 'dissolved'>,
): Generator<RootChanges> {
  const alike = new IdentityMemo<ChangeSet>();
  const listsOf = new Map<Root, List[]>();
  for (const list of touched.keys()) {
    for (const root of list.roots) {
      const lists = listsOf.get(root);
      if (lists === undefined) listsOf.set(root, [list]);
      else lists.push(list);
    }
  }
  for (const root of moved) if (!listsOf.has(root)) listsOf.set(root, []);
  for (const [root, lists] of listsOf) {
    if (!root.watched) {
      // Its streams are yet to come, or have moved to another world.
      root.settle();
      shared.dissolved(root);
      continue;
    }
    if (!root.moved) {
      // A list may have come that the root already had in another way.
      if (lists.length === 0) continue;
      const [only] = lists as [List];
      const changes = lists.length === 1 ? touched.get(only)! : alike.of(lists, () => mergedFrom(lists, touched));
      yield [root, changes.byType, lists];
      continue;
    }
    const { gained, lost } = root.settle();
    const changes = mergedFrom(
      lists.filter((list) => !gained.has(list)),
      touched,
    );
    for (const [list, moving] of gained) addGained(changes, list, moving, touched.get(list));
    for (const [list, moving] of lost) addLost(changes, list, moving, touched.get(list));
    if (changes.byType.size > 0) yield [root, changes.byType];
  }
}

/** Every member of a gained list is new to the root, whether or not it changed in the same publication. */
function addGained(changes: ChangeSet, list: List, moving: readonly Rollout[], members: ChangeSet | undefined): void {
  eachMember(list, (typeUrl, name, qualifier, now) => {
    const changed = members?.byType
      .get(typeUrl)
      ?.get(name)
      ?.find((change) => change.qualifier === qualifier);
    const rollouts = changed === undefined ? moving : joinRollouts(moving, changed.rollouts);
    changes.merge(typeUrl, name, { qualifier, was: undefined, now, rollouts });
  });
}

/** The root loses the members as they were before the publication. */
function addLost(changes: ChangeSet, list: List, moving: readonly Rollout[], members: ChangeSet | undefined): void {
  eachMember(list, (typeUrl, name, qualifier, was) => {
    const changed = members?.byType.get(typeUrl)?.get(name);
    if (changed?.some((change) => change.qualifier === qualifier)) return;
    changes.merge(typeUrl, name, { qualifier, was, now: undefined, rollouts: moving });
  });
  if (members === undefined) return;
  eachChange(members, (typeUrl, name, { qualifier, was, rollouts }) => {
    if (was === undefined) return;
    changes.merge(typeUrl, name, { qualifier, was, now: undefined, rollouts: joinRollouts(moving, rollouts) });
  });
}

function mergedFrom(lists: readonly List[], touched: ReadonlyMap<List, ChangeSet>): ChangeSet {
  const merged = new ChangeSet();
  for (const list of lists)
    eachChange(touched.get(list)!, (typeUrl, name, change) => merged.merge(typeUrl, name, change));
  return merged;
}

function eachChange(changes: ChangeSet, visit: (typeUrl: string, name: string, change: Change) => void): void {
  for (const [typeUrl, names] of changes.byType) {
    for (const [name, list] of names) for (const change of list) visit(typeUrl, name, change);
  }
}
