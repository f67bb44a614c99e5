import { parseGenerationKey } from '../mesh/objects/in-force.ts';

/** A generation of an object. */
export interface Suspect {
  readonly key: string;
  readonly uid: string;
  readonly generation: number;
}

/**
 * Objects that changed together and are tried one by one, by namespace: the next one first. Namespaces take turns, so
 * that what one tenant changes and rejects does not hold up what others have changed.
 */
export class Suspects {
  readonly #waiting = new Map<string, Suspect[]>();
  /** Those that were tried beside a restriction, by key. */
  readonly #cleared = new Map<string, { readonly suspect: Suspect; readonly beside: Suspect }>();

  get isEmpty(): boolean {
    return this.#waiting.size === 0;
  }

  /** @param beside a restriction that may be to blame as well, and stays in force: it is seen without them first. */
  add(all: readonly Suspect[], beside: Suspect | undefined): void {
    for (const [namespace, own] of Map.groupBy(all, ({ key }) => parseGenerationKey(key).namespace)) {
      const known = this.#waiting.get(namespace);
      const added = beside === undefined ? own : [beside, ...own];
      if (known === undefined) this.#waiting.set(namespace, added);
      else known.push(...added);
    }
    if (beside !== undefined) for (const suspect of all) this.#cleared.set(suspect.key, { suspect, beside });
  }

  /** Which one {@link next} takes. */
  get first(): Suspect | undefined {
    const [suspects] = this.#waiting.values();
    return suspects?.[0];
  }

  next(): Suspect | undefined {
    for (const [namespace, suspects] of this.#waiting) {
      const next = suspects.shift();
      this.#waiting.delete(namespace);
      if (suspects.length > 0) this.#waiting.set(namespace, suspects);
      return next;
    }
    return undefined;
  }

  /** Once is enough: as long as clients refuse the restriction, nothing more is to be found out. */
  isCleared(suspect: Suspect, beside: Suspect): boolean {
    const known = this.#cleared.get(suspect.key);
    return known !== undefined && areSame(known.suspect, suspect) && areSame(known.beside, beside);
  }

  /** There is another generation of it, or none, or it is good. */
  forget(key: string): void {
    this.#cleared.delete(key);
  }
}

function areSame(a: Suspect, b: Suspect): boolean {
  return a.key === b.key && a.uid === b.uid && a.generation === b.generation;
}
