import type { Collection, Emit, Graph, Index, Reader } from '../../cache/graph.ts';
import { type TopologyNeeds, narrowTopology, sightKey, sightOf } from '../../model/locality.ts';
import { spreadHash } from '../../model/hash.ts';
import { type Topology, nowhere } from '../../model/topology.ts';
import { qualifiers } from '../lists.ts';
import type { Proxies } from '../clients/proxies.ts';
import { ONE } from '../inputs.ts';
import { allOf, wholeOf } from '../whole.ts';

export interface Topologies {
  /** Group `all`: every locality of a connected proxy. */
  readonly localities: Index<Place>;
  /** Group `all`: every cluster of a connected proxy. */
  readonly clusters: Index<Place>;
  readonly full: Index<{ readonly key: string; readonly topology: Topology }>;
  /** Group `all`: every combination of a network, a cluster and a locality of a connected proxy. */
  readonly sights: Index<Sight>;
  /** Under {@link ONE}, if some proxy requests certain networks only. */
  readonly requested: Collection<true>;
}

interface Sight {
  readonly key: string;
  readonly topology: Topology;
}

/** Demand is data: assignments are built for the places where proxies are. */
export function declareTopologies(graph: Graph, proxies: Proxies): Topologies {
  const full = graph.derive(
    'topologies',
    proxies.byTopology,
    (key, members, _, emit: Emit<{ key: string; topology: Topology }>) => {
      const { value } = members[0];
      if ('topology' in value) emit(key, { key, topology: value.topology });
    },
  );
  const localities = graph.derive(
    'localities',
    graph.index('topologies by locality', full, (_, { topology }) => [topology.locality]),
    (locality, _, __, emit: Emit<Place>) => {
      const topology = { ...nowhere, locality };
      emit(locality, { topology, qualifiers: [qualifiers.locality(locality)], hash: spreadHash(locality) });
    },
  );
  const clusters = graph.derive(
    'clusters of proxies',
    graph.index('topologies by cluster', full, (_, { topology }) => [topology.cluster]),
    (cluster, _, __, emit: Emit<Place>) => {
      const topology = { ...nowhere, cluster };
      emit(cluster, { topology, qualifiers: [qualifiers.cluster(cluster)], hash: spreadHash(cluster) });
    },
  );
  const sights = graph.derive(
    'sights',
    graph.index('topologies by sight', full, (_, { topology }) => [sightKey(topology)]),
    (key, [first], _, emit: Emit<Sight>) => {
      const { topology } = first.value;
      const { locality, cluster } = topology;
      emit(key, { key, topology: { ...nowhere, ...sightOf(topology), locality, cluster } });
    },
  );
  const requested = graph.derive(
    'requested networks',
    graph.index('sights of some networks', sights, (_, { topology }) =>
      topology.requestedNetworks === undefined ? [] : [ONE],
    ),
    (key, _, __, emit: Emit<true>) => emit(key, true),
  );
  return {
    sights: wholeOf(graph, 'all sights', sights),
    requested,
    localities: wholeOf(graph, 'all localities', localities),
    clusters: wholeOf(graph, 'all clusters of proxies', clusters),
    full: wholeOf(graph, 'all topologies', full),
  };
}

export interface Place {
  readonly topology: Topology;
  /** Qualifiers of the proxies there; a single empty one for something that looks the same from everywhere. */
  readonly qualifiers: readonly string[];
  /** Hash of the topology. */
  readonly hash: number;
}

export interface Places {
  /** Undefined: there are too many for all that compare the same labels. */
  of(read: Reader, needs: TopologyNeeds): readonly Place[] | undefined;
}

/**
 * Maximum number of assignments for places that differ in labels, over all services that compare the same: a thousand
 * bytes each. One rule may be for many services.
 */
export const mostAssignmentsOfLabels = 100_000;

/** Places by the properties compared there. Those that differ in labels are computed once for all that need them. */
export function declarePlaces(graph: Graph, topologies: Topologies, needs: Collection<TopologyNeeds>): Places {
  const byLabels = graph.derive(
    'places',
    graph.index('needs of places', needs, (_, value) => [needsKey(value)]),
    (key, members, read, emit: Emit<readonly Place[]>) => {
      const places = placesOf(read, topologies, members[0].value);
      if (countQualifiers(places) * members.length <= mostAssignmentsOfLabels) emit(key, places);
    },
  );
  return {
    of: (read, wanted) =>
      wanted.labels.length === 0 ? placesOf(read, topologies, wanted) : read.get(byLabels, needsKey(wanted)),
  };
}

export function countQualifiers(places: readonly Place[]): number {
  let sum = 0;
  for (const { qualifiers } of places) sum += qualifiers.length;
  return sum;
}

export const needsKey = ({ locality, nodeName, cluster, labels, network = false }: TopologyNeeds): string =>
  JSON.stringify([locality, nodeName, cluster, labels, network]);

/** The places from which something looks different, each once, however many proxies are there. */
export function placesOf(read: Reader, topologies: Topologies, needs: TopologyNeeds): readonly Place[] {
  if (needs.nodeName || needs.labels.length > 0)
    return narrowed(allOf(read, topologies.full), needs, qualifiers.topology);
  // There are fewer of these than of places on nodes.
  if (needs.network === true || (needs.cluster && needs.locality))
    return narrowed(allOf(read, topologies.sights), needs, qualifiers.sight);
  if (needs.cluster) return allOf(read, topologies.clusters);
  if (!needs.locality) return [everywhere];
  return allOf(read, topologies.localities);
}

function narrowed(
  all: readonly { readonly key: string; readonly topology: Topology }[],
  needs: TopologyNeeds,
  qualifierOf: (key: string) => string,
): readonly Place[] {
  const places = new Map<string, Place & { readonly qualifiers: string[] }>();
  for (const value of all) {
    const topology = narrowTopology(value.topology, needs);
    const id = JSON.stringify(topology);
    const place = places.get(id) ?? { topology, qualifiers: [], hash: spreadHash(id) };
    places.set(id, place);
    place.qualifiers.push(qualifierOf(value.key));
  }
  return [...places.values()];
}

/** The same for all proxies. */
export const everywhere: Place = { topology: nowhere, qualifiers: [''], hash: 0 };
