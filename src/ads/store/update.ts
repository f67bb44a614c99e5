import { type Difference, Differences } from './differences.ts';
import { Earlier } from './earlier.ts';
import { type Changes, List, type News, type Root } from './forest.ts';
import { haveCommon, type Keys } from './names.ts';
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
 * most of what changes is below a root that they share, or in a list that their roots share.
 */
export class RootUpdate extends Differences {
  readonly #root: Root;
  readonly #news: readonly News[];
  readonly #viewpoint: Viewpoint;
  readonly #holders: HoldersByName;
  readonly #lists: Keys<List>;

  /**
   * @param news of the root alone, oldest first, up to now.
   * @param lists those of which it is news; absent: what is below the root. Other roots may have them when this one is gone.
   */
  constructor(news: readonly News[], viewpoint: Viewpoint, holders: HoldersByName, lists?: ReadonlySet<List>) {
    super();
    this.#root = news[0]!.root;
    this.#news = [...news];
    this.#viewpoint = viewpoint;
    this.#holders = holders;
    this.#lists = lists ?? this.#root.lists;
  }

  protected compare(typeUrl: string): ReadonlyMap<string, Difference> {
    const { qualifiers, excluded } = this.#viewpoint;
    return compareNames(typeUrl, this.#news, {
      qualifiers,
      resolve: (name, before) => {
        if (excluded.has(name)) return undefined;
        const former = before?.in(this.#root, name);
        return former ? former.was : findIn(this.#lists, this.#holders, typeUrl, name, qualifiers);
      },
    });
  }

  /**
   * No other root of the world has one of the names. If one had it before, it would have news of that.
   * @param own the root that the news is of.
   */
  isAllIn({ roots }: WorldView, own: Root): boolean {
    for (const root of roots) {
      if (root === own) continue;
      for (const { changes } of this.#news) if (hasSome(root, changes, this.#holders)) return false;
    }
    return true;
  }
}

/** For whom some changes mean the same: below all roots that have these lists. */
export interface Span {
  readonly lists: ReadonlySet<List>;
  /** Whatever qualifiers somebody sees them with. */
  readonly isPlain: boolean;
}

/** Undefined: some name is in other lists, too. */
export function spanOf(lists: readonly List[], changes: Changes, holdersByName: HoldersByName): Span | undefined {
  const all = new Set(lists);
  let isPlain = true;
  for (const [typeUrl, names] of changes) {
    const holdersOfType = holdersByName.get(typeUrl);
    for (const [name, changed] of names) {
      const holders = holdersOfType?.get(name);
      if (holders !== undefined && !(holders instanceof List && all.has(holders))) return undefined;
      isPlain &&= changed.every(({ qualifier }) => qualifier === '') && holders?.hasVariants(typeUrl, name) !== true;
    }
  }
  return { lists: all, isPlain };
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
