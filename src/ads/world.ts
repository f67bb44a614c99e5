import { type Changes, List, type Root, variantOf, type Watcher } from './forest.ts';
import type { NameSet } from './name-set.ts';
import { Batch, type Served } from './served.ts';

/** Which lists hold a name. Most names are in one list. */
export type HoldersByName = ReadonlyMap<string, ReadonlyMap<string, List | ReadonlySet<List>>>;

/** The resources of a set of names, as far as they exist. */
export interface Selection {
  readonly batches: readonly Batch[];
  readonly missing: readonly string[];
}

/** What is reachable from a set of roots by those with a set of qualifiers. Streams that see the same share one. */
export class WorldView implements Watcher {
  readonly key: string;
  readonly roots: readonly Root[];
  readonly qualifiers: readonly string[];
  /** The streams in it. */
  readonly watchers = new Set<Watcher>();
  /** How many have entered it. */
  holders = 0;
  readonly #holders: HoldersByName;
  /** Made anew when needed after a change of the type: they serve streams that connect, not changes. */
  readonly #shared: SharedBatches;

  constructor(
    key: string,
    roots: readonly Root[],
    qualifiers: readonly string[],
    holders: HoldersByName,
    shared: SharedBatches,
  ) {
    this.key = key;
    this.roots = roots;
    this.qualifiers = qualifiers;
    this.#holders = holders;
    this.#shared = shared;
  }

  changed(changes: Changes): void {
    for (const watcher of this.watchers) watcher.changed(changes);
  }

  resolve(typeUrl: string, name: string): Served | undefined {
    const holders = this.#holders.get(typeUrl)?.get(name);
    if (holders === undefined) return undefined;
    for (const root of this.roots) {
      const found = this.#find(root, holders, typeUrl, name);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** All resources of a type: a batch for each root. */
  all(typeUrl: string): readonly Batch[] {
    const batches: Batch[] = [];
    for (const root of this.roots) {
      const batch = this.#shared.all(root, typeUrl, this.qualifiers);
      if (batch.items.length > 0) batches.push(batch);
    }
    return batches;
  }

  /** Names that this world has from roots that the other one lacks. */
  *differing(typeUrl: string, other: WorldView): Generator<string> {
    const alike = this.qualifiers.join('\n') === other.qualifiers.join('\n');
    for (const root of this.roots) {
      if (alike && other.roots.includes(root)) continue;
      for (const list of root.lists.keys()) yield* list.members.get(typeUrl)?.keys() ?? [];
    }
  }

  select(typeUrl: string, names: NameSet): Selection {
    let main = this.roots[0];
    for (const root of this.roots) if (root.lists.size > (main?.lists.size ?? 0)) main = root;
    if (main === undefined) return { batches: [], missing: [...names.names] };
    const holders = this.#holders.get(typeUrl);
    const { batch, others } = this.#shared.select(main, typeUrl, names, this.qualifiers, (name) => {
      const lists = holders?.get(name);
      return lists === undefined ? undefined : this.#find(main, lists, typeUrl, name);
    });
    const items: Served[] = [];
    const missing: string[] = [];
    for (const name of others) {
      const item = this.resolve(typeUrl, name);
      if (item === undefined) missing.push(name);
      else items.push(item);
    }
    const batches = [batch, new Batch(items)].filter((each) => each.items.length > 0);
    return { batches, missing };
  }

  #find(root: Root, holders: List | ReadonlySet<List>, typeUrl: string, name: string): Served | undefined {
    if (holders instanceof List) {
      return root.lists.has(holders) ? holders.get(typeUrl, name, this.qualifiers) : undefined;
    }
    const few: Iterable<List> = holders.size <= root.lists.size ? holders : root.lists.keys();
    for (const list of few) {
      const found = root.lists.has(list) ? list.get(typeUrl, name, this.qualifiers) : undefined;
      if (found !== undefined) return found;
    }
    return undefined;
  }
}

interface RootSelection {
  readonly batch: Batch;
  /** Names that this root does not have. */
  readonly others: readonly string[];
}

/** Batches per root, shared by all worlds that have it, until the root changes in that type or {@link clear}. */
export class SharedBatches {
  readonly #all = new Map<Root, Map<string, Map<string, Batch>>>();
  readonly #selected = new Map<Root, Map<string, Map<NameSet, Map<string, RootSelection>>>>();

  all(root: Root, typeUrl: string, qualifiers: readonly string[]): Batch {
    const byQualifiers = level(level(this.#all, root), typeUrl);
    const key = keyOf(qualifiers);
    let batch = byQualifiers.get('') ?? byQualifiers.get(key);
    if (batch !== undefined) return batch;
    let qualified = false;
    const items = new Map<string, Served>();
    for (const list of root.lists.keys()) {
      const members = list.members.get(typeUrl);
      if (members === undefined) continue;
      for (const [name, member] of members) {
        if (member instanceof Map) qualified = true;
        const item = variantOf(member, qualifiers);
        if (item !== undefined) items.set(name, item);
      }
    }
    batch = new Batch([...items.values()]);
    byQualifiers.set(qualified ? key : '', batch);
    return batch;
  }

  select(
    root: Root,
    typeUrl: string,
    names: NameSet,
    qualifiers: readonly string[],
    find: (name: string) => Served | undefined,
  ): RootSelection {
    const byQualifiers = level(level(level(this.#selected, root), typeUrl), names);
    const key = keyOf(qualifiers);
    let selection = byQualifiers.get(key);
    if (selection === undefined) {
      const items: Served[] = [];
      const others: string[] = [];
      for (const name of names.names) {
        const item = find(name);
        if (item === undefined) others.push(name);
        else items.push(item);
      }
      selection = { batch: new Batch(items), others };
      byQualifiers.set(key, selection);
    }
    return selection;
  }

  changed(root: Root, types: Iterable<string>): void {
    for (const typeUrl of types) {
      this.#all.get(root)?.delete(typeUrl);
      this.#selected.get(root)?.delete(typeUrl);
    }
  }

  /** Selections keep name sets alive and full lists cost memory: both go when nobody connects any more. */
  clear(): void {
    this.#all.clear();
    this.#selected.clear();
  }
}

/** Never empty: that is the key of what is the same for all qualifiers. */
function keyOf(qualifiers: readonly string[]): string {
  return `=${qualifiers.join('\n')}`;
}

function level<K, L, V>(map: Map<K, Map<L, V>>, key: K): Map<L, V> {
  let next = map.get(key);
  if (next === undefined) map.set(key, (next = new Map<L, V>()));
  return next;
}
