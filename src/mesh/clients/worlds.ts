import type { World } from '../../ads/store/publication.ts';
import type { Collection, Emit, Graph } from '../../cache/graph.ts';
import { listenerName } from '../../model/listener.ts';
import { sightKey } from '../../model/locality.ts';
import { viewTraitsKey } from '../../model/traits.ts';
import type { Inputs } from '../inputs.ts';
import { SHARDS } from '../objects/services.ts';
import { HOST, NAME_TABLE } from '../../model/named-host.ts';
import {
  gatewayList,
  grpcServerList,
  inboundList,
  namesList,
  qualifiers,
  secretList,
  tableList,
  trustList,
} from '../lists.ts';
import type { AcceptedProxy, Proxies } from './proxies.ts';
import type { WorkloadClasses } from './workload-classes.ts';

/** What a proxy can reach, or why it is rejected. */
export type ProxyWorld = World | { readonly error: string };

/** By stream. */
export type Worlds = Collection<ProxyWorld>;

export interface WorldDeps {
  readonly inputs: Inputs;
  readonly proxies: Proxies;
  readonly workloadClasses: WorkloadClasses;
}

/** A proxy has no world until its views are complete. */
export function declareWorlds(graph: Graph, { inputs, proxies, workloadClasses }: WorldDeps): Worlds {
  return graph.derive('worlds', proxies.resolved, (key, proxy, read, emit: Emit<ProxyWorld>) => {
    if ('error' in proxy) emit(key, proxy);
    else if ((read.get(inputs.shardsMade, viewTraitsKey(proxy.scope.traits)) ?? SHARDS) >= SHARDS) {
      const asked = askedLists(proxy.scope.key, read.get(inputs.asked, key)?.typeUrls ?? []);
      const workload = proxy.workload.key;
      const isServer =
        proxy.scope.traits.family === 'grpc' && (read.get(workloadClasses.services, workload) ?? []).length > 0;
      const own = isServer ? [grpcServerList(key)] : [];
      emit(key, worldOf(proxy, [...own, ...asked], read.get(workloadClasses.headlessPorts, workload) ?? []));
    }
  });
}

function askedLists(scope: string, typeUrls: readonly string[]): string[] {
  return [
    ...(typeUrls.includes(NAME_TABLE) ? [tableList(scope)] : []),
    ...(typeUrls.includes(HOST) ? [namesList(scope)] : []),
  ];
}

function worldOf(
  { scope, workload, router, topology, topologyKey, addresses, account }: AcceptedProxy,
  own: readonly string[],
  headlessPorts: readonly number[],
): World {
  // Listeners of headless services have Pod addresses. A Pod's own address would catch what it sends to itself.
  const excluded = addresses.flatMap((address) =>
    headlessPorts.map((port) => listenerName({ bind: { addresses: [address] }, port })),
  );
  return {
    roots: [
      scope.key,
      router === undefined ? inboundList(workload.key) : gatewayList(router.key),
      ...(account === '' ? [] : [secretList(account)]),
      trustList,
      ...own,
    ],
    qualifiers: [
      qualifiers.locality(topology.locality),
      qualifiers.cluster(topology.cluster),
      qualifiers.topology(topologyKey),
      qualifiers.sight(sightKey(topology)),
    ],
    ...(excluded.length > 0 && { excluded: [...new Set(excluded)].sort() }),
  };
}
