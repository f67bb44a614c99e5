import { IdentityMemo } from '../../base/identity-memo.ts';
import { type List, type Root, variantOf } from './forest.ts';
import type { NameSet } from './name-set.ts';
import { Batch, type Served } from './served.ts';
import { ServedIndex } from './served-index.ts';

/**
 * Total names in all sets that selections are kept for, and keep alive. Clients of one kind have few sets; a client
 * that keeps asking for different ones has everyone's selections discarded.
 */
export const MAX_SELECTED = 2_000_000;

/** Scopes whose streams return at the same time, times two types. Clients could bring new sets of names. */
const MAX_INDEXES = 128;
/** An index of fewer resources is made anew each time, unless many roots have them. */
const MANY = 64;
/** As many as roots with different branches, or versions of them that streams still look at. */
const MAX_TRUNKS = 1_024;

/** For a subscription by name: the resources that a root has, and the names that it does not have. */
export interface RootSelection {
  readonly batches: readonly Batch[];
  readonly others: readonly string[];
}

/**
 * Everything of one type below a root, by the qualifiers that make a difference there: there are as many as resources
 * have variants, whatever clients say about themselves.
 */
interface RootBatches {
  readonly qualifiers: ReadonlySet<string>;
  readonly all: Map<string, readonly Batch[]>;
}

/** What roots have in common. */
interface Trunk {
  readonly batches: readonly Batch[];
  /** Each name is in one of them. */
  readonly isDisjoint: boolean;
}

/** Of everything below a root. */
interface Parts {
  readonly own: Batch;
  readonly trunk: readonly Batch[];
}

/** Everything of one type in a list and below. */
export interface Branch {
  readonly top: List;
  /** Many roots have it: it is not the list of a root. */
  readonly isCommon: boolean;
  /** Number of the publication that it is based on. */
  readonly madeIn: number;
  readonly lists: ReadonlySet<List>;
  readonly qualifiers: ReadonlySet<string>;
  readonly batches: Map<string, Batch>;
  /** Its batches before the last publication, which may have changed nothing in it. */
  readonly former: ReadonlyMap<string, Batch>;
}

/**
 * Everything of a type, for streams that connect. Most roots differ in few of the lists directly below them: each of
 * these branches is one batch, made and laid out once for all roots that have it. Kept until something changes, or
 * until {@link clear}.
 */
export class SharedBatches {
  readonly #branchOf = new WeakMap<Batch, Branch>();
  readonly #roots = new Map<Root, Map<string, RootBatches>>();
  /** The resources in sets of names, by the batches that they were selected from. */
  #selections = new WeakMap<readonly Batch[], Map<NameSet, RootSelection>>();
  #selected = 0;
  /** Some 300 KB for 10,000 names each. */
  #indexes = new IdentityMemo<ServedIndex>(MAX_INDEXES);
  #publication = 0;
  readonly #maxSelected: number;
  /** For the roots' own lists, and for the lists directly below roots. */
  #branches = newBranches();
  /** Common branches of several roots, in the same order. */
  readonly #trunks = new IdentityMemo<Trunk>(MAX_TRUNKS);
  readonly #parts = new WeakMap<readonly Batch[], Parts>();

  constructor(maxSelected = MAX_SELECTED) {
    this.#maxSelected = maxSelected;
  }

