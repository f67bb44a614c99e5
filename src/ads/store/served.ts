import { ContentHasher, SetHash } from './content-hash.ts';
import { originsOf } from './origins.ts';
import { type EncodedResource, leavesOf, type LeafPart } from './resource.ts';

/** A resource as the store holds it: one object per content, however many lists have it. */
export class Served {
  readonly resource: EncodedResource;
  /** Unique in this process. */
  readonly id: number;
  /** How many lists hold it; zero if it was made for one answer (an absent name). */
  holders = 0;
  /** Hash of name and version, as a client that holds it would report it. */
  readonly a: number;
  readonly b: number;

  constructor(resource: EncodedResource, id: number, hasher: ContentHasher) {
    this.resource = resource;
    this.id = id;
    hasher.textPair(resource.name, resource.version);
    this.a = hasher.a;
    this.b = hasher.b;
  }

  get name(): string {
    return this.resource.name;
  }

  get version(): string {
    return this.resource.version;
  }
}

/** What a client holds of a name: these very bytes, something with this version, or nothing. */
export type Held = Served | string | undefined;

export function versionOf(held: Held): string | undefined {
  return typeof held === 'object' ? held.version : held;
}

/** Resources that are sent together. A batch shared by many streams is laid out for the wire once. */
export class Batch {
  readonly items: readonly Served[];
  /** Made when first needed. */
  #byName: Map<string, Served> | undefined;
  #versionHash: SetHash | undefined;
  #cacheKey = 0;
  #origins: ReadonlyMap<string, readonly string[]> | undefined;

  constructor(items: readonly Served[]) {
    this.items = items;
  }

  get names(): Names {
    return this.#index();
  }

  get(name: string): Served | undefined {
    return this.#index().get(name);
  }

  #index(): ReadonlyMap<string, Served> {
    if (this.#byName === undefined) {
      this.#byName = new Map<string, Served>();
      for (const item of this.items) this.#byName.set(item.name, item);
    }
    return this.#byName;
  }

  /** By the key of an object, the names of what was made from it; of tables, see {@link eachOrigins}. */
  get origins(): ReadonlyMap<string, readonly string[]> {
    if (this.#origins !== undefined) return this.#origins;
    const origins = new Map<string, string[]>();
    for (const { name, resource } of this.items) {
      if ('children' in resource.body) continue;
      for (const key of originsOf(resource.body)) {
        const names = origins.get(key);
        if (names === undefined) origins.set(key, [name]);
        else names.push(name);
      }
    }
    return (this.#origins = origins);
  }

  /** Hash of names and versions: equal in all processes that serve the same. */
  get versionHash(): SetHash {
    if (this.#versionHash !== undefined) return this.#versionHash;
    const hasher = new ContentHasher([0, 0]);
    const versionHash = new SetHash();
    for (const { name, version } of this.items) {
      hasher.textPair(name, version);
      versionHash.add(hasher);
    }
    return (this.#versionHash = versionHash);
  }

  /** A number that tells batches apart cheaply; batches with equal numbers must still be compared by {@link equals}. */
  get cacheKey(): number {
    if (this.#cacheKey === 0) {
      let key = 7;
      for (const item of this.items) key = (Math.imul(key, 31) + item.id) | 0;
      this.#cacheKey = key === 0 ? 1 : key;
    }
    return this.#cacheKey;
  }

  equals(other: Batch): boolean {
    if (this === other) return true;
    if (this.items.length !== other.items.length) return false;
    for (let i = 0; i < this.items.length; i++) if (this.items[i] !== other.items[i]) return false;
    return true;
  }
}

interface Tree {
  readonly children: readonly (LeafPart | Tree)[];
}

/**
 * Which clusters a part refers to. Sets are kept for nodes as long as the nodes live: a new version of a table shares
 * most of its nodes with the former one, so only the changed ones are walked again.
 */
export class References {
  readonly #ofNode = new WeakMap<Tree, ReadonlySet<string>>();
  readonly #ofBatch = new WeakMap<Batch, Tree>();
  /** Whether tables refer to the few names that come or go: for each of them, all streams ask the same. */
  readonly #few = new WeakMap<Tree, Map<string, boolean>>();
  readonly #named = new WeakMap<Tree, { readonly wanted: Names; readonly names: readonly string[] }>();

  /**
   * Calls `visit` with each wanted name that the part refers to, until it returns true; returns whether it did. Costs
   * as much as the smaller of the two sets, node by node.
   */
  find(part: LeafPart | Tree, wanted: Names, visit: (name: string) => boolean): boolean {
    if ('bytes' in part) return part.clusters.some((name) => wanted.has(name) && visit(name));
    if (!this.#ofNode.has(part) && part.children.some((child) => 'children' in child)) {
      if (wanted.size > FEW) return part.children.some((child) => this.find(child, wanted, visit));
      for (const name of wanted.keys()) if (this.#refers(part, name) && visit(name)) return true;
      return false;
    }
    const known = this.#namesIn(part);
    if (known.size <= wanted.size) {
      for (const name of known) if (wanted.has(name) && visit(name)) return true;
    } else {
      for (const name of wanted.keys()) if (known.has(name) && visit(name)) return true;
    }
    return false;
  }

  /**
   * The wanted names that a resource refers to. Streams that were sent the same share a set of new names, and ask the
   * same of the same table: the last answer is kept. @param wanted does not change.
   */
  named(body: LeafPart | Tree, wanted: Names): readonly string[] {
    if ('bytes' in body) return body.clusters.filter((name) => wanted.has(name));
    const last = this.#named.get(body);
    if (last?.wanted === wanted) return last.names;
    const names: string[] = [];
    this.find(body, wanted, (name) => names.push(name) === 0);
    this.#named.set(body, { wanted, names });
    return names;
  }

  /** As {@link find}, for all of a batch, in which thousands of listeners may refer to clusters: they are one node. */
  findIn(batch: Batch, wanted: Names, visit: (name: string) => boolean): boolean {
    let tree = this.#ofBatch.get(batch);
    if (tree === undefined) {
      const bodies = batch.items.map(({ resource }) => resource.body);
      const leaves = { children: bodies.filter((body) => 'bytes' in body) };
      tree = { children: [leaves, ...bodies.filter((body) => 'children' in body)] };
      this.#ofBatch.set(batch, tree);
    }
    return this.find(tree, wanted, visit);
  }

  #refers(part: Tree, name: string): boolean {
    let known = this.#few.get(part);
    if (known === undefined) this.#few.set(part, (known = new Map<string, boolean>()));
    let refers = known.get(name);
    if (refers === undefined) {
      const only = new Set([name]);
      refers = part.children.some((child) => this.find(child, only, () => true));
      if (known.size >= MOST_KNOWN) known.clear();
      known.set(name, refers);
    }
    return refers;
  }

  #namesIn(part: Tree): ReadonlySet<string> {
    let known = this.#ofNode.get(part);
    if (known === undefined) {
      known = new Set(part.children.flatMap((leaf) => ('bytes' in leaf ? leaf.clusters : [])));
      this.#ofNode.set(part, known);
    }
    return known;
  }
}

const FEW = 8;
/** Of each table. */
const MOST_KNOWN = 64;

/** A set, or the keys of a map. */
export type Names = Pick<ReadonlySet<string>, 'has' | 'size' | 'keys'>;

/** Whether a client that has what belongs to it may still be unable to use it. */
export function isLate(cluster: Served | undefined): boolean {
  return cluster !== undefined && [...leavesOf(cluster.resource.body)].some(({ late }) => late === true);
}
