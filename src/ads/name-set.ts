import { type ContentHasher, hashKey, SetHash } from './content-hash.ts';

/**
 * An immutable set of subscribed names. Streams of one scope subscribe to the same thousands of names: they share one
 * object, found by its content hash, so that a stream costs a pointer and equal subscriptions are equal by identity.
 */
export class NameSet {
  readonly names: ReadonlySet<string>;
  readonly hash: SetHash;
  /** How many subscriptions hold it. */
  holders = 0;

  constructor(names: ReadonlySet<string>, hash: SetHash) {
    this.names = names;
    this.hash = hash;
  }

  has(name: string): boolean {
    return this.names.has(name);
  }

  get size(): number {
    return this.names.size;
  }
}

/** Names as a request carries them; only a set that is not known yet makes strings of them. */
export interface RequestedNames {
  readonly hash: SetHash;
  strings(): readonly string[];
}

/** All sets in use. Whoever gets a set holds it until {@link release}. */
export class NameSets {
  readonly empty = new NameSet(new Set(), new SetHash());
  readonly #sets = new Map<number, NameSet>();
  readonly #hasher: ContentHasher;

  constructor(hasher: ContentHasher) {
    this.#hasher = hasher;
  }

  of(requested: RequestedNames): NameSet {
    return this.#find(requested.hash) ?? this.#intern(new Set(requested.strings()));
  }

  /** The set with these names more. */
  with(set: NameSet, names: readonly string[]): NameSet {
    const added = names.filter((name) => !set.has(name));
    const hash = this.#copy(set.hash);
    for (const name of new Set(added)) {
      this.#hasher.text(name);
      hash.add(this.#hasher);
    }
    return this.#find(hash) ?? this.#keep(new NameSet(new Set([...set.names, ...added]), hash));
  }

  /** The set with these names less. */
  without(set: NameSet, names: readonly string[]): NameSet {
    const gone = new Set(names.filter((name) => set.has(name)));
    const hash = this.#copy(set.hash);
    for (const name of gone) {
      this.#hasher.text(name);
      hash.remove(this.#hasher);
    }
    return this.#find(hash) ?? this.#keep(new NameSet(new Set([...set.names].filter((name) => !gone.has(name))), hash));
  }

  release(set: NameSet): void {
    if (set === this.empty || --set.holders > 0) return;
    const key = hashKey(set.hash);
    if (this.#sets.get(key) === set) this.#sets.delete(key);
  }

  get size(): number {
    return this.#sets.size;
  }

  #intern(names: Set<string>): NameSet {
    const hash = new SetHash();
    for (const name of names) {
      this.#hasher.text(name);
      hash.add(this.#hasher);
    }
    return this.#find(hash) ?? this.#keep(new NameSet(names, hash));
  }

  #find(hash: SetHash): NameSet | undefined {
    if (hash.count === 0) return this.empty;
    const found = this.#sets.get(hashKey(hash));
    if (found === undefined || !found.hash.equals(hash)) return undefined;
    found.holders++;
    return found;
  }

  #keep(set: NameSet): NameSet {
    if (set.size === 0) return this.empty;
    set.holders++;
    // A collision of keys (not of hashes) leaves the newcomer unshared, which is correct, only larger.
    if (!this.#sets.has(hashKey(set.hash))) this.#sets.set(hashKey(set.hash), set);
    return set;
  }

  #copy(hash: SetHash): SetHash {
    const copy = new SetHash();
    copy.addAll(hash);
    return copy;
  }
}
