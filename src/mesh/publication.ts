import type { ListChange, MemberChange, Publication, World, WorldChange } from '../ads/publication.ts';
import type { Collection, Draft } from '../cache/graph.ts';
import { gatewayList } from './gateway-router.ts';
import { inboundList } from './inbounds.ts';
import { type Members, qualifiers } from './members.ts';
import type { ProxyView, Proxies } from './proxies.ts';
import { type ScopeViews, listsOf } from './scopes.ts';
import type { Views } from './views.ts';

export interface Published {
  readonly members: readonly Members[];
  readonly scopes: Collection<ScopeViews>;
  readonly views: Views;
  readonly proxies: Proxies;
}

/** What a commit changed, as the ADS store takes it. */
export function publicationOf(draft: Draft, { members, scopes, views, proxies }: Published): Publication {
  return {
    members: members.flatMap((collection) => membersOf(draft, collection)),
    lists: [
      ...Array.from(draft.changes(scopes), ({ key, after }) => listChange(key, after && listsOf(after))),
      ...Array.from(draft.changes(views.viewLists), ({ key, after }) => listChange(key, after)),
    ],
    worlds: Array.from(draft.changes(proxies.views), ({ key, after }) => worldChange(key, after)),
  };
}

/** What a proxy can reach; empty for one that is not known or not accepted. */
export function worldOf(proxy: ProxyView | undefined): World {
  if (proxy === undefined || 'error' in proxy) return { roots: [], qualifiers: [] };
  const roots = [proxy.scope.key];
  if (proxy.inbound !== undefined) roots.push(inboundList(proxy.inbound.key));
  if (proxy.router !== undefined) roots.push(gatewayList(proxy.router.key));
  return {
    roots,
    qualifiers: [qualifiers.locality(proxy.topology.locality), qualifiers.topology(proxy.topologyKey)],
    ...(proxy.excluded.length > 0 && { excluded: proxy.excluded }),
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

function worldChange(stream: string, proxy: ProxyView | undefined): WorldChange {
  if (proxy === undefined) return { stream };
  return 'error' in proxy ? { stream, error: proxy.error } : { stream, world: worldOf(proxy) };
}
