import { Alike } from './alike.ts';
import type { News } from './forest.ts';
import type { Marks } from './ledger.ts';
import type { Difference, Differences } from './move.ts';
import type { Sight } from './world.ts';

/** From what streams of a world saw to what they see since some publications. */
export class Update implements Differences {
  readonly #sight: Sight;
  readonly #news: readonly News[];
  readonly #differences = new Map<string, ReadonlyMap<string, Difference>>();
  readonly marked = new Alike<Marks>();

  /** @param news of the roots of the world, oldest first, up to now. */
  constructor(sight: Sight, news: readonly News[]) {
    this.#sight = sight;
    this.#news = [...news];
  }

  of(typeUrl: string): ReadonlyMap<string, Difference> {
    let differences = this.#differences.get(typeUrl);
    if (differences === undefined) this.#differences.set(typeUrl, (differences = this.#compare(typeUrl)));
    return differences;
  }

  #compare(typeUrl: string): ReadonlyMap<string, Difference> {
    const differences = new Map<string, Difference>();
    const looked = this.#news.length > 1 ? new Set<string>() : undefined;
    for (const { changes } of this.#news) {
      for (const name of changes.get(typeUrl)?.keys() ?? []) {
        if (looked?.has(name) === true) continue;
        looked?.add(name);
        const was = this.#sight.resolve(typeUrl, name, this.#news);
        const now = this.#sight.resolve(typeUrl, name);
        if (was !== now) differences.set(name, { was, now });
      }
    }
    return differences;
  }
}
