import type { ConfigMap, Node, Service } from '../../api/core.ts';
import { objectKey, parseObjectKey, refOf, sourceOfKey } from '../../api/object.ts';
import type { Problem } from '../../api/problem.ts';
import type { Collection, Emit, Graph, Index, Reader } from '../../cache/graph.ts';
import { isAddress } from '../../model/address.ts';
import { canonicalCidr } from '../../model/cidr.ts';
import { networkLabel } from '../../model/locality.ts';
import type { MeshNetworks } from '../../model/mesh-networks.ts';
import { type NetworkGateways, chooseGateways, sortGateways, weightScale } from '../../model/network.ts';
import { type GatewayPlaces, gatewaysOfService, mayBeGateway } from '../../reconcilers/core/network-gateway.ts';
import { reconcileMeshNetworks } from '../../reconcilers/mesh-config/mesh-networks.ts';
import { MESH_CONFIG } from '../../api/mesh-config-names.ts';
import { type Inputs, ONE, optionsOf } from '../inputs.ts';
import { wholeOf } from '../whole.ts';

export interface Networks {
  readonly parsed: Collection<ParsedNetworks>;
  /** The network of an address in a cluster, unless its Pod names one; empty: not known. */
  of(read: Reader, cluster: string, address: string): string;
  /** The network of all addresses in a cluster; empty: not known. */
  ofCluster(read: Reader, cluster: string): string;
  /** By network. */
  readonly gateways: Collection<NetworkGateways>;
  /** Under {@link ONE}: see `weightScale`. Absent: there are no gateways. */
  readonly scale: Collection<number>;
  /** Names of gateways. */
  readonly wantedHosts: Collection<true>;
}

interface ParsedNetworks {
  readonly networks: MeshNetworks;
  readonly problems: readonly Problem[];
}

/**
 * Networks and the gateways between them. An endpoint depends only on what names its own network:
 * that of a Pod, or of an address that only a slice has, is known by its cluster and address; entries, which may be for
 * anything anywhere, say themselves if they are behind a gateway.
 */
export function declareNetworks(graph: Graph, inputs: Inputs): Networks {
  const parsed = declareParsed(graph, inputs);
  const labelled = graph.derive(
    'networks of clusters by label',
    inputs.objects.Namespace,
    (key, { metadata }, read, emit: Emit<string>) => {
      if (metadata.name !== optionsOf(read, inputs).rootNamespace) return;
      const network = metadata.labels?.[networkLabel] ?? '';
      if (network !== '') emit(sourceOfKey(key), network);
    },
  );
  const registered = graph.derive('networks of clusters', parsed, (_, { networks }, __, emit: Emit<string>) => {
    for (const [cluster, network] of networks.registries) emit(cluster, network);
  });
  const ranges = graph.derive('networks of ranges', parsed, (_, { networks }, __, emit: Emit<string>) => {
    for (const [range, network] of networks.ranges) emit(range, network);
  });
  // Apart from the ranges: an address looks up only those that could contain it.
  const lengths = graph.derive('lengths of ranges', parsed, (key, { networks }, _, emit: Emit<RangeLengths>) => {
    if (networks.ranges.size > 0) emit(key, lengthsOf([...networks.ranges.keys()]));
  });
  const gateways = declareGatewaysOfNetworks(graph, inputs, parsed);
  const ofCluster = (read: Reader, cluster: string): string =>
    read.get(labelled, cluster) ?? read.get(registered, cluster) ?? '';
  return {
    parsed,
    ofCluster,
    of(read, cluster, address) {
      const whole = ofCluster(read, cluster);
      if (whole !== '') return whole;
      const known = read.get(lengths, ONE);
      if (known === undefined || !isAddress(address)) return '';
      for (const length of known[address.includes(':') ? 'v6' : 'v4']) {
        const found = read.get(ranges, canonicalCidr(`${address}/${length}`));
        if (found !== undefined) return found;
      }
      return '';
    },
    ...gateways,
  };
}

/** Longest first. */
interface RangeLengths {
  readonly v4: readonly number[];
  readonly v6: readonly number[];
}

function lengthsOf(ranges: readonly string[]): RangeLengths {
  const of = (isV6: boolean): number[] => {
    const all = ranges.filter((range) => range.includes(':') === isV6).map((range) => Number(range.split('/')[1]));
    return [...new Set(all)].sort((a, b) => b - a);
  };
  return { v4: of(false), v6: of(true) };
}

