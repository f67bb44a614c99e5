import type { Rejected } from './recipient.ts';
import { common } from '../store/names.ts';
import type { Names } from '../store/served.ts';

/** What one client rejects of resources of one type. */
export type RejectedByName = Pick<ReadonlyMap<string, Rejected>, 'get' | 'has' | 'keys' | 'size'>;

/** A client's rejection of a whole state of the world. */
export interface StateRejection {
  /** Another one each time the client rejects. */
  readonly id: object;
  /** As the resource is now. */
  of(name: string): Rejected;
}

/**
 * The rejection of a client that did not say which resource was wrong: it counts for all of them. Takes the same memory however
 * many there are, since clients share their names.
 */
export class RejectedState implements RejectedByName {
  readonly #names: Names;
  /** Resources that it has also rejected by name. */
  readonly #named: ReadonlyMap<string, Rejected>;
  readonly #rejection: StateRejection;

  constructor(names: Names, named: ReadonlyMap<string, Rejected>, rejection: StateRejection) {
    this.#names = names;
    this.#named = named;
    this.#rejection = rejection;
  }

  get size(): number {
    return this.#names.size;
  }

  has(name: string): boolean {
    return this.#names.has(name);
  }

  get(name: string): Rejected | undefined {
    return this.has(name) ? (this.#named.get(name) ?? this.#rejection.of(name)) : undefined;
  }

  keys(): ReturnType<Names['keys']> {
    return this.#names.keys();
  }

  /** How many names are remembered for this client alone. */
  get ownSize(): number {
    return this.#named.size;
  }

  /** The same rejection, of these names. */
  of(names: Names): RejectedState {
    return new RejectedState(names, this.#named, this.#rejection);
  }

  isSame(other: RejectedState): boolean {
    return this.#rejection.id === other.#rejection.id && isSame(this.#named, other.#named);
  }
}

/** What a client rejects of these names, by what it rejects in several places. */
export function rejectedAmong(names: Names, all: readonly RejectedByName[]): RejectedByName {
  const state = all.findLast((each) => each instanceof RejectedState);
  if (state !== undefined) return state.of(names);
  const found = new Map<string, Rejected>();
  for (const each of all) for (const name of common(names, each)) found.set(name, each.get(name)!);
  return found;
}

/** How many names are remembered for one client alone. */
export function ownSizeOf(rejected: RejectedByName): number {
  return rejected instanceof RejectedState ? rejected.ownSize : rejected.size;
}

export function isSame(a: RejectedByName, b: RejectedByName): boolean {
  if (a.size !== b.size) return false;
  if (a instanceof RejectedState || b instanceof RejectedState)
    return a instanceof RejectedState && b instanceof RejectedState && a.isSame(b);
  for (const name of a.keys()) {
    const [one, other] = [a.get(name)!, b.get(name)];
    if (one.version !== other?.version || one.message !== other.message) return false;
  }
  return true;
}
