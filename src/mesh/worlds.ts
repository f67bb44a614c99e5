import type { World } from '../ads/publication.ts';
import type { Collection, Emit, Graph } from '../cache/graph.ts';
import { listenerName } from '../model/listener.ts';
import { gatewayList } from './gateway-router.ts';
import { inboundList } from './inbounds.ts';
import { qualifiers } from './members.ts';
import type { AcceptedProxy, Proxies } from './proxies.ts';
import type { WorkloadClasses } from './workload-classes.ts';

/** What a proxy can reach, or why it is refused. */
export type ProxyWorld = World | { readonly error: string };

/** By stream. */
export type Worlds = Collection<ProxyWorld>;

export function declareWorlds(graph: Graph, proxies: Proxies, { headlessPorts }: WorkloadClasses): Worlds {
  return graph.derive('worlds', proxies.resolved, (key, view, read, emit: Emit<ProxyWorld>) => {
    emit(key, 'error' in view ? view : worldOf(view, read.get(headlessPorts, view.workload.key) ?? []));
  });
}

function worldOf(
  { scope, workload, router, topology, topologyKey, addresses }: AcceptedProxy,
  headlessPorts: readonly number[],
): World {
  // Listeners of headless services have the addresses of Pods. That of a Pod itself would catch what it sends to itself.
  const excluded = addresses.flatMap((address) =>
    headlessPorts.map((port) => listenerName({ bind: { addresses: [address] }, port })),
  );
  return {
    roots: [scope.key, router === undefined ? inboundList(workload.key) : gatewayList(router.key)],
    qualifiers: [qualifiers.locality(topology.locality), qualifiers.topology(topologyKey)],
    ...(excluded.length > 0 && { excluded: [...new Set(excluded)].sort() }),
  };
}
