import { Alike } from './alike.ts';
import type { Marks } from '../protocol/ledger.ts';
import type { Served } from './served.ts';

/** What was seen of a name, and what is seen now. */
export interface Difference {
  readonly was: Served | undefined;
  readonly now: Served | undefined;
}

/** What streams have to make up for, compared type by type when first needed. */
export abstract class Differences {
  readonly #byType = new Map<string, ReadonlyMap<string, Difference>>();
  /** What followed from it for streams. */
  readonly marked = new Alike<Marks>();

  /** The names of a type that differ. */
  of(typeUrl: string): ReadonlyMap<string, Difference> {
    let differences = this.#byType.get(typeUrl);
    if (differences === undefined) this.#byType.set(typeUrl, (differences = this.compare(typeUrl)));
    return differences;
  }

  protected abstract compare(typeUrl: string): ReadonlyMap<string, Difference>;
}
