import { type ContentHasher, hashKey, SetHash } from './content-hash.ts';
import { NameBudget, type Room } from './name-budget.ts';
import { NameIndex } from './name-index.ts';

/** A set that differs from its base by more names than this is copied. */
export const MAX_DIFFERENCES = 1024;

/**
 * An immutable set of subscribed names. Streams of one scope subscribe to the same thousands of names: they share one
 * object, so that a stream costs a pointer and equal subscriptions are equal by identity. A set that gains or loses a
 * few names shares the others with the former set.
 */
export class NameSet {
  readonly base: ReadonlySet<string>;
  /** Names that it has and the base does not (true), and the reverse (false). */
  readonly differences: ReadonlyMap<string, boolean>;
  readonly hash: SetHash;
  /** Digests of the requests that named this set, each in some order. */
  readonly digests: string[] = [];
  /** How many subscriptions hold it. */
  holders = 0;
  /** Memory that its differences take. */
  room: Room | undefined;
  /** What became of it last for a stream, and the set that this became of: other streams ask for the same. */
  next: Step | undefined;
  former: NameSet | undefined;

  constructor(base: ReadonlySet<string>, differences: ReadonlyMap<string, boolean>, hash: SetHash) {
    this.base = base;
    this.differences = differences;
    this.hash = hash;
  }

  has(name: string): boolean {
    if (this.differences.size === 0) return this.base.has(name);
    return this.differences.get(name) ?? this.base.has(name);
  }

  get size(): number {
    return this.hash.count;
  }

  get names(): Iterable<string> {
    return this.differences.size === 0 ? this.base : this.#differing();
  }

  *#differing(): Generator<string> {
    for (const name of this.base) if (!this.differences.has(name)) yield name;
    for (const [name, present] of this.differences) if (present) yield name;
  }
}

/** From one set in use to another. */
interface Step {
  readonly names: readonly string[];
  readonly present: boolean;
  readonly to: NameSet;
}

/** What there is once for all sets with the same base. */
interface Base {
  /** Memory that its names take. */
  readonly room: Room;
  /** How many sets have it. */
  sets: number;
  /** Undefined until it is needed; `none`: there is none, because hashes collide. */
  index?: NameIndex | 'none';
}

/** Names as a request carries them; they become strings only for a set that is not known yet. */
export interface RequestedNames {
  readonly count: number;
  /** Equal only for requests with equal names: nobody can find a collision (SHA-256). */
  digest(): string;
  strings(): readonly string[];
  /** Of the names, however they are ordered, and whether all are in the index. */
  hash(hasher: ContentHasher, index?: NameIndex): { readonly hash: SetHash; readonly areIn: boolean };
}

/**
 * All sets in use. A caller that gets a set holds it until {@link release}.
 *
 * A set is found by the digest of a request, which is proof, or by the hash of its names, which is not: a client could
 * make two sets collide and so change what another is subscribed to. Sets found by hash are compared name by name.
 */
export class NameSets {
  readonly empty = new NameSet(new Set(), new Map(), new SetHash());
  /** If keys collide, this has the first set. The others are not shared, or only by digest. */
  readonly #byHash = new Map<number, NameSet>();
  readonly #byDigest = new Map<string, NameSet>();
  /** By number of names, the set last found by names in another order: who names as many mostly names the same. */
  readonly #reordered = new Map<number, { readonly set: NameSet; readonly index: NameIndex }>();
  readonly #bases = new Map<ReadonlySet<string>, Base>();
  readonly #hasher: ContentHasher;
  readonly #budget: NameBudget;
  #size = 0;

  constructor(hasher: ContentHasher, budget = new NameBudget()) {
    this.#hasher = hasher;
    this.#budget = budget;
  }

