import type { Differences } from './differences.ts';
import type { News } from './forest.ts';
import { haveCommon } from './names.ts';
import type { SharedWork } from './shared-work.ts';
import { RootUpdate, type Span, spanOf, Update } from './update.ts';
import { type HoldersByName, type Sight, type Viewpoint, WorldView } from './world.ts';

/** Streams that are further behind look at what is below their own root. */
const MOST_ALIKE = 8;

/** What changes for the streams of a sight: computed once for all to whom the same has happened. */
export function updateOf(sight: Sight, news: readonly News[], work: SharedWork, holders: HoldersByName): Differences {
  if (sight instanceof WorldView && isOfOneRoot(news)) {
    const common = rootUpdateOf(sight, news, work, holders);
    if (common.isAllIn(sight, news[0]!.root)) return common;
  }
  return work.updates.of([sight, ...news], () => new Update(sight, news));
}

function rootUpdateOf(
  { viewpoint }: WorldView,
  news: readonly News[],
  work: SharedWork,
  holders: HoldersByName,
): RootUpdate {
  const span = spanOfAll(news, work, holders);
  if (span === undefined) {
    const from = [viewpoint, news[0]!, news[news.length - 1]!];
    return work.rootUpdates.of(from, () => new RootUpdate(news, viewpoint, holders));
  }
  const seen = span.isPlain && seesAll(viewpoint, news) ? ANYBODY : viewpoint;
  const from = [seen, ...news.map(({ changes }) => changes)];
  return work.rootUpdates.of(from, () => new RootUpdate(news, seen, holders, span.lists));
}

/** Undefined: what the news means depends on what else is below the root, or a list is no longer there. */
function spanOfAll(news: readonly News[], { spans }: SharedWork, holders: HoldersByName): Span | undefined {
  if (news.length > MOST_ALIKE) return undefined;
  const all: Span[] = [];
  for (const { root, changes, lists } of news) {
    if (lists === undefined || !lists.every((list) => root.lists.has(list))) return undefined;
    if (!spans.has(changes)) spans.set(changes, spanOf(lists, changes, holders));
    const known = spans.get(changes);
    if (known === undefined) return undefined;
    all.push(known);
  }
  const [first] = all as [Span];
  if (all.length === 1) return first;
  return { lists: new Set(all.flatMap(({ lists }) => [...lists])), isPlain: all.every(({ isPlain }) => isPlain) };
}

function isOfOneRoot(news: readonly News[]): boolean {
  const { root } = news[0]!;
  for (const each of news) if (each.root !== root) return false;
  return true;
}

/** Sees what has no qualifier. */
const ANYBODY: Viewpoint = { qualifiers: [], excluded: new Set() };

/** Whether nothing of this is excluded. */
function seesAll({ excluded }: Viewpoint, news: readonly News[]): boolean {
  if (excluded.size === 0) return true;
  for (const { changes } of news) for (const names of changes.values()) if (haveCommon(names, excluded)) return false;
  return true;
}
