import { distinctRefs } from '../api/object.ts';
import type { Emit, Graph } from '../cache/graph.ts';
import type { Encoder } from '../envoy/encoder.ts';
import { buildInboundClusters } from '../envoy/inbound-clusters.ts';
import { buildInbound } from '../envoy/inbound-listeners.ts';
import { type Source, wholeObjects } from '../model/provenance.ts';
import { inboundCluster } from '../model/service.ts';
import { type Member, type Members, emitMember, sameMember } from './members.ts';
import type { Inbound, Proxies } from './proxies.ts';
import { type Settings, settingOf } from './settings.ts';

export interface InboundDeps {
  readonly settings: Settings;
  readonly proxies: Proxies;
  readonly encoder: Encoder;
}

/** What a workload serves itself. */
export function declareInbounds(graph: Graph, deps: InboundDeps): readonly Members[] {
  const inbounds = graph.derive('inbounds', deps.proxies.byInbound, (key, [first], _, emit: Emit<Inbound>) => {
    if (first !== undefined && 'inbound' in first.value && first.value.inbound !== undefined)
      emit(key, first.value.inbound);
  });
  return [
    graph.derive(
      'inboundResources',
      inbounds,
      (key, inbound, read, emit: Emit<Member>) => {
        const list = inboundList(key);
        const { traits, targets, addresses } = inbound;
        const listenerSettings = settingOf(read, deps.settings.listeners);
        const clusterSettings = settingOf(read, deps.settings.clusters);
        const { encoder } = deps;
        const shared = { targets, traits, addresses };
        const from = (clusters: readonly string[]): readonly Source[] => {
          const served = targets.filter(({ port }) => clusters.includes(inboundCluster(port)));
          return wholeObjects(distinctRefs(served.flatMap(({ origins }) => origins)));
        };
        for (const cluster of buildInboundClusters({ ...shared, settings: clusterSettings }))
          emitMember(
            emit,
            list,
            encoder.cluster(cluster, () => from([cluster.name ?? ''])),
          );
        for (const { listener, clusters } of buildInbound({ ...shared, settings: listenerSettings }))
          emitMember(
            emit,
            list,
            encoder.listener(listener, clusters, () => from(clusters)),
          );
      },
      sameMember,
    ),
  ];
}

export const inboundList = (key: string): string => `inbound|${key}`;
