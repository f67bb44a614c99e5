import type { Change, Collection } from './collection.ts';

/** Maximum number of calls spent on finding out which of the missed changes an observer cannot take. */
const MAX_TRIES = 64;

/** A missed change. */
type Missed = Omit<Change<unknown>, 'after' | 'causes'> & { readonly collection: Collection<unknown> };
export type MissedChanges = ReadonlyMap<Collection<unknown>, readonly Change<unknown>[]>;

/**
 * Notified of what was published. An observer that throws may have taken part of it, or nothing. It is called again,
 * separately from what is new, with current values and ever smaller pieces, so that one change that it cannot take does
 * not keep the others from it. So an observer must tolerate seeing the same change twice.
 */
export class Observer<D> {
  readonly name: string;
  private readonly see: (draft: D) => void;
  private readonly again: (changes: MissedChanges) => D;
  /** The entry that has waited longest comes first. */
  private readonly missed = new Map<string, Missed>();

  /** @param again builds the draft that shows the missed changes. */
  constructor(name: string, see: (draft: D) => void, again: (changes: MissedChanges) => D) {
    this.name = name;
    this.see = see;
    this.again = again;
  }

  /** True if it has not taken everything yet. */
  get behind(): boolean {
    return this.missed.size > 0;
  }

  /** Returns what the observer threw. Call when no other draft is open. */
  tell(draft: D, collections: readonly Collection<unknown>[]): { readonly error: unknown } | undefined {
    const late = [...this.missed.values()];
    try {
      this.see(draft);
    } catch (error) {
      for (const collection of collections)
        for (const { key, before } of collection.changes?.values() ?? []) this.miss({ collection, key, before });
      return { error };
    }
    return late.length === 0 ? undefined : this.tellAgain(late, { left: MAX_TRIES });
  }

  private tellAgain(late: readonly Missed[], tries: { left: number }): { readonly error: unknown } | undefined {
    if (tries.left-- <= 0) return { error: new Error('too much was missed to be told at one time') };
    try {
      this.see(this.again(presentOf(late)));
    } catch (error) {
      if (late.length === 1) {
        for (const change of late) this.putBehind(change);
        return { error };
      }
      const middle = late.length >>> 1;
      const failed = this.tellAgain(late.slice(0, middle), tries);
      return this.tellAgain(late.slice(middle), tries) ?? failed;
    }
    for (const change of late) this.missed.delete(keyOf(change));
    return undefined;
  }

  private miss(change: Missed): void {
    const key = keyOf(change);
    if (!this.missed.has(key)) this.missed.set(key, change);
  }

  /** Next time, the other changes come first. */
  private putBehind(change: Missed): void {
    this.missed.delete(keyOf(change));
    this.miss(change);
  }
}

function keyOf({ collection, key }: Missed): string {
  return `${collection.position} ${key}`;
}

function presentOf(late: readonly Missed[]): MissedChanges {
  const changes = new Map<Collection<unknown>, Change<unknown>[]>();
  for (const { collection, key, before } of late) {
    let list = changes.get(collection);
    if (list === undefined) changes.set(collection, (list = []));
    list.push({ key, before, after: collection.get(key), causes: [] });
  }
  return changes;
}
