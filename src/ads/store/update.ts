import { type Difference, Differences } from './differences.ts';
import { type News, rolloutsIn } from './forest.ts';
import type { Sight } from './world.ts';

/** From what the streams of a world saw before some publications to what they see now. */
export class Update extends Differences {
  readonly #sight: Sight;
  readonly #news: readonly News[];

  /** @param news of the world's roots, oldest first, up to now. */
  constructor(sight: Sight, news: readonly News[]) {
    super();
    this.#sight = sight;
    this.#news = [...news];
  }

  protected compare(typeUrl: string): ReadonlyMap<string, Difference> {
    const differences = new Map<string, Difference>();
    const looked = this.#news.length > 1 ? new Set<string>() : undefined;
    for (const { changes } of this.#news) {
      for (const name of changes.get(typeUrl)?.keys() ?? []) {
        if (looked?.has(name) === true) continue;
        looked?.add(name);
        const was = this.#sight.resolve(typeUrl, name, this.#news);
        const now = this.#sight.resolve(typeUrl, name);
        if (was === now) continue;
        const rollouts = rolloutsIn(this.#news, typeUrl, name, this.#sight.qualifiers);
        differences.set(name, { was, now, rollouts });
      }
    }
    return differences;
  }
}
