import type { ObjectRef } from '../../api/object.ts';
import type { LeafPart, NodePart, Part } from './resource.ts';

/** Of the object, whatever its generation. */
export function originKey({ group, kind, source, namespace, name }: Omit<ObjectRef, 'uid' | 'generation'>): string {
  return `${group}/${kind}/${source}/${namespace}/${name}`;
}

/** Keys of the objects that a part was made from. */
export function originsOf(part: Part): ReadonlySet<string> {
  const keys = new Set<string>();
  eachOrigins(part, (some) => some.forEach((key) => keys.add(key)));
  return keys;
}

/** By a node right above leaves, the keys of these. */
const keysOfNodes = new WeakMap<NodePart, ReadonlySet<string>>();

/** Visits the keys of {@link originsOf} in sets that may overlap. Thousands of tables share most nodes, and these sets. */
export function eachOrigins(part: Part, visit: (keys: ReadonlySet<string>) => void): void {
  if ('bytes' in part) {
    if (part.origins.length > 0) visit(new Set(part.origins.map(originKey)));
    return;
  }
  if (part.children.some((child) => 'children' in child)) {
    for (const child of part.children) eachOrigins(child, visit);
    return;
  }
  let keys = keysOfNodes.get(part);
  if (keys === undefined) {
    const origins = (part.children as readonly LeafPart[]).flatMap((leaf) => leaf.origins);
    keysOfNodes.set(part, (keys = new Set(origins.map(originKey))));
  }
  visit(keys);
}

/**
 * Which objects parts were made from, in any generation. Thousands of tables have most of their children in common, and
 * thousands of objects are asked about: each child is looked at once, and for each object only the few that have it.
 */
export class Origins {
  /** Children of the parts that were asked about, by the objects that they were made from. */
  readonly #holders = new Map<string, Set<Part>>();
  readonly #children = new Map<Part, ReadonlySet<Part>>();
  readonly #known = new Set<Part>();
  /** Of nodes below these children: several of them may share one. */
  readonly #keys = new Map<Part, ReadonlySet<string>>();

  /** @param key see {@link originKey}. */
  has(part: Part, key: string): boolean {
    if ('bytes' in part) return part.origins.some((origin) => originKey(origin) === key);
    let children = this.#children.get(part);
    if (children === undefined) {
      this.#children.set(part, (children = new Set(part.children)));
      for (const child of children) this.#learn(child);
    }
    for (const holder of this.#holders.get(key) ?? []) if (children.has(holder)) return true;
    return false;
  }

  #learn(child: Part): void {
    if (this.#known.size === this.#known.add(child).size) return;
    for (const key of this.#keysOf(child)) {
      const holders = this.#holders.get(key);
      if (holders === undefined) this.#holders.set(key, new Set([child]));
      else holders.add(child);
    }
  }

  #keysOf(part: Part): ReadonlySet<string> {
    if ('bytes' in part) return new Set(part.origins.map(originKey));
    let keys = this.#keys.get(part);
    if (keys === undefined) {
      const found = new Set<string>();
      for (const child of part.children) for (const key of this.#keysOf(child)) found.add(key);
      this.#keys.set(part, (keys = found));
    }
    return keys;
  }
}

/** Finds what is new in versions of parts. Versions of tables have most of their nodes in common with each other. */
export class NewLeaves {
  readonly #known = new Map<Part, { readonly former: Part | undefined; readonly leaves: readonly LeafPart[] }>();

  /** The leaves of a part that a former version of it did not have. */
  of(part: Part, former: Part | undefined): readonly LeafPart[] {
    if (part.hash === former?.hash) return [];
    if ('bytes' in part) return [part];
    const known = this.#known.get(part);
    if (known?.former === former && known !== undefined) return known.leaves;
    const leaves = this.#compare(part.children, former);
    this.#known.set(part, { former, leaves });
    return leaves;
  }

  #compare(children: readonly Part[], former: Part | undefined): readonly LeafPart[] {
    if (former === undefined || 'bytes' in former) return children.flatMap((child) => this.of(child, undefined));
    const { children: before } = former;
    if (before.length === children.length)
      return children.flatMap((child, i) => (child.hash === before[i]!.hash ? [] : this.of(child, before[i])));
    const same = new Set(before.map(({ hash }) => hash));
    return children.flatMap((child) => (same.has(child.hash) ? [] : this.of(child, undefined)));
  }
}
