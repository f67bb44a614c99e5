import { type Concern, joinRollouts, NO_ROLLOUTS, type Rollout } from '../rollouts/rollout.ts';
import type { Served } from './served.ts';

/** Several variants of a name, by qualifier; a single variant without a qualifier is stored as itself. */
export type Member = Served | ReadonlyMap<string, Served>;

/** What happened to one name, as seen by those with a qualifier. */
export interface Change {
  readonly qualifier: string;
  readonly was: Served | undefined;
  readonly now: Served | undefined;
  readonly rollouts: readonly Rollout[];
}

/** Changes by type and name. */
export type Changes = ReadonlyMap<string, ReadonlyMap<string, readonly Change[]>>;

/** What changed below one root in one publication. */
export interface News {
  readonly root: Root;
  /** One object for all roots with the same {@link lists}. */
  readonly changes: Changes;
  /** The lists of the root that have changed, or undefined if it has other lists now. */
  readonly lists: readonly List[] | undefined;
  /** The clients that have not looked at it yet, or undefined if it is part of no rollout. */
  readonly look: Concern | undefined;
}

/** Must be notified of changes: a world, and in it a stream. */
export interface Watcher {
  changed(news: News): void;
}

/** A world, as its roots see it. */
interface RootWorld extends Watcher {
  /** There are streams in it. */
  readonly watched: boolean;
}

/** Remembers what lists contained. */
export interface Former {
  note(list: List, changes: Changes): void;
}

/** A named list: members and child lists. A list with neither is kept while a parent or a world names it. */
export class List {
  readonly key: string;
  children: readonly List[] = [];
  /** How many lists have it as a child. */
  parents = 0;
  readonly members = new Map<string, Map<string, Member>>();
  /** Number of the publication that last changed its members or children. */
  changedIn = 0;
  /** The roots that it is reachable from. */
  readonly roots = new Set<Root>();
  /** Roots that it was reachable from, which must be told what it contained when it changes. */
  formers: Set<Former> | undefined;

  constructor(key: string) {
    this.key = key;
  }

  get(typeUrl: string, name: string, qualifiers: readonly string[]): Served | undefined {
    const member = this.members.get(typeUrl)?.get(name);
    return member === undefined ? undefined : variantOf(member, qualifiers);
  }

  /** Not everybody sees the same of this name. */
  hasVariants(typeUrl: string, name: string): boolean {
    return this.members.get(typeUrl)?.get(name) instanceof Map;
  }

  exactly(typeUrl: string, name: string, qualifier: string): Served | undefined {
    const member = this.members.get(typeUrl)?.get(name);
    if (member instanceof Map) return (member as ReadonlyMap<string, Served>).get(qualifier);
    return qualifier === '' ? (member as Served | undefined) : undefined;
  }
}

export function variantOf(member: Member, qualifiers: readonly string[]): Served | undefined {
  if (!(member instanceof Map)) return member as Served;
  const plain = member.get('');
  if (plain !== undefined) return plain;
  for (const qualifier of qualifiers) {
    const variant = member.get(qualifier);
    if (variant !== undefined) return variant;
  }
  return undefined;
}

/** Whether somebody with these qualifiers sees a variant. */
export function isSeenWith(qualifiers: readonly string[], qualifier: string): boolean {
  return qualifier === '' || qualifiers.includes(qualifier);
}

/** A list as the root of worlds: all lists reachable from it, with the number of paths to each. */
export class Root {
  readonly list: List;
  readonly lists = new Map<List, number>();
  /** The worlds that have this root. */
  readonly worlds = new Set<RootWorld>();
  /** Lists gained or lost since {@link settle}: were they reachable before, and which rollouts are behind it? */
  readonly #before = new Map<List, { readonly was: boolean; readonly rollouts: readonly Rollout[] }>();

  constructor(list: List) {
    this.list = list;
    this.gain(list, NO_ROLLOUTS);
    this.#before.clear();
  }

  gain(list: List, rollouts: readonly Rollout[]): void {
    const ways = this.lists.get(list) ?? 0;
    this.lists.set(list, ways + 1);
    if (ways > 0) return;
    this.#note(list, false, rollouts);
    list.roots.add(this);
    for (const child of list.children) this.gain(child, rollouts);
  }