  /**
   * @param address who is charged for the names if nobody else has them; likewise for {@link with} and {@link without}.
   * @param repeats the client names them again in every request, in the same order: its digest is worth making.
   * @throws BadRequest if there is no room.
   */
  of(requested: RequestedNames, address = '', repeats = true): NameSet {
    if (requested.count === 0) return this.empty;
    const guess = this.#reordered.get(requested.count);
    // Others have named as many in an order of their own: so will this client.
    const digest = repeats || guess === undefined ? requested.digest() : undefined;
    const known = digest === undefined ? undefined : this.#byDigest.get(digest);
    if (known !== undefined) return hold(known);
    const { hash, areIn } = requested.hash(this.#hasher, guess?.index);
    const isGuess = areIn && guess!.set.hash.equals(hash);
    const found = isGuess ? hold(guess!.set) : this.#known(requested, hash);
    const set = found ?? this.#new(requested.strings(), hash, address);
    if (digest !== undefined) this.#remember(digest, set);
    return set;
  }

  /**
   * The set in use that has these names, however they are ordered. Names that repeat have another hash, unless they were
   * made to collide: then their client gets more than it has asked for.
   */
  #known(requested: RequestedNames, hash: SetHash): NameSet | undefined {
    const found = this.#byHash.get(hashKey(hash));
    if (found?.hash.equals(hash) !== true) return undefined;
    const index = found.differences.size === 0 ? this.#indexOf(found.base) : 'none';
    if (index === 'none') return requested.strings().every((name) => found.has(name)) ? hold(found) : undefined;
    if (!requested.hash(this.#hasher, index).areIn) return undefined;
    this.#reordered.set(requested.count, { set: found, index });
    return hold(found);
  }

  /** Made once a second client names the same in another order, which Envoys do not do. */
  #indexOf(base: ReadonlySet<string>): NameIndex | 'none' {
    const known = this.#bases.get(base)!;
    return (known.index ??= NameIndex.of(base, this.#hasher) ?? 'none');
  }

  #new(names: readonly string[], hash: SetHash, address: string): NameSet {
    const distinct = new Set(names);
    const ofDistinct = distinct.size === names.length ? hash : this.#hashOf(distinct);
    return this.#shared(new NameSet(distinct, new Map(), ofDistinct), address, same);
  }

  /** The set plus these names. */
  with(set: NameSet, names: readonly string[], address = ''): NameSet {
    return this.#changed(set, names, true, address);
  }

  /** The set minus these names. */
  without(set: NameSet, names: readonly string[], address = ''): NameSet {
    return this.#changed(set, names, false, address);
  }

  release(set: NameSet): void {
    if (set === this.empty || --set.holders > 0) return;
    this.#size--;
    if (set.former?.next?.to === set) set.former.next = undefined;
    set.former = set.next = undefined;
    this.#giveRoom(set);
    const key = hashKey(set.hash);
    if (this.#byHash.get(key) === set) this.#byHash.delete(key);
    if (this.#reordered.get(set.size)?.set === set) this.#reordered.delete(set.size);
    for (const digest of set.digests.splice(0)) this.#byDigest.delete(digest);
  }

  get size(): number {
    return this.#size;
  }

  /** Costs what the names cost, plus at most {@link MAX_DIFFERENCES}; after that many changes, the whole set once. */
  #changed(set: NameSet, names: readonly string[], present: boolean, address: string): NameSet {
    const { next } = set;
    const isKnown = next?.present === present && next.to.holders > 0 && isEqual(next.names, names);
    if (isKnown) return hold(next.to);
    const to = this.#change(set, names, present, address);
    // Names that made no difference are counted for nobody, so they are not kept.
    const allCount = Math.abs(to.size - set.size) === names.length;
    if (allCount && set !== this.empty && to !== this.empty && to !== set) {
      set.next = { names: [...names], present, to };
      to.former = set;
    }
    return to;
  }

  #change(set: NameSet, names: readonly string[], present: boolean, address: string): NameSet {
    const { base } = set;
    const differences = new Map(set.differences);
    const hash = new SetHash();
    hash.addAll(set.hash);
    for (const name of names) {
      const inBase = base.has(name);
      if ((differences.get(name) ?? inBase) === present) continue;
      if (inBase === present) differences.delete(name);
      else differences.set(name, present);
      this.#hasher.text(name);
      if (present) hash.add(this.#hasher);
      else hash.remove(this.#hasher);
    }
    const changed = new NameSet(base, differences, hash);
    if (differences.size > MAX_DIFFERENCES) {
      return this.#shared(changed, address, same, () => new NameSet(new Set(changed.names), new Map(), hash));
    }
    // Equal sets with different bases are rare, and need not be found.
    return this.#shared(changed, address, changed.size <= MAX_DIFFERENCES ? same : differSame);
  }

  /** The set in use that equals this one, or else this one (or the form in which it is kept). */
  #shared(
    set: NameSet,
    address: string,
    equal: (a: NameSet, b: NameSet) => boolean,
    kept = (): NameSet => set,
  ): NameSet {
    if (set.size === 0) return this.empty;
    const key = hashKey(set.hash);
    const found = this.#byHash.get(key);
    if (found?.hash.equals(set.hash) === true && equal(found, set)) return hold(found);
    const added = kept();
    this.#takeRoom(added, address);
    if (found === undefined) this.#byHash.set(key, added);
    this.#size++;
    return hold(added);
  }

  #takeRoom(set: NameSet, address: string): void {
    const { base } = set;
    const room = this.#budget.take(address, set.differences.keys());
    const known = this.#bases.get(base);
    if (known !== undefined) known.sets++;
    else {
      try {
        this.#bases.set(base, { room: this.#budget.take(address, base), sets: 1 });
      } catch (error) {
        this.#budget.give(room);
        throw error;
      }
    }
    set.room = room;
  }

  #giveRoom({ base, room }: NameSet): void {
    if (room !== undefined) this.#budget.give(room);
    const known = this.#bases.get(base)!;
    if (--known.sets > 0) return;
    this.#bases.delete(base);
    this.#budget.give(known.room);
  }

  /** Streams that hold a set may each name it in a different order, and repeat that with every answer. */
  #remember(digest: string, set: NameSet): void {
    this.#byDigest.set(digest, set);
    set.digests.push(digest);
    if (set.digests.length > set.holders) this.#byDigest.delete(set.digests.shift()!);
  }

  #hashOf(names: ReadonlySet<string>): SetHash {
    const hash = new SetHash();
    for (const name of names) {
      this.#hasher.text(name);
      hash.add(this.#hasher);
    }
    return hash;
  }
}

function hold(set: NameSet): NameSet {
  set.holders++;
  return set;
}

function same(a: NameSet, b: NameSet): boolean {
  if (a.base === b.base) return differSame(a, b);
  if (a.size !== b.size) return false;
  for (const name of b.names) if (!a.has(name)) return false;
  return true;
}

/** They differ from the same base in the same names. */
function differSame(a: NameSet, b: NameSet): boolean {
  if (a.base !== b.base || a.differences.size !== b.differences.size) return false;
  for (const [name, present] of b.differences) if (a.differences.get(name) !== present) return false;
  return true;
}

function isEqual(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((name, i) => name === b[i]);
}
