import { Alike } from './alike.ts';
import type { Marks } from '../protocol/ledger.ts';
import { Concern, joinRollouts, type Rollout } from '../rollouts/rollout.ts';
import type { Served } from './served.ts';

/** What was seen of a name, and what is seen now. */
export interface Difference {
  readonly was: Served | undefined;
  readonly now: Served | undefined;
  /** Those that it is part of. */
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
  /** What followed from it for streams. */
  readonly marked = new Alike<Marks>();
  readonly #concerns = new Alike<Concern | undefined>();
  /** Types of which some difference is part of a rollout. */
  readonly #partOfSome = new Map<string, boolean>();

  /** The names of a type that differ. */
  of(typeUrl: string): ReadonlyMap<string, Difference> {
    let differences = this.#byType.get(typeUrl);
    if (differences === undefined) this.#byType.set(typeUrl, (differences = this.compare(typeUrl)));
    return differences;
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