  lose(list: List, rollouts: readonly Rollout[]): void {
    const ways = this.lists.get(list) ?? 0;
    if (ways > 1) {
      this.lists.set(list, ways - 1);
      return;
    }
    this.#note(list, true, rollouts);
    this.lists.delete(list);
    list.roots.delete(this);
    for (const child of list.children) this.lose(child, rollouts);
  }

  #note(list: List, was: boolean, rollouts: readonly Rollout[]): void {
    const known = this.#before.get(list);
    if (known === undefined) this.#before.set(list, { was, rollouts });
    else if (rollouts.length > 0)
      this.#before.set(list, { was: known.was, rollouts: joinRollouts(known.rollouts, rollouts) });
  }

  /** Some world needs to hear what changes below this root. */
  get watched(): boolean {
    for (const world of this.worlds) if (world.watched) return true;
    return false;
  }

  get moved(): boolean {
    return this.#before.size > 0;
  }

  /** Lists gained and lost since the last call, each with the rollouts behind it. */
  settle(): { readonly gained: MovedLists; readonly lost: MovedLists } {
    const gained = new Map<List, readonly Rollout[]>();
    const lost = new Map<List, readonly Rollout[]>();
    for (const [list, { was, rollouts }] of this.#before) {
      const now = this.lists.has(list);
      if (now && !was) gained.set(list, rollouts);
      if (was && !now) lost.set(list, rollouts);
    }
    this.#before.clear();
    return { gained, lost };
  }

  dissolve(): void {
    for (const list of this.lists.keys()) list.roots.delete(this);
    this.lists.clear();
  }
}

type MovedLists = ReadonlyMap<List, readonly Rollout[]>;

const MANY = 16;

/** Changes under construction. */
export class ChangeSet {
  readonly byType = new Map<string, Map<string, Change[]>>();
  /** Where the changes of a name are, by qualifier, if there are many. */
  readonly #indexes = new Map<readonly Change[], Map<string, number>>();

  /** For several changes of one name, the first one's `was` and the last one's `now` count. */
  add(typeUrl: string, name: string, change: Change): void {
    let names = this.byType.get(typeUrl);
    if (names === undefined) this.byType.set(typeUrl, (names = new Map<string, Change[]>()));
    const changes = names.get(name);
    if (changes === undefined) {
      names.set(name, [change]);
      return;
    }
    const index = this.#indexOf(changes, change.qualifier);
    if (index < 0) {
      this.#indexes.get(changes)?.set(change.qualifier, changes.length);
      changes.push(change);
    } else {
      const { was, rollouts } = changes[index]!;
      changes[index] = { ...change, was, rollouts: joinRollouts(rollouts, change.rollouts) };
    }
  }

  /** Adds what another list contributes: a name that moves from list to list is one change, whichever comes first. */
  merge(typeUrl: string, name: string, change: Change): void {
    const same = this.byType.get(typeUrl)?.get(name);
    const index = same === undefined ? -1 : this.#indexOf(same, change.qualifier);
    if (same === undefined || index < 0) {
      this.add(typeUrl, name, change);
      return;
    }
    const other = same[index]!;
    same[index] = {
      qualifier: change.qualifier,
      was: other.was ?? change.was,
      now: other.now ?? change.now,
      rollouts: joinRollouts(other.rollouts, change.rollouts),
    };
  }

  #indexOf(changes: readonly Change[], qualifier: string): number {
    if (changes.length < MANY) return changes.findIndex((change) => change.qualifier === qualifier);
    let index = this.#indexes.get(changes);
    if (index === undefined)
      this.#indexes.set(changes, (index = new Map(changes.map((change, i) => [change.qualifier, i]))));
    return index.get(qualifier) ?? -1;
  }
}

/** Every member of a list, one by one. */
export function eachMember(
  list: List,
  visit: (typeUrl: string, name: string, qualifier: string, item: Served) => void,
): void {
  for (const [typeUrl, members] of list.members) {
    for (const [name, member] of members) {
      if (member instanceof Map) {
        for (const [qualifier, item] of member as ReadonlyMap<string, Served>) visit(typeUrl, name, qualifier, item);
      } else {
        visit(typeUrl, name, '', member as Served);
      }
    }
  }
}
