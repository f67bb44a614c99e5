import type { KubernetesObject } from '../api/object.ts';
import { type EndpointList, servicesOf } from '../mesh/objects/endpoint-list.ts';
import type { Endpoint } from '../model/endpoint.ts';
import type { MeshService, Protocol, Resolution } from '../model/service.ts';

/** A host as `/debug/registryz` of Istio shows it. `object`: the first that claims it. */
export function registryEntry(service: MeshService, clusterId: string, object: KubernetesObject | undefined): object {
  const { host, namespace, name, registry, ports, addresses, autoAddresses, exportTo, selector, aliases } = service;
  const inClusters = { ...service.addressesIn, [service.remote ?? clusterId]: addresses };
  return {
    Attributes: {
      ServiceRegistry: registry,
      Name: name,
      Namespace: namespace,
      Labels: object?.metadata.labels ?? null,
      ExportTo: Object.fromEntries(exportTo.map((each) => [each, {}])),
      LabelSelectors: selector ?? null,
      Aliases: aliases.map((alias) => ({ Hostname: alias.host, Namespace: alias.namespace })),
      ExternalName: service.externalName ?? '',
      NodeLocal: service.nodeLocal,
      ObjectName: object?.metadata.name ?? name,
    },
    ports: ports.map((port) => ({ name: port.name, port: port.number, protocol: protocolOf(port.protocol) })),
    serviceAccounts: service.subjectAltNames,
    creationTime: service.createdAt === '' ? NO_TIME : service.createdAt,
    hostname: host,
    clusterVIPs: { Addresses: registry === 'Kubernetes' ? inClusters : null },
    defaultAddress: addresses[0] ?? '0.0.0.0',
    autoAllocatedIPv4Address: autoAddresses.find((address) => !address.includes(':')),
    autoAllocatedIPv6Address: autoAddresses.find((address) => address.includes(':')),
    Resolution: resolutions[service.resolution],
    MeshExternal: service.meshExternal,
    ResourceVersion: '',
  };
}

/** By host and namespace: the endpoints as `/debug/endpointShardz` of Istio shows them. */
export function* endpointShards(
  services: Iterable<MeshService>,
  lists: Iterable<EndpointList>,
): Generator<[string, object]> {
  const byService = new Map<string, EndpointList[]>();
  for (const list of lists)
    for (const service of servicesOf(list)) byService.set(service, [...(byService.get(service) ?? []), list]);
  const byHost = Map.groupBy(services, ({ host }) => host);
  for (const [host, claims] of byHost) {
    const namespaces = claims.flatMap(({ namespace, registry }): [string, object][] => {
      const endpoints = (byService.get(`${namespace}/${host}`) ?? []).flatMap((list) => list.endpoints);
      if (endpoints.length === 0) return [];
      const identities = new Set(endpoints.map(({ identity }) => identity).filter((identity) => identity !== ''));
      return [
        [
          namespace,
          {
            Shards: Object.fromEntries(
              Array.from(
                Map.groupBy(endpoints, ({ cluster }) => cluster),
                ([cluster, its]) => [`${registry}/${cluster}`, its.map(endpointEntry)],
              ),
            ),
            ServiceAccounts: Object.fromEntries([...identities].sort().map((identity) => [identity, {}])),
          },
        ],
      ];
    });
    if (namespaces.length > 0) yield [host, Object.fromEntries(namespaces)];
  }
}

function endpointEntry(endpoint: Endpoint): object {
  return {
    Labels: endpoint.labels,
    Addresses: endpoint.addresses,
    ServicePortName: endpoint.portName,
    LegacyClusterPortKey: endpoint.servicePort ?? 0,
    ServiceAccount: endpoint.identity,
    Network: endpoint.network,
    Locality: { Label: endpoint.locality, ClusterID: endpoint.cluster },
    EndpointPort: endpoint.port,
    LbWeight: endpoint.weight ?? 0,
    TLSMode: endpoint.tlsMode,
    Namespace: endpoint.namespace,
    WorkloadName: endpoint.workload,
    HealthStatus: healths[endpoint.health ?? 'Healthy'],
    NodeName: endpoint.nodeName,
  };
}

/** What Go prints for no time. */
const NO_TIME = '0001-01-01T00:00:00Z';

/** Numbers of Istio's constants. */
const resolutions: Readonly<Record<Resolution, number>> = {
  ClientSideLB: 0,
  DNSLB: 1,
  Passthrough: 2,
  DNSRoundRobinLB: 3,
  Alias: 4,
  DynamicDNS: 5,
};

const healths = { Healthy: 1, UnHealthy: 2, Draining: 3, Terminating: 4 } as const;

function protocolOf(protocol: Protocol): string {
  if (protocol === 'GRPCWeb') return 'GRPC-Web';
  return protocol === 'Unsupported' ? 'UnsupportedProtocol' : protocol;
}
