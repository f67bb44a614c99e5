import { type Difference, Differences } from './differences.ts';
import { Earlier } from './earlier.ts';
import { type Changes, List, type News, type Root } from './forest.ts';
import { haveCommon } from './names.ts';
import type { Served } from './served.ts';
import { findIn, type HoldersByName, type Sight, type Viewpoint, type WorldView } from './world.ts';

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
    const { qualifiers } = this.#sight;
    const resolve = (name: string, before?: Earlier): Served | undefined => this.#sight.resolve(typeUrl, name, before);
    return compareNames(typeUrl, this.#news, { qualifiers, resolve });
  }
}

/**
 * The same below one root, whatever other roots a world has. Nearly every name is below one root of a world only: then
 * this is all that differs for that world, too. Proxies have roots of their own, so that hardly two are in one world, but
 * most of what changes is below a root that they share.
 */
export class RootUpdate extends Differences {
  readonly #root: Root;
  readonly #news: readonly News[];
  readonly #viewpoint: Viewpoint;
  readonly #holders: HoldersByName;

  /** @param news of the root alone, oldest first, up to now. */
  constructor(news: readonly News[], viewpoint: Viewpoint, holders: HoldersByName) {
    super();
    this.#root = news[0]!.root;
    this.#news = [...news];
    this.#viewpoint = viewpoint;
    this.#holders = holders;
  }

  protected compare(typeUrl: string): ReadonlyMap<string, Difference> {
    const { qualifiers, excluded } = this.#viewpoint;
    return compareNames(typeUrl, this.#news, {
      qualifiers,
      resolve: (name, before) => {
        if (excluded.has(name)) return undefined;
        const former = before?.in(this.#root, name);
        return former ? former.was : findIn(this.#root.lists, this.#holders, typeUrl, name, qualifiers);
      },
    });
  }

  /** No other root of the world has one of the names. If one had it before, it would have news of that. */
  isAllIn({ roots }: WorldView): boolean {
    for (const root of roots) {
      if (root === this.#root) continue;
      for (const { changes } of this.#news) if (hasSome(root, changes, this.#holders)) return false;
    }
    return true;
  }
}

export function isOfOneRoot(news: readonly News[]): boolean {
  const { root } = news[0]!;
  for (const each of news) if (each.root !== root) return false;
  return true;
}

function hasSome(root: Root, changes: Changes, holdersByName: HoldersByName): boolean {
  for (const [typeUrl, names] of changes) {
    const holdersOfType = holdersByName.get(typeUrl);
    if (holdersOfType === undefined) continue;
    for (const name of names.keys()) {
      const holders = holdersOfType.get(name);
      if (holders !== undefined && isBelow(root, holders)) return true;
    }
  }
  return false;
}

/** Whether one of the lists is below a root. Asked for each proxy, of lists that they share: those are at hand. */
function isBelow(root: Root, lists: List | ReadonlySet<List>): boolean {
  if (lists instanceof List) return lists.roots.has(root);
  return haveCommon(lists, root.lists);
}

function compareNames(
  typeUrl: string,
  news: readonly News[],
  { qualifiers, resolve }: Pick<Sight, 'qualifiers'> & { resolve(name: string, before?: Earlier): Served | undefined },
): ReadonlyMap<string, Difference> {
  const differences = new Map<string, Difference>();
  const earlier = new Earlier(news, typeUrl, qualifiers);
  for (const [name, rollouts] of earlier.names) {
    const was = resolve(name, earlier);
    const now = resolve(name);
    if (was !== now) differences.set(name, { was, now, rollouts });
  }
  return differences;
}
