import type { ObjectRef } from '../../api/object.ts';
import { type LeafPart, leavesOf, type Part } from './resource.ts';

/** Of the object, whatever its generation. */
export function originKey({ group, kind, source, namespace, name }: Omit<ObjectRef, 'uid' | 'generation'>): string {
  return `${group}/${kind}/${source}/${namespace}/${name}`;
}

/** Keys of the objects that a part was made from. */
export function originsOf(part: Part): ReadonlySet<string> {
  const keys = new Set<string>();
  for (const { origins } of leavesOf(part)) for (const origin of origins) keys.add(originKey(origin));
  return keys;
}

/**
 * Which objects parts were made from, in any generation. Thousands of tables have most of their nodes in common, and
 * thousands of objects are asked about: each leaf is looked at once, and each shared node once for each object.
 */
export class Origins {
  /** Of nodes that have leaves, the keys of their objects. */
  readonly #keys = new Map<Part, ReadonlySet<string>>();
  /** By key, the answers about nodes above these. */
  readonly #answers = new Map<string, Map<Part, boolean>>();

  /** @param key see {@link originKey}. */
  has(part: Part, key: string): boolean {
    if ('bytes' in part || part.children.some((child) => 'bytes' in child)) {
      if (this.#keysOf(part).has(key)) return true;
      return 'children' in part && part.children.some((child) => 'children' in child && this.has(child, key));
    }
    let answers = this.#answers.get(key);
    if (answers === undefined) this.#answers.set(key, (answers = new Map<Part, boolean>()));
    let answer = answers.get(part);
    if (answer === undefined) answers.set(part, (answer = part.children.some((child) => this.has(child, key))));
    return answer;
  }

  /** Of the part itself, if it is a leaf, or of the leaves among its children. */
  #keysOf(part: Part): ReadonlySet<string> {
    let keys = this.#keys.get(part);
    if (keys === undefined) {
      const found = new Set<string>();
      for (const leaf of 'bytes' in part ? [part] : part.children)
        if ('bytes' in leaf) for (const origin of leaf.origins) found.add(originKey(origin));
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
