import type { Change, Collection } from './collection.ts';

/** So many calls at most go into finding out which of the changes that an observer missed it cannot take. */
const MAX_TRIES = 64;

/** Of what an observer is told. */
type Missed = Omit<Change<unknown>, 'after' | 'causes'> & { readonly collection: Collection<unknown> };
export type MissedChanges = ReadonlyMap<Collection<unknown>, readonly Change<unknown>[]>;

/**
 * One who is told what was published. One that throws may have taken a part of it, or nothing: it is told again, with
 * the values of then, apart from what is new, and in ever smaller pieces, so that one change that it cannot take keeps
 * no other from it. So an observer must bear to be told the same twice.
 */
export class Observer<D> {
  readonly name: string;
  private readonly see: (draft: D) => void;
  private readonly again: (changes: MissedChanges) => D;
  /** The first that has waited longest. */
  private readonly missed = new Map<string, Missed>();

  /** @param again what it is shown of changes that it missed. */
  constructor(name: string, see: (draft: D) => void, again: (changes: MissedChanges) => D) {
    this.name = name;
    this.see = see;
    this.again = again;
  }

  /** It has not taken everything yet. */
  get behind(): boolean {
    return this.missed.size > 0;
  }

  /** Returns what it threw. Call when no other draft is open. */
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

  /** Next time the others come first. */
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
