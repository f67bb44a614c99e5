import type { List, Root } from '../store/forest.ts';
import { common, type Keys } from '../store/names.ts';
import { joinRollouts, NO_ROLLOUTS, type Rollout } from './rollout.ts';
import type { Batch } from '../store/served.ts';
import type { Viewpoint } from '../store/world.ts';

/** By name, the rollouts under way that have brought it. */
export type BroughtNames = ReadonlyMap<string, readonly Rollout[]>;

/** What rollouts under way have brought to a batch. */
export interface BroughtIn {
  readonly names: BroughtNames;
  /** The rollouts that have brought all of it. */
  readonly whole: readonly Rollout[];
  /** Other worlds have the batch, too. */
  readonly isCommon: boolean;
}

/** By qualifier. */
type Variants = Map<string, readonly Rollout[]>;

/** From how many notes on it pays to look for those whose rollouts are over. */
const MANY = 1_024;

/**
 * What rollouts under way have brought to lists. Clients that come to see these later are waited for, too, and bytes do
 * not name all objects that they follow from. Bounded by what the lists contain.
 */
export class Brought {
  readonly #members = new Map<List, Map<string, Map<string, Variants>>>();
  readonly #children = new Map<List, Map<List, readonly Rollout[]>>();
  #notes = 0;
  #sweepAt = MANY;
  /** Any of them. */
  #last: Rollout | undefined;
  /** Which rollouts were under way when the others were last forgotten. */
  #sweptIn: object | undefined;

  member(list: List, typeUrl: string, name: string, qualifier: string, rollouts: readonly Rollout[]): void {
    if (rollouts.length === 0) return;
    const variants = inner(inner(inner(this.#members, list), typeUrl), name);
    variants.set(qualifier, joinRollouts(underWay(variants.get(qualifier)), rollouts));
    this.#noted(rollouts);
  }

  child(list: List, child: List, rollouts: readonly Rollout[]): void {
    if (rollouts.length === 0) return;
    const children = inner(this.#children, list);
    children.set(child, joinRollouts(underWay(children.get(child)), rollouts));
    this.#noted(rollouts);
  }

  memberLeft(list: List, typeUrl: string, name: string, qualifier: string): void {
    this.#members.get(list)?.get(typeUrl)?.get(name)?.delete(qualifier);
  }

  childLeft(list: List, child: List): void {
    this.#children.get(list)?.delete(child);
  }

  /** What a batch from these lists has of it. */
  in(lists: Keys<List>, { qualifiers }: Viewpoint, typeUrl: string, batch: Batch): BroughtNames {
    this.#forgetOver();
    const found = new Map<string, readonly Rollout[]>();
    if (this.#notes === 0) return found;
    const add = (name: string, rollouts: readonly Rollout[]): void => {
      if (rollouts.length > 0) found.set(name, joinRollouts(found.get(name) ?? NO_ROLLOUTS, rollouts));
    };
    const { names } = batch;
    for (const list of common(this.#members, lists)) {
      const noted = this.#members.get(list)!.get(typeUrl);
      if (noted === undefined) continue;
      for (const name of common(noted, names))
        for (const qualifier of ['', ...qualifiers]) add(name, underWay(noted.get(name)!.get(qualifier)));
    }
    for (const list of common(this.#children, lists))
      for (const [child, rollouts] of this.#children.get(list)!)
        for (const name of namesBelow(child, typeUrl)) if (names.has(name)) add(name, underWay(rollouts));
    return found;
  }

  /** The rollouts that have brought all of a list to a root. */
  along({ list }: Root, child: List): readonly Rollout[] {
    return underWay(this.#children.get(list)?.get(child));
  }

  /** Another one when other objects have rollouts. */
  get epoch(): object {
    return this.#last?.registry.epoch ?? NOBODY;
  }

  /** Each stream that asks for something looks at all notes: only those that say something may be left. */
  #forgetOver(): void {
    const { epoch } = this;
    if (epoch === this.#sweptIn) return;
    this.#sweep();
    this.#sweptIn = epoch;
  }

  #noted(rollouts: readonly Rollout[]): void {
    this.#last = rollouts[0];
    if (++this.#notes >= this.#sweepAt) this.#sweep();
  }

  #sweep(): void {
    this.#notes = 0;
    for (const types of this.#members.values())
      for (const names of types.values()) for (const variants of names.values()) this.#notes += sweep(variants);
    for (const children of this.#children.values()) this.#notes += sweep(children);
    for (const types of this.#members.values()) {
      for (const names of types.values()) dropEmpty(names);
      dropEmpty(types);
    }
    dropEmpty(this.#members);
    dropEmpty(this.#children);
    this.#sweepAt = MANY + 2 * this.#notes;
  }
}

const NOBODY = {};

/** Returns how many are left. */
function sweep<K>(notes: Map<K, readonly Rollout[]>): number {
  for (const [key, rollouts] of notes) if (underWay(rollouts).length === 0) notes.delete(key);
  return notes.size;
}

function dropEmpty<K>(maps: Map<K, { readonly size: number }>): void {
  for (const [key, { size }] of maps) if (size === 0) maps.delete(key);
}

function underWay(rollouts: readonly Rollout[] = NO_ROLLOUTS): readonly Rollout[] {
  return rollouts.some(({ isOver }) => isOver) ? rollouts.filter(({ isOver }) => !isOver) : rollouts;
}

function* namesBelow(list: List, typeUrl: string): Generator<string> {
  yield* list.members.get(typeUrl)?.keys() ?? [];
  for (const child of list.children) yield* namesBelow(child, typeUrl);
}

function inner<K, L, V>(maps: Map<K, Map<L, V>>, key: K): Map<L, V> {
  let map = maps.get(key);
  if (map === undefined) maps.set(key, (map = new Map<L, V>()));
  return map;
}
