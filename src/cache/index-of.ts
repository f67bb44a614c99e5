import { type Causes, joinCauses } from './causes.ts';
import { Collection } from './collection.ts';
import type { Graph } from './graph.ts';

export interface Member<V> {
  readonly key: string;
  readonly value: V;
}

/** The entries of a collection that share a group key, in the order that the index states. Never empty. */
export type Group<V> = readonly Member<V>[];

export type Order<V> = (a: Member<V>, b: Member<V>) => number;

/**
 * Groups entries by other keys. An entry may be in any number of groups. It is a collection of its groups, so it can be
 * the source of a derived collection: one run for each group. Over several collections it is also their union; a key may
 * move from one to another, but after a commit only one of them may have it.
 */
export class Index<V> extends Collection<Group<V>> {
  private readonly groupsOf: (key: string, value: V) => readonly string[];
  private readonly order: Order<V>;
  private pending: { key: string; before: V | undefined; after: V | undefined; causes: Causes }[] = [];

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
    for (const source of sources)
      source.consumers.push({
        sourceChanged: (key, before, after, causes) => {
          this.pending.push({ key, before: before as V | undefined, after: after as V | undefined, causes });
        },
      });
  }

  override get hasWork(): boolean {
    return this.pending.length > 0;
  }

  override *process(): Generator<void, void> {
    const pending = this.pending;
    this.pending = [];
    const touched = new Map<string, Causes>();
    const originals = new Map<string, Group<V> | undefined>();
    let done = 0;
    for (const { key, before, after, causes } of pending) {
      const oldGroups = before === undefined ? [] : this.groupsOf(key, before);
      const newGroups = after === undefined ? [] : this.groupsOf(key, after);
      for (const group of new Set([...oldGroups, ...newGroups])) {
        if (!touched.has(group)) {
          const current = this.cell(group).value as Group<V> | undefined;
          originals.set(group, current);
          // The working copy; the published group is never changed in place.
          this.cell(group).value = current === undefined ? [] : current.slice();
          if (this.graph.recording)
            this.graph.undo(() => {
              this.cell(group).value = current;
            });
        }
        touched.set(group, joinCauses(touched.get(group) ?? [], causes));
        const members = this.cell(group).value as Member<V>[];
        if (before !== undefined && oldGroups.includes(group)) this.remove(members, { key, value: before });
        if (after !== undefined && newGroups.includes(group)) this.insert(members, { key, value: after });
      }
      if (++done % 64 === 0) yield;
    }
    for (const [group, causes] of touched) {
      const cell = this.cell(group);
      const members = cell.value as Member<V>[];
      const after = members.length === 0 ? undefined : members;
      cell.value = after;
      const before = originals.get(group);
      if (before === undefined && after === undefined) this.graph.sweep(cell);
      else this.announce(cell, before, after, causes);
    }
  }

  private insert(members: Member<V>[], member: Member<V>): void {
    members.splice(this.placeOf(members, member), 0, member);
  }

  private remove(members: Member<V>[], member: Member<V>): void {
    let at = this.placeOf(members, member);
    // A key that moves from one source to another in this commit is there twice for a moment.
    while (members[at]?.key === member.key && members[at]?.value !== member.value) at++;
    if (members[at]?.key !== member.key)
      throw new Error(`index ${this.name}: its order depends on more than the entry`);
    members.splice(at, 1);
  }

  /** First place whose member is not before the given one. */
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
