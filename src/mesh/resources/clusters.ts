import type { HasProblems, Problem } from '../../api/problem.ts';
import type { Collection, Emit, Graph, Reader } from '../../cache/graph.ts';
import { directionOf } from '../../model/patch.ts';
import { failedPatches, patchingAt } from './patching.ts';
import { buildCluster } from '../../envoy/cluster/clusters.ts';
import type { TopologyNeeds } from '../../model/locality.ts';
import { type Source, wholeObjects } from '../../model/provenance.ts';
import { isDns } from '../../model/service.ts';
import { type ClusterTraits, clusterTraits, clusterTraitsKey } from '../../model/traits.ts';
import { settleClusters } from '../../settle/clusters.ts';
import { dnsTopologyNeeds } from '../../settle/locality-plan.ts';
import { declareAssignments } from './assignments.ts';
import { NO_ENDPOINTS } from '../objects/endpoint-groups.ts';
import { type Member, type Members, emitMember, sameMember } from './members.ts';
import { type Topologies, declareTopologies, placesOf } from './places.ts';
import {
  type ClusterDeps,
  type Demand,
  type ResourceSet,
  at,
  declareDemands,
  portOfKey,
  portsOf,
  ruledPortOf,
  sameSet,
} from './resource-sets.ts';
import { settingOf } from '../settings.ts';
import type { ServiceView } from '../clients/views.ts';

/**
 * Outbound clusters and their assignments. Rules may have hundreds of subsets, for every port: each port is a separate
 * step.
 *
 * @param forwarded what routers forward to.
 */
export function declareClusters(
  graph: Graph,
  deps: ClusterDeps,
  forwarded: Collection<ServiceView>,
): { readonly members: readonly Members[]; readonly problems: readonly Collection<HasProblems>[] } {
  const topologies = declareTopologies(graph, deps.proxies);
  const sources = [deps.views.serviceViews, deps.destinationViews, forwarded];
  const clusterSets = graph.derive(
    'clusterSets',
    declareDemands(graph, 'cluster set', sources, {
      keyOf: clusterSetKey,
      clientOf: ({ view, forwards = false, patches }) => ({
        traits: clusterTraits(view.traits),
        forwards,
        ...(patches !== undefined && { patches }),
      }),
    }),
    (key, demand, read, emit: Emit<ResourceSet>) => {
      const set = clusterSet(demand, read, deps, topologies);
      if (set !== undefined) emit(key, set);
    },
    sameSet,
  );
  const assignments = declareAssignments(graph, deps, sources, topologies);
  const clustersFor = (view: ServiceView, port: string, read: Reader): readonly ResourceSet[] => {
    const set = read.get(clusterSets, clusterSetKey(view, port));
    return set === undefined ? [] : [set];
  };
  const byPort = sources.map((source) =>
    graph.index(`ports of ${source.name}`, source, (key, view) => portsOf(view).map((port) => `${key}|${port}`)),
  );
  const membersOf = (
    name: string,
    setsFor: (view: ServiceView, port: string, read: Reader) => readonly ResourceSet[],
  ): readonly Members[] =>
    byPort.map((source) =>
      graph.derive(
        `${name} of ${source.name}`,
        source,
        (key, [first], read, emit: Emit<Member>) => {
          const view = first.value;
          for (const { resources } of setsFor(view, portOfKey(key), read))
            for (const entry of resources) emitMember(emit, view.list, entry.resource, entry.qualifier);
        },
        sameMember,
      ),
    );
  return {
    members: [...membersOf('clusters', clustersFor), ...membersOf('assignments', assignments.of)],
    problems:
      deps.patches === undefined ? assignments.problems : [...assignments.problems, failedPatches(graph, clusterSets)],
  };
}

function clusterSetKey({ service, rule, view, forwards, patches }: ServiceView, port: string): string {
  const key = [service, rule, clusterTraitsKey(view.traits), ...(forwards ? ['forwards'] : []), port].join('|');
  return patches === undefined ? key : patchedKey(key, patches);
}

/** The port stays last: see {@link portOfKey}. */
const patchedKey = (key: string, patches: string): string => `patches=${patches}|${key}`;

interface ClusterClient {
  readonly traits: ClusterTraits;
  readonly forwards: boolean;
  /** Key of a {@link PatchSet}; absent: none. */
  readonly patches?: string;
}

const noNeeds: TopologyNeeds = { locality: false, nodeName: false, cluster: false, labels: [] };

function clusterSet(
  demand: Demand<ClusterClient>,
  read: Reader,
  deps: ClusterDeps,
  topologies: Topologies,
): ResourceSet | undefined {
  const found = ruledPortOf(demand, read, deps);
  if (found === undefined) return undefined;
  const { service, port, rule } = found;
  const settings = settingOf(read, deps.settings.clusters);
  const summary = read.get(deps.endpoints.summaries, demand.service) ?? NO_ENDPOINTS;
  const from = (): readonly Source[] => wholeObjects([...service.origins, ...(rule?.origins ?? [])]);
  // The cluster itself contains the endpoints of a DNS service.
  const needs = isDns(service) ? dnsTopologyNeeds(service, port, rule, settings) : noNeeds;
  const { traits, patches } = demand.client;
  const direction = directionOf(traits);
  const failed: Problem[] = [];
  const resources = placesOf(read, topologies, needs).flatMap((place) =>
    settleClusters({
      service,
      port,
      ...(rule && { rule }),
      ...demand.client,
      settings,
      summary,
      peersAcceptMtls: deps.peerModes.acceptsMtls(read, service.namespace),
      topology: place.topology,
    }).flatMap((settled) => {
      const subset = settled.family === 'envoy' ? settled.subset : undefined;
      const where = { host: service.host, port: port.number, ...(subset !== undefined && { subset }) };
      const patching =
        patches === undefined
          ? undefined
          : patchingAt(read, deps.patches, patches, { type: 'cluster', direction, ...where });
      const resource = deps.encoder.cluster(buildCluster(settled, traits, settings), from, patching);
      if (patching !== undefined) failed.push(...patching.problems);
      return at(place, resource);
    }),
  );
  return { resources, ...(failed.length > 0 && { failed }) };
}
