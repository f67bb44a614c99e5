import { type Change, isSeenWith, type News, type Root } from './forest.ts';
import type { Served } from './served.ts';
import { joinRollouts, NO_ROLLOUTS, type Rollout } from '../rollouts/rollout.ts';

/**
 * What some news is about, in resources of one type, and what roots had of these before. Each change is looked at once:
 * streams that are behind have more news, and must not need more time for each of them.
 */
export class Earlier {
  /** By name, the objects that changed it. */
  readonly names: ReadonlyMap<string, readonly Rollout[]>;
  readonly #first = new Map<Root, Map<string, Change>>();

  /** @param news oldest first. */
  constructor(news: readonly News[], typeUrl: string, qualifiers: readonly string[]) {
    const names = new Map<string, readonly Rollout[]>();
    for (const { root, changes, look } of news) {
      const changed = changes.get(typeUrl);
      if (changed === undefined) continue;
      let first = this.#first.get(root);
      if (first === undefined) this.#first.set(root, (first = new Map<string, Change>()));
      for (const [name, all] of changed) {
        const seen = all.filter(({ qualifier }) => isSeenWith(qualifiers, qualifier));
        let rollouts = names.get(name) ?? NO_ROLLOUTS;
        if (look !== undefined) for (const change of seen) rollouts = joinRollouts(rollouts, change.rollouts);
        names.set(name, rollouts);
        // A name has only one variant at a time among those that are seen: the others were not there.
        const change = seen.find(({ was }) => was !== undefined) ?? seen[0];
        if (change !== undefined && !first.has(name)) first.set(name, change);
      }
    }
    this.names = names;
  }

  /** What a root had of a name; undefined if none of the news is about it. */
  in(root: Root, name: string): { readonly was: Served | undefined } | undefined {
    return this.#first.get(root)?.get(name);
  }

  rolloutsOf(name: string): readonly Rollout[] {
    return this.names.get(name) ?? NO_ROLLOUTS;
  }
}
