import type { ListChange, MemberChange, Publication, WorldChange } from '../ads/store/publication.ts';
import type { EncodedResource } from '../ads/store/resource.ts';
import type { Rollout } from '../ads/rollouts/rollout.ts';
import type { Change, Collection, Draft } from '../cache/graph.ts';
import type { Members } from './resources/members.ts';
import { type ScopeViews, listsOf } from './clients/scopes.ts';
import type { Views } from './clients/views.ts';
import type { ProxyWorld, Worlds } from './clients/worlds.ts';

export interface Published {
  readonly members: readonly Members[];
  readonly scopes: Collection<ScopeViews>;
  readonly views: Views;
  /** More lists and their children. */
  readonly lists: readonly Collection<readonly string[]>[];
  readonly worlds: Worlds;
  /** For agents. Envoy does not depend on them, so nobody waits for them. */
  readonly names: readonly Members[];
  readonly nameLists: readonly Collection<readonly string[]>[];
}

/** Which rollouts the changes of a commit are part of. */
export interface RolloutsOf {
  ofChange(change: Change<unknown>): readonly Rollout[];
  /** Of a commit in which a proxy comes to see another part of the mesh. */
  ofWorld(): readonly Rollout[];
  ofResource(
    change: Change<unknown>,
    before: EncodedResource | undefined,
    after: EncodedResource | undefined,
  ): readonly Rollout[];
}

const nobodyAsks: RolloutsOf = { ofChange: () => [], ofWorld: () => [], ofResource: () => [] };

/** Makes drafts show what is published. */
export function trackPublished({ members, scopes, views, lists, worlds, names, nameLists }: Published): void {
  for (const collection of [...members, ...names, ...lists, ...nameLists, scopes, views.viewLists, worlds])
    collection.track();
}

/** What a commit changed, in the form that the ADS store takes. */
export function publicationOf(
  draft: Draft,
  { members, scopes, views, lists, worlds, names, nameLists }: Published,
  of: RolloutsOf = nobodyAsks,
): Publication {
  return {
    members: [
      ...members.flatMap((collection) => membersOf(draft, collection, of)),
      ...names.flatMap((collection) => membersOf(draft, collection, nobodyAsks)),
    ],
    lists: [
      ...Array.from(draft.changes(scopes), (change) => listChange(change, change.after && listsOf(change.after), of)),
      ...[views.viewLists, ...lists].flatMap((collection) =>
        Array.from(draft.changes(collection), (change) => listChange(change, change.after, of)),
      ),
      ...nameLists.flatMap((collection) =>
        Array.from(draft.changes(collection), (change) => listChange(change, change.after, nobodyAsks)),
      ),
    ],
    worlds: Array.from(draft.changes(worlds), (change) => worldChange(change, of)),
  };
}

function membersOf(draft: Draft, collection: Members, of: RolloutsOf): MemberChange[] {
  return Array.from(draft.changes(collection), (change) => {
    const { before, after } = change;
    const { list, qualifier, resource } = (after ?? before)!;
    const rollouts = of.ofResource(change, before?.resource, after?.resource);
    const place = { list, qualifier, typeUrl: resource.typeUrl, name: resource.name, ...part(rollouts) };
    return after === undefined ? place : { ...place, resource: after.resource };
  });
}

function listChange(change: Change<unknown>, children: readonly string[] | undefined, of: RolloutsOf): ListChange {
  const list = { list: change.key, ...part(of.ofChange(change)) };
  return children === undefined ? list : { ...list, children };
}

function worldChange(change: Change<ProxyWorld>, of: RolloutsOf): WorldChange {
  const { key: stream, after: world } = change;
  if (world === undefined) return { stream };
  return 'error' in world ? { stream, error: world.error } : { stream, world, ...part(of.ofWorld()) };
}

function part(rollouts: readonly Rollout[]): { readonly rollouts?: readonly Rollout[] } {
  return rollouts.length === 0 ? {} : { rollouts };
}
