import type { Earlier } from './earlier.ts';
import { List, type News, type Root, type Watcher } from './forest.ts';
import type { NameSet } from './name-set.ts';
import type { Keys } from './names.ts';
import { Batch, type Served } from './served.ts';
import type { ServedIndex } from './served-index.ts';
import type { SharedBatches } from './shared-batches.ts';

/** Which lists hold a name. Most names are in one list. */
export type HoldersByName = ReadonlyMap<string, ReadonlyMap<string, List | ReadonlySet<List>>>;

/** The resources of a set of names, as far as they exist. */
export interface Selection {
  readonly batches: readonly Batch[];
  readonly missing: readonly string[];
}

/** How somebody sees what is below roots. One object for all who see it alike, as long as there are any. */
export interface Viewpoint {
  readonly qualifiers: readonly string[];
  readonly excluded: ReadonlySet<string>;
}

/** What a stream sees, or saw. */
export interface Sight extends Viewpoint {
  /** @param before resolves as of before this; absent: as of now. */
  resolve(typeUrl: string, name: string, before?: Earlier): Served | undefined;
}

/** What is reachable from some roots with some qualifiers, minus some names. Streams that see the same share one. */
export class WorldView implements Watcher, Sight {
  readonly key: string;
  readonly roots: readonly Root[];
  readonly viewpoint: Viewpoint;
  /** The streams in this world. */
  readonly watchers = new Set<Watcher>();
  /** How many have entered this world. */
  holders = 0;
  readonly #holders: HoldersByName;
  /** Rebuilt on demand after a change of the type: it serves streams that connect, not changes. */
  readonly #shared: SharedBatches;

  constructor(
    key: string,
    roots: readonly Root[],
    viewpoint: Viewpoint,
    holders: HoldersByName,
    shared: SharedBatches,
  ) {
    this.key = key;
    this.roots = roots;
    this.viewpoint = viewpoint;
    this.#holders = holders;
    this.#shared = shared;
  }

  get qualifiers(): readonly string[] {
    return this.viewpoint.qualifiers;
  }

  get excluded(): ReadonlySet<string> {
    return this.viewpoint.excluded;
  }

  get watched(): boolean {
    return this.watchers.size > 0;
  }

  changed(news: News): void {
    for (const watcher of this.watchers) watcher.changed(news);
  }

  resolve(typeUrl: string, name: string, before?: Earlier): Served | undefined {
    if (this.excluded.has(name)) return undefined;
    for (const root of this.roots) {
      const former = before?.in(root, name);
      const found = former ? former.was : findIn(root.lists, this.#holders, typeUrl, name, this.qualifiers);
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

  /** For a client that says what it holds of these. */
  indexesOf(batches: readonly Batch[]): readonly ServedIndex[] {
    return this.#shared.indexesOf(batches);
  }

  /** This root's batches without names that an earlier root also has; the first root wins. */
  #firstOf(
    root: Root,
    typeUrl: string,
    batches: readonly Batch[],
  ): { readonly own: readonly Batch[]; readonly doubled: ReadonlySet<string> } {
    const found = new Set<string>();
    for (const other of this.roots) {
      if (other === root) break;
      for (const name of namesInBoth(batches, this.#shared.all(other, typeUrl, this.qualifiers))) found.add(name);
    }
    if (found.size === 0) return { own: batches, doubled: found };
    const doubled = new Set<string>();
    const own = batches.flatMap((batch) => {
      const items = batch.items.filter(({ name }) => !found.has(name));
      if (items.length === batch.items.length) return [batch];
      for (const { name } of batch.items) if (found.has(name)) doubled.add(name);
      return items.length === 0 ? [] : [new Batch(items)];
    });
    return { own, doubled };
  }

  /** Leaves out what is excluded. */
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
}

/** Costs as much as the smaller of the two: each proxy has a root of its own, which has few names. */
function* namesInBoth(a: readonly Batch[], b: readonly Batch[]): Generator<string> {
  const [few, many] = sizeOf(a) < sizeOf(b) ? [a, b] : [b, a];
  for (const { items } of few)
    for (const { name } of items) if (many.some((batch) => batch.get(name) !== undefined)) yield name;
}

function sizeOf(batches: readonly Batch[]): number {
  let size = 0;
  for (const { items } of batches) size += items.length;
  return size;
}

/** The resource of a name in some lists: checks the lists that hold the name, or these lists if they are fewer. */
export function findIn(
  lists: Keys<List>,
  holdersByName: HoldersByName,
  typeUrl: string,
  name: string,
  qualifiers: readonly string[],
): Served | undefined {
  const holders = holdersByName.get(typeUrl)?.get(name);
  if (holders === undefined) return undefined;
  if (holders instanceof List) return lists.has(holders) ? holders.get(typeUrl, name, qualifiers) : undefined;
  const few: Iterable<List> = holders.size <= lists.size ? holders : lists.keys();
  for (const list of few) {
    const found = lists.has(list) ? list.get(typeUrl, name, qualifiers) : undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}
