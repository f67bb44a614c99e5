import { IdentityMemo } from '../../base/identity-memo.ts';
import type { CommonMarks, Marks } from '../protocol/ledger.ts';
import { Concern, joinRollouts, type Rollout } from '../rollouts/rollout.ts';
import type { Served } from './served.ts';

/** What was seen of a name, and what is seen now. */
export interface Difference {
  readonly was: Served | undefined;
  readonly now: Served | undefined;
  /** The rollouts that it is part of. */
  readonly rollouts: readonly Rollout[];
}

/** The names that clients have asked for. `key`: identical objects for the same names. */
interface Wanted {
  readonly key: readonly [object, object];
  has(name: string): boolean;
}

/** What streams have to make up for, compared type by type when first needed. */
export abstract class Differences {
  readonly #byType = new Map<string, ReadonlyMap<string, Difference>>();
  /** By type and by what clients have asked for, what followed from it for those that were owed nothing. */
  readonly #common = new Map<object, Map<object, CommonMarks>>();
  readonly #commonGuarded = new Map<object, Map<object, CommonMarks>>();
  /** What followed from it for other streams. */
  readonly marked = new IdentityMemo<Marks>();
  readonly #concerns = new IdentityMemo<Concern | undefined>();
  /** Types of which some difference is part of a rollout. */
  readonly #partOfSome = new Map<string, boolean>();

  /** The names of a type that differ. */
  of(typeUrl: string): ReadonlyMap<string, Difference> {
    let differences = this.#byType.get(typeUrl);
    if (differences === undefined) this.#byType.set(typeUrl, (differences = this.compare(typeUrl)));
    return differences;
  }

  /** @param wanted what clients have asked for, by identity. @param guarded whether they keep what left the world. */
  commonMarks(type: object, wanted: object, guarded: boolean, make: () => CommonMarks): CommonMarks {
    const common = guarded ? this.#commonGuarded : this.#common;
    let ofType = common.get(type);
    if (ofType === undefined) common.set(type, (ofType = new Map<object, CommonMarks>()));
    let marks = ofType.get(wanted);
    if (marks === undefined) ofType.set(wanted, (marks = make()));
    return marks;
  }

  /**
   * What of it concerns all those with the same interest in a type. Undefined: nothing that is part of a rollout.
   * @param all rollouts that every difference is part of.
   */
  concern(type: { readonly typeUrl: string }, wanted: Wanted, all: readonly Rollout[]): Concern | undefined {
    const differences = this.of(type.typeUrl);
    if (differences.size === 0 || (all.length === 0 && !this.#isPartOfSome(type.typeUrl))) return undefined;
    return this.#concerns.of([type, ...wanted.key, all], () => {
      const names = new Map<string, readonly Rollout[]>();
      for (const [name, { rollouts }] of differences) {
        const own = joinRollouts(rollouts, all);
        if (own.length > 0 && wanted.has(name)) names.set(name, own);
      }
      return names.size === 0 ? undefined : new Concern(type.typeUrl, names);
    });
  }

  #isPartOfSome(typeUrl: string): boolean {
    let known = this.#partOfSome.get(typeUrl);
    if (known === undefined) {
      known = Array.from(this.of(typeUrl).values()).some(({ rollouts }) => rollouts.length > 0);
      this.#partOfSome.set(typeUrl, known);
    }
    return known;
  }

  protected abstract compare(typeUrl: string): ReadonlyMap<string, Difference>;
}
