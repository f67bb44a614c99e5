import type { Refused } from './recipient.ts';
import { common } from '../store/names.ts';
import type { Names } from '../store/served.ts';

/** What one client refuses of resources of one type. */
export type RefusedByName = Pick<ReadonlyMap<string, Refused>, 'get' | 'has' | 'keys' | 'size'>;

/** A client's refusal of a whole state of the world. */
export interface StateRefusal {
  /** Another one each time the client refuses. */
  readonly id: object;
  /** As the resource is now. */
  of(name: string): Refused;
}

/**
 * The refusal of a client that did not say which resource was wrong: it counts for all of them. Takes the same memory however
 * many there are, since clients share their names.
 */
export class RefusedState implements RefusedByName {
  readonly #names: Names;
  /** Those that it has also refused by name. */
  readonly #named: ReadonlyMap<string, Refused>;
  readonly #refusal: StateRefusal;

  constructor(names: Names, named: ReadonlyMap<string, Refused>, refusal: StateRefusal) {
    this.#names = names;
    this.#named = named;
    this.#refusal = refusal;
  }

  get size(): number {
    return this.#names.size;
  }

  has(name: string): boolean {
    return this.#names.has(name);
  }

  get(name: string): Refused | undefined {
    return this.has(name) ? (this.#named.get(name) ?? this.#refusal.of(name)) : undefined;
  }

  keys(): ReturnType<Names['keys']> {
    return this.#names.keys();
  }

  /** How many names are remembered for this client alone. */
  get ownSize(): number {
    return this.#named.size;
  }

  /** The same refusal, of these names. */
  of(names: Names): RefusedState {
    return new RefusedState(names, this.#named, this.#refusal);
  }

  isSame(other: RefusedState): boolean {
    return this.#refusal.id === other.#refusal.id && isSame(this.#named, other.#named);
  }
}

/** What a client refuses of these names, by what it refuses in several places. */
export function refusedAmong(names: Names, all: readonly RefusedByName[]): RefusedByName {
  const state = all.findLast((each) => each instanceof RefusedState);
  if (state !== undefined) return state.of(names);
  const found = new Map<string, Refused>();
  for (const each of all) for (const name of common(names, each)) found.set(name, each.get(name)!);
  return found;
}

/** How many names are remembered for one client alone. */
export function ownSizeOf(refused: RefusedByName): number {
  return refused instanceof RefusedState ? refused.ownSize : refused.size;
}

export function isSame(a: RefusedByName, b: RefusedByName): boolean {
  if (a.size !== b.size) return false;
  if (a instanceof RefusedState || b instanceof RefusedState)
    return a instanceof RefusedState && b instanceof RefusedState && a.isSame(b);
  for (const name of a.keys()) {
    const [one, other] = [a.get(name)!, b.get(name)];
    if (one.version !== other?.version || one.message !== other.message) return false;
  }
  return true;
}
