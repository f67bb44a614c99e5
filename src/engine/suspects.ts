import { parseGenerationKey } from '../mesh/objects/in-force.ts';

/** A generation of an object. */
export interface Suspect {
  readonly key: string;
  readonly uid: string;
  readonly generation: number;
}

/** A suspect in force while the rest of its group is not. `until`: on the clock, known once it is published. */
export interface Trial {
  readonly suspect: Suspect;
  until: number | undefined;
}

/**
 * Objects that were refused together and are tried one by one: the next one first. Namespaces take turns, so that what
 * one tenant changes and rejects does not hold up what others have changed.
 */
export class SuspectGroup {
  trial: Trial | undefined;
  /** Keys of all that were refused together, and have not been forgotten. */
  readonly members = new Set<string>();
  /** By namespace, and by key. */
  readonly #waiting = new Map<string, Map<string, Suspect>>();

  /** @param first it waits in front of these in each namespace. */
  add(all: Iterable<Suspect>, first?: Suspect): void {
    for (const [namespace, own] of Map.groupBy(all, ({ key }) => parseGenerationKey(key).namespace))
      this.#append(namespace, own, first);
  }

  /** Takes over what another group has yet to try. */
  join(other: SuspectGroup): void {
    this.trial ??= other.trial;
    for (const key of other.members) this.members.add(key);
    for (const [namespace, suspects] of other.#waiting) this.#append(namespace, suspects.values());
  }

  #append(namespace: string, suspects: Iterable<Suspect>, first?: Suspect): void {
    const waiting = this.#waiting.get(namespace) ?? new Map<string, Suspect>();
    this.#waiting.set(namespace, waiting);
    // One that is waiting already stays in front of those that wait for it.
    if (first !== undefined && !waiting.has(first.key)) waiting.set(first.key, first);
    for (const suspect of suspects) {
      waiting.delete(suspect.key);
      waiting.set(suspect.key, suspect);
    }
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

  /** It is not tried, or no longer. */
  drop(key: string): void {
    this.members.delete(key);
    if (this.trial?.suspect.key === key) this.trial = undefined;
    const { namespace } = parseGenerationKey(key);
    const waiting = this.#waiting.get(namespace);
    if (waiting?.delete(key) === true && waiting.size === 0) this.#waiting.delete(namespace);
  }
}

/**
 * What is to be tried. Groups do not wait for each other. What several of them have in force at the same time may be
 * refused together again: those groups are then merged, so that trials come to an end.
 */
export class Suspects {
  readonly #groups = new Set<SuspectGroup>();
  /** By the keys of their members. */
  readonly #byKey = new Map<string, SuspectGroup>();
  /** Those that were tried beside a restriction, by key. */
  readonly #cleared = new Map<string, { readonly suspect: Suspect; readonly beside: Suspect }>();

  groups(): ReadonlySet<SuspectGroup> {
    return this.#groups;
  }

  groupOf(key: string): SuspectGroup | undefined {
    return this.#byKey.get(key);
  }

  /**
   * These have been refused together.
   * @param beside a restriction that may be to blame as well, and stays in force: it is seen without them first.
   */
  add(all: readonly Suspect[], beside: Suspect | undefined): SuspectGroup {
    const [group = new SuspectGroup(), ...others] = new Set(all.flatMap(({ key }) => this.#byKey.get(key) ?? []));
    this.#groups.add(group);
    for (const other of others) {
      group.join(other);
      this.#groups.delete(other);
    }
    for (const { key } of all) group.members.add(key);
    for (const key of group.members) this.#byKey.set(key, group);
    group.add(all, beside);
    if (beside !== undefined) for (const suspect of all) this.#cleared.set(suspect.key, { suspect, beside });
    return group;
  }

  /** There is nothing left to try in it. */
  end(group: SuspectGroup): void {
    this.#groups.delete(group);
    for (const key of group.members) this.#byKey.delete(key);
  }

  /** Once is enough: as long as clients refuse the restriction, nothing more is to be found out. */
  isCleared(suspect: Suspect, beside: Suspect): boolean {
    const known = this.#cleared.get(suspect.key);
    return known !== undefined && areSame(known.suspect, suspect) && areSame(known.beside, beside);
  }

  /** There is another generation of it, or none, or it is good. */
  forget(key: string): void {
    this.#cleared.delete(key);
    this.#byKey.get(key)?.drop(key);
    this.#byKey.delete(key);
  }
}

function areSame(a: Suspect, b: Suspect): boolean {
  return a.key === b.key && a.uid === b.uid && a.generation === b.generation;
}
