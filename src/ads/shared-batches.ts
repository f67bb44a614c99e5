import { type List, type Root, variantOf } from './forest.ts';
import type { NameSet } from './name-set.ts';
import { Batch, type Served } from './served.ts';

/** Of what is subscribed by name: the resources that a root has, and the names that it does not have. */
export interface RootSelection {
  readonly batches: readonly Batch[];
  readonly others: readonly string[];
}

/** What is below one list, for those of one set of qualifiers. */
interface Branch {
  readonly batch: Batch;
  /** The publication after which it was made, or looked at again. */
  readonly publication: number;
}

/**
 * Everything of a type, for streams that connect. Most roots differ in few of the lists right below them: each of these
 * branches is one batch, made and laid out once for all roots that have it. Kept until the root changes in that type,
 * or until {@link clear}.
 */
export class SharedBatches {
  #publication = 0;
  readonly #branches = new Map<List, Map<string, Map<string, Branch>>>();
  readonly #all = new Map<Root, Map<string, Map<string, readonly Batch[]>>>();
  readonly #selected = new Map<Root, Map<string, Map<NameSet, Map<string, RootSelection>>>>();

  all(root: Root, typeUrl: string, qualifiers: readonly string[]): readonly Batch[] {
    const byQualifiers = level(level(this.#all, root), typeUrl);
    const key = keyOf(qualifiers);
    let batches = byQualifiers.get(key);
    if (batches === undefined) byQualifiers.set(key, (batches = this.#make(root, typeUrl, qualifiers)));
    return batches;
  }

  select(root: Root, typeUrl: string, names: NameSet, qualifiers: readonly string[]): RootSelection {
    const byQualifiers = level(level(level(this.#selected, root), typeUrl), names);
    const key = keyOf(qualifiers);
    let selection = byQualifiers.get(key);
    if (selection === undefined) {
      const batches = this.all(root, typeUrl, qualifiers).flatMap((batch) => restricted(batch, names) ?? []);
      selection = { batches, others: namesBeside(batches, names) };
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

  /** Something was published: in any list, below a root or not. */
  published(): void {
    this.#publication++;
  }

  /** Selections keep name sets alive and full lists cost memory: both go when nobody connects any more. */
  clear(): void {
    this.#branches.clear();
    this.#all.clear();
    this.#selected.clear();
  }

  #make(root: Root, typeUrl: string, qualifiers: readonly string[]): readonly Batch[] {
    const batches = branchesOf(root)
      .map((list) => this.#branch(list, list === root.list, typeUrl, qualifiers))
      .filter((batch) => batch.items.length > 0);
    // A name that several branches have is sent once.
    const items = new Map<string, Served>();
    let count = 0;
    for (const batch of batches) {
      count += batch.items.length;
      for (const item of batch.items) if (!items.has(item.name)) items.set(item.name, item);
    }
    return items.size === count ? batches : [new Batch([...items.values()])];
  }

  #branch(list: List, itself: boolean, typeUrl: string, qualifiers: readonly string[]): Batch {
    const byQualifiers = level(level(this.#branches, list), typeUrl);
    const key = `${itself ? 'itself' : 'below'}\n${keyOf(qualifiers)}`;
    const known = byQualifiers.get(key);
    if (known?.publication === this.#publication) return known.batch;
    const items = new Map<string, Served>();
    for (const each of itself ? [list] : below(list)) {
      for (const [name, member] of each.members.get(typeUrl) ?? []) {
        const item = variantOf(member, qualifiers);
        if (item !== undefined && !items.has(name)) items.set(name, item);
      }
    }
    const made = new Batch([...items.values()]);
    // What was laid out for the wire stays so if nothing in it has changed.
    const batch = known?.batch.equals(made) === true ? known.batch : made;
    byQualifiers.set(key, { batch, publication: this.#publication });
    return batch;
  }
}

/** The list itself, for its own members, and those right below it, for all that is below them. */
function branchesOf(root: Root): readonly List[] {
  return [root.list, ...root.list.children];
}

function below(list: List, found = new Set<List>()): ReadonlySet<List> {
  if (found.has(list)) return found;
  found.add(list);
  for (const child of list.children) below(child, found);
  return found;
}

/** What of a batch is in a set of names; the batch itself if all of it is. */
function restricted(batch: Batch, names: NameSet): Batch | undefined {
  const items = batch.items.filter((item) => names.has(item.name));
  if (items.length === batch.items.length) return batch;
  return items.length === 0 ? undefined : new Batch(items);
}

function namesBeside(batches: readonly Batch[], names: NameSet): readonly string[] {
  const found = new Set<string>();
  for (const batch of batches) for (const item of batch.items) found.add(item.name);
  return found.size === names.size ? [] : [...names.names].filter((name) => !found.has(name));
}

function keyOf(qualifiers: readonly string[]): string {
  return qualifiers.join('\n');
}

function level<K, L, V>(map: Map<K, Map<L, V>>, key: K): Map<L, V> {
  let next = map.get(key);
  if (next === undefined) map.set(key, (next = new Map<L, V>()));
  return next;
}
