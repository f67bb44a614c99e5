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
  /** By namespace, and by key. */
  readonly #waiting = new Map<string, Map<string, Suspect>>();
  /** Suspects that were tried beside a restriction, by key. */
  readonly #cleared = new Map<string, { readonly suspect: Suspect; readonly beside: Suspect }>();

  get isEmpty(): boolean {
    return this.#waiting.size === 0;
  }

  /** @param beside a restriction that may be to blame as well, and stays in force: it is seen without them first. */
  add(all: readonly Suspect[], beside: Suspect | undefined): void {
    for (const [namespace, own] of Map.groupBy(all, ({ key }) => parseGenerationKey(key).namespace)) {
      const waiting = this.#waiting.get(namespace) ?? new Map<string, Suspect>();
      this.#waiting.set(namespace, waiting);
      // One that is waiting already stays in front of those that wait for it.
      if (beside !== undefined && !waiting.has(beside.key)) waiting.set(beside.key, beside);
      for (const suspect of own) {
        waiting.delete(suspect.key);
        waiting.set(suspect.key, suspect);
      }
    }
    if (beside !== undefined) for (const suspect of all) this.#cleared.set(suspect.key, { suspect, beside });
  }

  /** Which one {@link next} takes. */
  get first(): Suspect | undefined {
    const [waiting] = this.#waiting.values();
    const [suspect] = waiting?.values() ?? [];
    return suspect;
  }

  next(): Suspect | undefined {
    for (const [namespace, waiting] of this.#waiting) {
      this.#waiting.delete(namespace);
      for (const [key, suspect] of waiting) {
        waiting.delete(key);
        if (waiting.size > 0) this.#waiting.set(namespace, waiting);
        return suspect;
      }
    }
    return undefined;
  }

  /** Once is enough: as long as clients reject the restriction, nothing more is to be found out. */
  isCleared(suspect: Suspect, beside: Suspect): boolean {
    const known = this.#cleared.get(suspect.key);
    return known !== undefined && areSame(known.suspect, suspect) && areSame(known.beside, beside);
  }

  /** There is another generation of it, or none, or it is good. */
  forget(key: string): void {
    this.#cleared.delete(key);
    const { namespace } = parseGenerationKey(key);
    const waiting = this.#waiting.get(namespace);
    if (waiting?.delete(key) === true && waiting.size === 0) this.#waiting.delete(namespace);
  }
}

function areSame(a: Suspect, b: Suspect): boolean {
  return a.key === b.key && a.uid === b.uid && a.generation === b.generation;
}