  all(root: Root, typeUrl: string, qualifiers: readonly string[]): readonly Batch[] {
    if (isSingleWithout(root, typeUrl)) return NONE;
    const known = this.#root(root, typeUrl);
    const key = keyOf(qualifiers, known.qualifiers);
    let batches = known.all.get(key);
    if (batches === undefined) known.all.set(key, (batches = this.#make(root, typeUrl, qualifiers)));
    return batches;
  }

  select(root: Root, typeUrl: string, names: NameSet, qualifiers: readonly string[]): RootSelection {
    const all = this.all(root, typeUrl, qualifiers);
    const parts = this.#parts.get(all);
    if (parts === undefined) return this.#select(all, names);
    const { batches, others } = this.#select(parts.trunk, names);
    const own = this.#restricted(parts.own, names);
    if (own === undefined) return { batches, others };
    return { batches: [own, ...batches], others: others.filter((name) => own.get(name) === undefined) };
  }

  #select(all: readonly Batch[], names: NameSet): RootSelection {
    let selections = this.#selections.get(all);
    let selection = selections?.get(names);
    if (selection !== undefined) return selection;
    this.#selected += names.size;
    if (this.#selected > this.#maxSelected) {
      this.#forgetSelections();
      selections = undefined;
    }
    if (selections === undefined) this.#selections.set(all, (selections = new Map<NameSet, RootSelection>()));
    const batches = all.flatMap((batch) => this.#restricted(batch, names) ?? []);
    selection = { batches, others: namesBeside(batches, names) };
    selections.set(names, selection);
    return selection;
  }

  /** Where all of a batch is from: the list of a root, or one directly below it. Undefined: from several, or elsewhere. */
  branchOf(batch: Batch): Branch | undefined {
    return this.#branchOf.get(batch);
  }

  /** Of what there is for a client that returns: one of the batches that others have, too, and one of the rest. */
  indexesOf(batches: readonly Batch[]): readonly ServedIndex[] {
    const isShared = (batch: Batch): boolean =>
      this.#branchOf.get(batch)?.isCommon === true || batch.items.length >= MANY;
    const [shared, own] = [true, false].map((is) => batches.filter((batch) => isShared(batch) === is));
    return [this.#indexes.of(shared!, () => new ServedIndex(shared!)), new ServedIndex(own!)];
  }

  changed(root: Root, types: Iterable<string>): void {
    for (const typeUrl of types) this.#roots.get(root)?.delete(typeUrl);
  }

  dissolved(root: Root): void {
    this.#roots.delete(root);
  }

  /** Something was published: in any list, whether below a root or not. Publications are numbered. */
  published(number: number): void {
    this.#publication = number;
    for (const branches of this.#branches) branches.published();
  }

  /** Selections keep name sets alive, and full lists cost memory: both are dropped when nobody connects any more. */
  clear(): void {
    this.#roots.clear();
    this.#branches = newBranches();
    this.#forgetSelections();
  }

  #forgetSelections(): void {
    this.#selections = new WeakMap();
    this.#indexes = new IdentityMemo<ServedIndex>(MAX_INDEXES);
    this.#selected = 0;
  }

  #root(root: Root, typeUrl: string): RootBatches {
    const byType = level(this.#roots, root);
    let known = byType.get(typeUrl);
    if (known === undefined) {
      const qualifiers = new Set(this.#branchesOf(root, typeUrl).flatMap((branch) => [...branch.qualifiers]));
      byType.set(typeUrl, (known = { qualifiers, all: new Map() }));
    }
    return known;
  }

  #make(root: Root, typeUrl: string, qualifiers: readonly string[]): readonly Batch[] {
    const [own, ...others] = this.#branchesOf(root, typeUrl).map((branch) => {
      const batch = batchOf(branch, typeUrl, qualifiers);
      this.#branchOf.set(batch, branch);
      return batch;
    }) as [Batch, ...Batch[]];
    const common = others.filter(({ items }) => items.length > 0);
    const trunk = this.#trunks.of(common, () => ({ batches: common, isDisjoint: areDisjoint(common) }));
    const isOwn = ({ name }: Served): boolean => common.every((batch) => batch.get(name) === undefined);
    if (!trunk.isDisjoint || !own.items.every(isOwn)) return [joined([own, ...common])];
    if (common.length === 0 || own.items.length === 0) return own.items.length === 0 ? trunk.batches : [own];
    const batches = [own, ...common];
    this.#parts.set(batches, { own, trunk: trunk.batches });
    return batches;
  }

  /** The part of a batch that is in a set of names; the batch itself if all of it is. */
  #restricted(batch: Batch, names: NameSet): Batch | undefined {
    const items = batch.items.filter((item) => names.has(item.name));
    if (items.length === batch.items.length) return batch;
    if (items.length === 0) return undefined;
    const part = new Batch(items);
    const branch = this.#branchOf.get(batch);
    if (branch !== undefined) this.#branchOf.set(part, branch);
    return part;
  }