function declareParsed(graph: Graph, inputs: Inputs): Collection<ParsedNetworks> {
  return graph.derive('meshNetworks', inputs.options, (_, options, read, emit: Emit<ParsedNetworks>) => {
    const key = objectKey(options.clusterId, options.rootNamespace, MESH_CONFIG);
    // One that is deleted stays in force, as the mesh config in it does, which says so.
    const map = (read.get(inputs.objects.ConfigMap, key) as ConfigMap | undefined) ?? read.get(inputs.lastGood, key);
    const text = map?.data?.['meshNetworks'];
    if (map === undefined || text === undefined) return;
    const newest = reconcileMeshNetworks(text, options.rootNamespace);
    const inMap = newest.problems.map(({ field, ...problem }): Problem => ({
      ...problem,
      object: refOf(options.clusterId, map),
      field: field === '' ? 'data.meshNetworks' : `data.meshNetworks.${field}`,
    }));
    if (inMap.every(({ reason }) => reason !== 'Invalid')) {
      emit(ONE, { networks: newest.networks, problems: inMap });
      return;
    }
    // A typo must not send requests to addresses of another network.
    const good = read.get(inputs.lastGood, key);
    const message =
      good === undefined
        ? 'Invalid parts are left out.'
        : 'This version is not used; the last valid one stays in force.';
    emit(ONE, {
      networks:
        good === undefined
          ? newest.networks
          : reconcileMeshNetworks(good.data?.['meshNetworks'], options.rootNamespace).networks,
      problems: [
        ...inMap,
        { object: refOf(options.clusterId, map), field: 'data.meshNetworks', reason: 'Invalid', message },
      ],
    });
  });
}

function declareGatewaysOfNetworks(
  graph: Graph,
  inputs: Inputs,
  parsed: Collection<ParsedNetworks>,
): Pick<Networks, 'gateways' | 'scale' | 'wantedHosts'> {
  const named = graph.derive('gateway services', parsed, (_, { networks }, __, emit: Emit<readonly NamedGateway[]>) => {
    const services = networks.gateways.flatMap(({ network, port, at }) =>
      at.kind === 'service' ? at.clusters.map((cluster) => ({ key: `${cluster}/${at.host}`, network, port })) : [],
    );
    for (const [key, found] of Map.groupBy(services, (each) => each.key))
      emit(
        key,
        found.map(({ network, port }) => ({ network, port })),
      );
  });
  const nodes = graph.derive('external nodes', inputs.objects.Node, (key, object, _, emit: Emit<ExternalNode>) => {
    const { status, metadata } = object as Node;
    const addresses = (status?.addresses ?? []).filter(({ type }) => type === 'ExternalIP').map((each) => each.address);
    if (addresses.length > 0) emit(key, { labels: metadata.labels ?? {}, addresses });
  });
  const nodesOf = graph.index('external nodes by cluster', nodes, (key) => [sourceOfKey(key)]);
  const ofServices = graph.derive(
    'gateways of Services',
    inputs.objects.Service,
    (key, object, read, emit: Emit<GatewayPlaces>) => {
      const service = object as Service;
      if (!mayBeGateway(service)) return;
      const cluster = sourceOfKey(key);
      const { name, namespace = '' } = service.metadata;
      const host = `${name}.${namespace}.svc.${optionsOf(read, inputs).domainSuffix}`;
      const found = gatewaysOfService(service, {
        cluster,
        named: () => read.get(named, `${cluster}/${host}`) ?? [],
        nodes: () => read.group(nodesOf, cluster).map(({ value }) => value),
      });
      for (const [i, each] of found.entries()) emit(`${key}#${i}`, each);
    },
  );
  const configured = graph.derive('configured gateways', parsed, (_, { networks }, __, emit: Emit<GatewayPlaces>) => {
    for (const [i, { network, port, at }] of networks.gateways.entries())
      emit(`#${i}`, { network, cluster: '', port, addresses: at.kind === 'address' ? [at.address] : [] });
  });
  const both = [ofServices, configured];
  const byNetwork: Index<GatewayPlaces> = graph.index('gateways by network', both, (_, { network }) => [network]);
  const gateways = graph.derive('networkGateways', byNetwork, (network, members, read, emit: Emit<NetworkGateways>) => {
    const unresolved = new Set<string>();
    const resolve = (address: string): readonly string[] => {
      if (isAddress(address)) return [address];
      const found = read.get(inputs.gatewayAddresses, address)?.addresses ?? [];
      if (found.length === 0) unresolved.add(address);
      return found;
    };
    const all = members.flatMap(({ key, value: { cluster, port, addresses } }) => {
      const namespace = cluster === '' ? '' : parseObjectKey(key).namespace;
      return addresses.flatMap(resolve).map((address) => ({ network, cluster, address, port, namespace }));
    });
    const kept = chooseGateways(all);
    const distinct = sortGateways(all.map(({ namespace: _, ...gateway }) => gateway));
    emit(network, {
      gateways: kept,
      unresolved: [...unresolved].sort(),
      ignored: distinct.length - kept.length,
    });
  });
  const scale = graph.derive(
    'scale of weights',
    wholeOf(graph, 'all network gateways', gateways),
    (_, members, __, emit: Emit<number>) => emit(ONE, weightScale(members.map(({ value }) => value))),
  );
  const wantedHosts = graph.derive(
    'wanted hosts of gateways',
    graph.index('hosts of gateways', both, (_, { addresses }) => addresses.filter((address) => !isAddress(address))),
    (host, _, __, emit: Emit<true>) => emit(host, true),
  );
  return { gateways, scale, wantedHosts };
}

interface NamedGateway {
  readonly network: string;
  readonly port: number;
}

interface ExternalNode {
  readonly labels: Readonly<Record<string, string>>;
  readonly addresses: readonly string[];
}
