import type { World } from './publication.ts';
import { type Changes, List, type Root, type Watcher } from './forest.ts';
import type { NameSet } from './name-set.ts';
import { Batch, type Served } from './served.ts';
import type { SharedBatches } from './shared-batches.ts';

/** Which lists hold a name. Most names are in one list. */
export type HoldersByName = ReadonlyMap<string, ReadonlyMap<string, List | ReadonlySet<List>>>;

/** The resources of a set of names, as far as they exist. */
export interface Selection {
  readonly batches: readonly Batch[];
  readonly missing: readonly string[];
}

/** What is reachable from a set of roots by those with a set of qualifiers, less some names. Streams that see the same share one. */
export class WorldView implements Watcher {
  readonly key: string;
  readonly roots: readonly Root[];
  readonly qualifiers: readonly string[];
  readonly excluded: ReadonlySet<string>;
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
    { qualifiers, excluded = [] }: World,
    holders: HoldersByName,
    shared: SharedBatches,
  ) {
    this.key = key;
    this.roots = roots;
    this.qualifiers = qualifiers;
    this.excluded = new Set(excluded);
    this.#holders = holders;
    this.#shared = shared;
  }

  changed(changes: Changes): void {
    for (const watcher of this.watchers) watcher.changed(changes);
  }

  resolve(typeUrl: string, name: string): Served | undefined {
    if (this.excluded.has(name)) return undefined;
    const holders = this.#holders.get(typeUrl)?.get(name);
    if (holders === undefined) return undefined;
    for (const root of this.roots) {
      const found = this.#find(root, holders, typeUrl, name);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** All resources of a type. */
  all(typeUrl: string): readonly Batch[] {
    return this.#given(
      typeUrl,
      this.roots.flatMap((root) => this.#firstOf(root, typeUrl, this.#shared.all(root, typeUrl, this.qualifiers)).own),
    );
  }

  /** Names that this world has and the other one may lack: from its roots, or because they are excluded there. */
  *differing(typeUrl: string, other: WorldView): Generator<string> {
    for (const name of other.excluded) if (!this.excluded.has(name)) yield name;
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
    const { batches, others } = this.#shared.select(main, typeUrl, names, this.qualifiers);
    const items: Served[] = [];
    const missing = [...this.excluded].filter((name) => names.has(name) && !others.includes(name));
    const { own, doubled } = this.#firstOf(main, typeUrl, batches);
    for (const name of [...others, ...doubled]) {
      const item = this.resolve(typeUrl, name);
      if (item === undefined) missing.push(name);
      else items.push(item);
    }
    const given = this.#given(typeUrl, own);
    return { batches: items.length === 0 ? given : [...given, new Batch(items)], missing };
  }

  /** What of a root is its own, and the names that an earlier one has too: a name is given once, and the first root wins. */
  #firstOf(root: Root, typeUrl: string, batches: readonly Batch[]): { own: readonly Batch[]; doubled: string[] } {
    const doubled: string[] = [];
    const earlier = this.roots.slice(0, this.roots.indexOf(root));
    const holders = this.#holders.get(typeUrl);
    if (earlier.length === 0 || holders === undefined) return { own: batches, doubled };
    for (const batch of batches)
      for (const { name } of batch.items)
        if (earlier.some((other) => this.#find(other, holders.get(name) ?? none, typeUrl, name))) doubled.push(name);
    if (doubled.length === 0) return { own: batches, doubled };
    const own = batches.map((batch) => new Batch(batch.items.filter(({ name }) => !doubled.includes(name))));
    return { own: own.filter(({ items }) => items.length > 0), doubled };
  }

  /** Without what is excluded. */
  #given(typeUrl: string, batches: readonly Batch[]): readonly Batch[] {
    const holders = this.#holders.get(typeUrl);
    const excluded = [...this.excluded].filter((name) => holders?.has(name) === true);
    if (excluded.length === 0) return batches;
    return batches.flatMap((batch) => {
      const items = batch.items.filter(({ name }) => !this.excluded.has(name));
      if (items.length === batch.items.length) return [batch];
      return items.length === 0 ? [] : [new Batch(items)];
    });
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

const none: ReadonlySet<List> = new Set();