  #branchesOf({ list }: Root, typeUrl: string): readonly Branch[] {
    const [own, lower] = this.#branches;
    return [
      own.of(list, typeUrl, this.#publication, () => new Set([list])),
      ...list.children.map((child) => lower.of(child, typeUrl, this.#publication, () => below(child))),
    ];
  }
}

const NONE: readonly Batch[] = [];

/** Each proxy has roots of its own: single lists, which have nothing of most types. */
function isSingleWithout({ list, lists }: Root, typeUrl: string): boolean {
  return lists.size === 1 && (list.members.get(typeUrl)?.size ?? 0) === 0;
}

/** Branches by the list that they start with. */
class Branches {
  readonly #areCommon: boolean;
  #branches = new Map<List, Map<string, Branch>>();
  #former = this.#branches;
  #outdated = false;

  constructor(areCommon: boolean) {
    this.#areCommon = areCommon;
  }

  of(list: List, typeUrl: string, publication: number, lists: () => ReadonlySet<List>): Branch {
    if (this.#outdated) {
      this.#former = this.#branches;
      this.#branches = new Map();
      this.#outdated = false;
    }
    const byType = level(this.#branches, list);
    let branch = byType.get(typeUrl);
    if (branch === undefined) {
      const former = this.#former.get(list)?.get(typeUrl);
      branch = former !== undefined && isCurrent(former) ? former : this.#made(list, typeUrl, publication, lists());
      byType.set(typeUrl, branch);
    }
    return branch;
  }

  #made(top: List, typeUrl: string, madeIn: number, lists: ReadonlySet<List>): Branch {
    const qualifiers = qualifiersIn(lists, typeUrl);
    const former = this.#former.get(top)?.get(typeUrl)?.batches ?? new Map<string, Batch>();
    return { top, isCommon: this.#areCommon, madeIn, lists, qualifiers, batches: new Map(), former };
  }

  published(): void {
    this.#outdated = true;
  }
}

/** Nothing in it has changed since. */
function isCurrent({ lists, madeIn }: Branch): boolean {
  for (const list of lists) if (list.changedIn > madeIn) return false;
  return true;
}

function newBranches(): readonly [own: Branches, common: Branches] {
  return [new Branches(false), new Branches(true)];
}

function batchOf(branch: Branch, typeUrl: string, qualifiers: readonly string[]): Batch {
  const key = keyOf(qualifiers, branch.qualifiers);
  const known = branch.batches.get(key);
  if (known !== undefined) return known;
  const items = new Map<string, Served>();
  for (const list of branch.lists) {
    for (const [name, member] of list.members.get(typeUrl) ?? []) {
      const item = variantOf(member, qualifiers);
      if (item !== undefined && !items.has(name)) items.set(name, item);
    }
  }
  const made = new Batch([...items.values()]);
  // What was laid out for the wire is kept if nothing in it has changed.
  const former = branch.former.get(key);
  const batch = former?.equals(made) === true ? former : made;
  branch.batches.set(key, batch);
  return batch;
}

function below(list: List, found = new Set<List>()): ReadonlySet<List> {
  if (found.has(list)) return found;
  found.add(list);
  for (const child of list.children) below(child, found);
  return found;
}

function qualifiersIn(lists: ReadonlySet<List>, typeUrl: string): ReadonlySet<string> {
  const found = new Set<string>();
  for (const list of lists) {
    for (const member of list.members.get(typeUrl)?.values() ?? []) {
      if (member instanceof Map)
        for (const qualifier of (member as ReadonlyMap<string, Served>).keys()) found.add(qualifier);
    }
  }
  return found;
}

function areDisjoint(batches: readonly Batch[]): boolean {
  const names = new Set<string>();
  let count = 0;
  for (const { items } of batches) {
    count += items.length;
    for (const { name } of items) names.add(name);
  }
  return names.size === count;
}

/** A name in several of them is sent once. */
function joined(batches: readonly Batch[]): Batch {
  const items = new Map<string, Served>();
  for (const batch of batches) for (const item of batch.items) if (!items.has(item.name)) items.set(item.name, item);
  return new Batch([...items.values()]);
}

function namesBeside(batches: readonly Batch[], names: NameSet): readonly string[] {
  const found = new Set<string>();
  for (const batch of batches) for (const item of batch.items) found.add(item.name);
  return found.size === names.size ? [] : [...names.names].filter((name) => !found.has(name));
}

/** Proxies on different nodes or in different zones share whatever is the same for them. */
function keyOf(qualifiers: readonly string[], different: ReadonlySet<string>): string {
  return qualifiers.filter((qualifier) => different.has(qualifier)).join('\n');
}

function level<K, L, V>(map: Map<K, Map<L, V>>, key: K): Map<L, V> {
  let next = map.get(key);
  if (next === undefined) map.set(key, (next = new Map<L, V>()));
  return next;
}
