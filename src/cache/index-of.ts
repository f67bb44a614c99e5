import { type Causes, joinCauses, sealed } from './causes.ts';
import { Collection } from './collection.ts';
import type { Graph } from './graph.ts';

export interface Member<V> {
  readonly key: string;
  readonly value: V;
}

/** The entries of a collection that share a group key, in the index's order. */
export type Group<V> = readonly [Member<V>, ...Member<V>[]];

export type Order<V> = (a: Member<V>, b: Member<V>) => number;

/** What happened to an entry of a source in this commit. */
interface Pending<V> {
  readonly source: Source<V>;
  readonly key: string;
  readonly before: V | undefined;
  readonly after: V | undefined;
  readonly causes: Causes;
}

interface Source<V> {
  readonly name: string;
  /** Entries that stayed in their groups because an index function threw, each with the value that is there, if any. */
  readonly stayed: Map<string, V | undefined>;
}

/**
 * Groups entries by other keys. An entry may be in any number of groups. An index is a collection of its groups, so it
 * can be the source of a derived collection: one run per group. Over several collections, it is also their union; a key
 * may move from one to another, but after a commit only one of them may have it. If `groupsOf` or `order` throws for an
 * entry, the entry stays in the groups where it was.
 */
export class Index<V> extends Collection<Group<V>> {
  private readonly groupsOf: (key: string, value: V) => readonly string[];
  private readonly order: Order<V>;
  private pending: Pending<V>[] = [];

  constructor(
    graph: Graph,
    name: string,
    sources: readonly Collection<V>[],
    groupsOf: (key: string, value: V) => readonly string[],
    order: Order<V> = () => 0,
  ) {
    super(graph, name);
    this.groupsOf = groupsOf;
    this.order = (a, b) => order(a, b) || (a.key < b.key ? -1 : a.key > b.key ? 1 : 0);
    for (const { name: of, consumers } of sources) {
      const source = { name: of, stayed: new Map<string, V | undefined>() };
      consumers.push({
        sourceChanged: (key, before, after, causes) => {
          this.pending.push({ source, key, before: before as V | undefined, after: after as V | undefined, causes });
          graph.wake(this);
        },
      });
    }
  }

  override *process(): Generator<void, void> {
    const pending = this.pending;
    this.pending = [];
    const touched = new Map<string, Causes>();
    const originals = new Map<string, Group<V> | undefined>();
    const copyOf: CopyOf<V> = (group, causes) => {
      const cell = this.cell(group);
      if (!touched.has(group)) {
        const current = cell.value as Group<V> | undefined;
        originals.set(group, current);
        // The working copy; the published group is never changed in place.
        cell.value = current === undefined ? [] : current.slice();
        if (this.graph.recording)
          this.graph.undo(() => {
            cell.value = current;
          });
      }
      touched.set(group, joinCauses(touched.get(group) ?? [], causes));
      return cell.value as Member<V>[];
    };
    let done = 0;
    for (const change of pending) {
      this.file(change, copyOf);
      if (++done % 64 === 0) yield;
    }
    for (const [group, causes] of touched) {
      const cell = this.cell(group);
      const members = cell.value as Member<V>[];
      const after = members.length === 0 ? undefined : (withoutReserve(members) as readonly Member<V>[] as Group<V>);
      cell.value = after;
      const before = originals.get(group);
      if (before === undefined && after === undefined) this.graph.sweep(cell);
      else this.announce(cell, before, after, sealed(causes));
    }
  }

  /** Moves an entry from its old groups to its new ones, or leaves it where it is. */
  private file({ source, key, before, after, causes }: Pending<V>, copyOf: CopyOf<V>): void {
    const { stayed } = source;
    const was = stayed.size > 0 && stayed.has(key) ? stayed.get(key) : before;
    const member = after === undefined ? undefined : { key, value: after };
    const removed: { readonly members: Member<V>[]; readonly at: number; readonly member: Member<V> }[] = [];
    const added: Member<V>[][] = [];
    let misplaced: Error | undefined;
    try {
      const oldGroups = was === undefined ? undefined : new Set(this.groupsOf(key, was));
      const newGroups = after === undefined ? undefined : new Set(this.groupsOf(key, after));
      for (const group of oldGroups ?? []) {
        const members = copyOf(group, causes);
        let at = this.find(members, key, was);
        if (at < 0) {
          misplaced = new Error('the order depends on more than the entry');
          at = members.findIndex((other) => other.key === key && other.value === was);
        }
        const [gone] = at < 0 ? [] : members.splice(at, 1);
        if (gone !== undefined) removed.push({ members, at, member: gone });
      }
      if (member !== undefined)
        for (const group of newGroups ?? []) {
          const members = copyOf(group, causes);
          members.splice(this.placeOf(members, member), 0, member);
          added.push(members);
        }
    } catch (error) {
      for (const members of added) members.splice(members.indexOf(member!), 1);
      for (const { members, at, member: gone } of removed.reverse()) members.splice(at, 0, gone);
      this.setStayed(stayed, key, { value: was });
      this.graph.fail(this, filingOf(source, key), error, causes);
      return;
    }
    this.setStayed(stayed, key, undefined);
    // For an entry that is gone, nothing can be stale.
    if (misplaced !== undefined && after !== undefined) this.graph.fail(this, filingOf(source, key), misplaced, causes);
    else if (this.graph.failures.size > 0) this.graph.succeed(this, filingOf(source, key));
  }

  private setStayed(
    stayed: Source<V>['stayed'],
    key: string,
    now: { readonly value: V | undefined } | undefined,
  ): void {
    const before = stayed.has(key) ? { value: stayed.get(key) } : undefined;
    const set = (state: { readonly value: V | undefined } | undefined): void => {
      if (state === undefined) stayed.delete(key);
      else stayed.set(key, state.value);
    };
    set(now);
    if (this.graph.recording && (now ?? before) !== undefined) this.graph.undo(() => set(before));
  }

  /** Returns -1 if the order does not lead to the entry. */
  private find(members: readonly Member<V>[], key: string, value: V | undefined): number {
    try {
      // Searched for with its value; an entry without one is in no group.
      let at = this.placeOf(members, { key, value: value as V });
      // A key that moves from one source to another in this commit is briefly there twice.
      while (members[at]?.key === key && members[at]?.value !== value) at++;
      return members[at]?.key === key ? at : -1;
    } catch {
      return -1;
    }
  }

  /** The first place whose member does not sort before the given one. */
  private placeOf(members: readonly Member<V>[], member: Member<V>): number {
    let low = 0;
    let high = members.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.order(members[middle]!, member) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** An array that has grown has room for 16 more, which in most groups is most of it. */
function withoutReserve<T>(members: T[]): T[] {
  return members.length <= 16 ? members.slice() : members;
}

/** The members of a group that this commit may change. */
type CopyOf<V> = (group: string, causes: Causes) => Member<V>[];

function filingOf<V>({ name }: Source<V>, key: string): string {
  return `${key} of ${name}`;
}
