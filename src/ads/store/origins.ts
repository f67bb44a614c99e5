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

/** Whether some of it was made from an object, in any generation. By {@link originKey}. */
export function isMadeFrom(part: Part, key: string): boolean {
  for (const { origins } of leavesOf(part)) if (origins.some((each) => originKey(each) === key)) return true;
  return false;
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
