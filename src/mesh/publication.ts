import type { ListChange, MemberChange, Publication, WorldChange } from '../ads/store/publication.ts';
import type { Collection, Draft } from '../cache/graph.ts';
import type { Members } from './resources/members.ts';
import { type ScopeViews, listsOf } from './clients/scopes.ts';
import type { Views } from './clients/views.ts';
import type { ProxyWorld, Worlds } from './clients/worlds.ts';

export interface Published {
  readonly members: readonly Members[];
  readonly scopes: Collection<ScopeViews>;
  readonly views: Views;
  readonly worlds: Worlds;
}

/** What a commit changed, in the form that the ADS store takes. */
export function publicationOf(draft: Draft, { members, scopes, views, worlds }: Published): Publication {
  return {
    members: members.flatMap((collection) => membersOf(draft, collection)),
    lists: [
      ...Array.from(draft.changes(scopes), ({ key, after }) => listChange(key, after && listsOf(after))),
      ...Array.from(draft.changes(views.viewLists), ({ key, after }) => listChange(key, after)),
    ],
    worlds: Array.from(draft.changes(worlds), ({ key, after }) => worldChange(key, after)),
  };
}

function membersOf(draft: Draft, collection: Members): MemberChange[] {
  return Array.from(draft.changes(collection), ({ before, after }) => {
    const { list, qualifier, resource } = (after ?? before)!;
    const place = { list, qualifier, typeUrl: resource.typeUrl, name: resource.name };
    return after === undefined ? place : { ...place, resource: after.resource };
  });
}

function listChange(list: string, children: readonly string[] | undefined): ListChange {
  return children === undefined ? { list } : { list, children };
}

function worldChange(stream: string, world: ProxyWorld | undefined): WorldChange {
  if (world === undefined) return { stream };
  return 'error' in world ? { stream, error: world.error } : { stream, world };
}
