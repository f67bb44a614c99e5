import { type Difference, Differences } from './differences.ts';
import { Earlier } from './earlier.ts';
import { type Changes, List, type News, type Root } from './forest.ts';
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
  constructor(root: Root, news: readonly News[], viewpoint: Viewpoint, holders: HoldersByName) {
    super();
    this.#root = root;
    this.#news = [...news];
    this.#viewpoint = viewpoint;
    this.#holders = holders;
  }

  /** Undefined: there is news of several roots, or some name is below several. */
  static of(world: WorldView, news: readonly News[], holders: HoldersByName): Differences | undefined {
    const first = news[0]!;
    const last = news[news.length - 1]!;
    const { root } = last;
    for (const each of news) if (each.root !== root) return undefined;
    const { viewpoint } = world;
    let updates = last.updates.get(viewpoint);
    if (updates === undefined) last.updates.set(viewpoint, (updates = new Map<News, Differences>()));
    let update = updates.get(first);
    if (update === undefined) updates.set(first, (update = new RootUpdate(root, news, viewpoint, holders)));
    return isAllIn(world, news, holders) ? update : undefined;
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
}

/** Only the root of this news has the names. If another one had them before, there would be news of that. */
function isAllIn({ roots }: WorldView, news: readonly News[], holders: HoldersByName): boolean {
  for (const root of roots) {
    if (root === news[0]!.root) continue;
    for (const { changes } of news) if (hasSome(root, changes, holders)) return false;
  }
  return true;
}

function hasSome({ lists }: Root, changes: Changes, holdersByName: HoldersByName): boolean {
  for (const [typeUrl, names] of changes) {
    const holdersOfType = holdersByName.get(typeUrl);
    if (holdersOfType === undefined) continue;
    for (const name of names.keys()) {
      const holders = holdersOfType.get(name);
      if (holders !== undefined && isOneOf(holders, lists)) return true;
    }
  }
  return false;
}

function isOneOf(holders: List | ReadonlySet<List>, lists: ReadonlyMap<List, unknown>): boolean {
  if (holders instanceof List) return lists.has(holders);
  if (holders.size <= lists.size) {
    for (const list of holders) if (lists.has(list)) return true;
  } else for (const list of lists.keys()) if (holders.has(list)) return true;
  return false;
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
