import type { Endpoints, EndpointSlice } from '../../api/core.ts';
import { type KubernetesObject, type ObjectRef, objectKey, refOf, sourceOfKey } from '../../api/object.ts';
import type { Problem } from '../../api/problem.ts';
import type { Collection, Emit, Graph, Index, Reader } from '../../cache/graph.ts';
import { clusterOfSource, isClusterMesh } from '../../model/cluster-mesh.ts';
import type { Endpoint, EndpointSummary, Workload } from '../../model/endpoint.ts';
import { clusterSetDomain, isClusterSetHost } from '../../model/exported-service.ts';
import { type MeshService, exportsOf, isDns, isHeadless, protocolClass } from '../../model/service.ts';
import { type EncodedEndpoint, encodeEndpoints } from '../../envoy/endpoint/assignment.ts';
import {
  type EndpointContext,
  copiedFrom,
  mostEndpoints,
  reconcileEndpoints,
  reconcileEndpointSlice,
  serviceOfSlice,
} from '../../reconcilers/core/endpoint-slice.ts';
import { entryEndpoints, selectedEntries } from '../../reconcilers/service-entry/endpoints.ts';
import { mostListeners } from '../../reconcilers/service-entry/host-claims.ts';
import { summarize } from '../../reconcilers/core/endpoint-summary.ts';
import { type Inputs, ONE, optionsOf, siblingKey } from '../inputs.ts';
import { type HeldEndpoints, declareHeldEndpoints, reconcileHeld } from './held-endpoints.ts';
import { hasMulticlusterServices } from './exports.ts';
import type { Networks } from './networks.ts';
import type { PeerModesOf } from './peer-modes.ts';
import type { Services } from './services.ts';
import { type Workloads, selectedWorkloads } from './workloads.ts';

/** Some endpoints of one service, from one object. */
export interface EndpointList {
  /** `namespace/host` */
  readonly service: string;
  /** The same of the multi-cluster service of which they are endpoints, too. */
  readonly exportedAs?: string;
  readonly endpoints: readonly Endpoint[];
  /** The slice; none if the endpoints are defined in the service itself. */
  readonly origins: readonly ObjectRef[];
  readonly problems: readonly Problem[];
}

interface EncodedList extends Omit<EndpointList, 'endpoints' | 'problems'> {
  readonly endpoints: readonly EncodedEndpoint[];
}

/** All endpoints of a service by port name, each with its encoded bytes. */
export interface EndpointGroup {
  readonly byPort: ReadonlyMap<string, readonly EncodedEndpoint[]>;
  /** The slices that contain them. */
  readonly origins: readonly ObjectRef[];
}

export interface ServiceEndpoints {
  readonly lists: readonly Collection<EndpointList>[];
  /** By `namespace/host`; absent for services without endpoints. */
  readonly groups: Collection<EndpointGroup>;
  readonly summaries: Collection<EndpointSummary>;
  /** The lists of a service; by `namespace/host`. */
  readonly byService: Index<EndpointList>;
  /** Those of them that are slices. */
  readonly slicesByService: Index<EndpointList>;
  /** Endpoints that are served although no slice lists them. */
  readonly held: HeldEndpoints;
}

export interface EndpointDeps {
  readonly services: Services;
  readonly workloads: Workloads;
  readonly peerModes: PeerModesOf;
  readonly networks: Networks;
}

export const NO_ENDPOINTS: EndpointSummary = {
  identities: [],
  plaintext: true,
  addresses: [],
  dnsEndpoints: [],
};

export function declareEndpoints(
  graph: Graph,
  inputs: Inputs,
  { services, workloads, peerModes, networks }: EndpointDeps,
): ServiceEndpoints {
  const { objects } = inputs;
  const hostOf = (read: Reader, namespace: string, name: string) =>
    `${namespace}/${name}.${namespace}.svc.${optionsOf(read, inputs).domainSuffix}`;
  const asExported = (
    read: Reader,
    source: string,
    namespace: string,
    name: string,
  ): Pick<EndpointList, 'exportedAs'> =>
    hasMulticlusterServices(read, inputs) &&
    read.get(services.exports.marks, objectKey(source, namespace, name)) === true
      ? { exportedAs: `${namespace}/${name}.${namespace}.svc.${clusterSetDomain}` }
      : {};
  // Kept apart from the service: most changes to a service do not affect its slices.
  const persistentSessions = graph.index('services with persistent sessions', services.services, (key, service) =>
    service.persistentSession ? [key] : [],
  );
  const globalServices = graph.index('global services', services.services, (key, { affinity }) =>
    affinity === undefined ? [] : [key],
  );
  const contextOf = (
    read: Reader,
    key: string,
    service: string,
    cluster = clusterOfSource(sourceOfKey(key)),
    viaClusterMesh = false,
  ): EndpointContext => ({
    ...{ cluster, viaClusterMesh },
    persistentSession: read.group(persistentSessions, service).length > 0,
    pod: (ns, name) => read.get(workloads.pods, siblingKey(key, ns, name)),
    podAt(ns, address) {
      const pods = read
        .group(workloads.podsByAddress, address)
        .filter(({ value }) => value.ready && value.namespace === ns && value.cluster === cluster);
      // An API server knows more of a Pod than a ClusterMesh does.
      const known = pods.find((pod) => !isClusterMesh(sourceOfKey(pod.key)));
      return (known ?? (viaClusterMesh ? pods[0] : undefined))?.value;
    },
    network: (address) => networks.of(read, cluster, address),
  });

  const slices = graph.derive(
    'sliceEndpoints',
    objects.EndpointSlice,
    (key, object, read, emit: Emit<EndpointList>) => {
      const slice = object as EndpointSlice;
      const name = serviceOfSlice(slice);
      if (name === undefined) return;
      const { namespace = '' } = slice.metadata;
      const service = hostOf(read, namespace, name);
      const source = sourceOfKey(key);
      const meshed = isClusterMesh(source) ? clusterOfSource(source) : copiedFrom(slice);
      if (meshed !== undefined && read.group(globalServices, service).length === 0) return;
      const context = contextOf(read, key, service, meshed, meshed !== undefined);
      const endpoints = reconcileEndpointSlice(slice, context);
      const origin = originOf(key, slice);
      const problems = tooMany(endpoints, origin, 'endpoints');
      const exported = meshed === undefined ? asExported(read, source, namespace, name) : {};
      emit(key, { service, ...exported, endpoints, origins: [origin], problems });
    },
  );
  const slicesByService = graph.index('slices by service', slices, (_, list) => [list.service]);
  const hasSlices = (read: Reader, key: string, service: string): boolean =>
    read.group(slicesByService, service).some((member) => sourceOfKey(member.key) === sourceOfKey(key));
  const legacy = graph.derive('legacyEndpoints', objects.Endpoints, (key, object, read, emit: Emit<EndpointList>) => {
    const { name, namespace = '' } = object.metadata;
    const service = hostOf(read, namespace, name);
    if (hasSlices(read, key, service)) return;
    const endpoints = reconcileEndpoints(object as Endpoints, contextOf(read, key, service));
    const origin = originOf(key, object);
    const problems = tooMany(endpoints, origin, 'subsets');
    const exported = asExported(read, sourceOfKey(key), namespace, name);
    emit(`${key}#legacy`, { service, ...exported, endpoints, origins: [origin], problems });
  });
  const held = declareHeldEndpoints(graph, inputs, workloads, (read, key, { namespace, service }) =>
    hasSlices(read, key, hostOf(read, namespace, service)),
  );
  const kept = graph.derive('heldEndpointLists', held.held, (key, part, read, emit: Emit<EndpointList>) => {
    const service = hostOf(read, part.namespace, part.service);
    const endpoints = reconcileHeld(part, contextOf(read, key, service));
    const exported = asExported(read, sourceOfKey(key), part.namespace, part.service);
    emit(`${key}#held`, { service, ...exported, endpoints, origins: [], problems: part.problems });
  });
  const claimed = graph.derive(
    'claimedEndpoints',
    services.services,
    (key, service, read, emit: Emit<EndpointList>) => {
      const cluster = optionsOf(read, inputs).clusterId;
      // Services select entries of their own cluster only; ServiceEntries select workloads of all.
      const claims =
        service.registry === 'External' ? [service] : read.group(services.claims, key).map(({ value }) => value);
      const ofKind = claims.flatMap((claim) => selectedBy(read, claim, claim.remote ?? cluster, workloads));
      const able = ofKind.filter((workload) => isForAll(service, workload, optionsOf(read, inputs).rootNamespace));
      const picked = able.slice(0, Math.max(1, Math.floor(mostEndpoints / Math.max(1, service.ports.length))));
      const endpoints =
        service.registry === 'External'
          ? entryEndpoints(service, cluster, picked)
          : claims.flatMap((claim) =>
              selectedEntries(
                claim,
                picked.filter((workload) => workload.cluster === (claim.remote ?? cluster)),
              ),
            );
      const message = `selects ${able.length} workloads with ${service.ports.length} ports each; only the first ${picked.length} count, because at most ${mostEndpoints} endpoints are allowed. Use fewer ports.`;
      const field = service.registry === 'External' ? 'spec.workloadSelector' : 'spec.selector';
      const problems =
        picked.length === able.length ? [] : service.origins.map((object) => ineffective(object, field, message));
      if (able.length < ofKind.length) {
        const local = `selects ${ofKind.length - able.length} WorkloadEntries that point to each client's own proxy (a unix socket, or a port from 15000 to 15099 on loopback). They are ignored where other namespaces see the service; export it to "." only.`;
        problems.push(...service.origins.map((object) => ineffective(object, field, local)));
      }
      if (endpoints.length === 0 && problems.length === 0) return;
      const exported =
        service.registry === 'External' || isClusterSetHost(service.host)
          ? {}
          : asExported(read, cluster, service.namespace, service.name);
      emit(key, { service: key, ...exported, endpoints, origins: [], problems });
    },
  );

  const disablesMtls = ({ namespace, labels, port }: Endpoint, read: Reader): boolean => {
    const { mode, ports } = peerModes.ofClients(read, namespace, labels);
    return (ports[port] ?? mode) === 'DISABLE';
  };
  const withPeerModes = (endpoints: readonly Endpoint[], read: Reader): readonly Endpoint[] =>
    endpoints.map((endpoint) =>
      endpoint.tlsMode === 'istio' && disablesMtls(endpoint, read) ? { ...endpoint, disablesMtls: true } : endpoint,
    );

  const lists = [slices, legacy, kept, claimed];
  // A union: each list is a group of its own.
  const each = graph.index('endpoint lists', lists, (key) => [key]);
  const encoded = graph.derive('encodedEndpoints', each, (key, members, read, emit: Emit<EncodedList>) => {
    const scale = read.get(networks.scale, ONE) ?? 1;
    for (const { value } of members) {
      const { service, exportedAs, origins, endpoints } = value;
      const bytes = encodeEndpoints(withPeerModes(endpoints, read), scale);
      emit(key, { service, ...(exportedAs !== undefined && { exportedAs }), origins, endpoints: bytes });
    }
  });
  const byService = graph.index('encoded endpoints by service', encoded, (_, list) => servicesOf(list));
  const groups = graph.derive(
    'endpointGroups',
    byService,
    (key, members, _, emit: Emit<EndpointGroup>) =>
      emit(key, {
        byPort: groupByPort(members.flatMap((member) => member.value.endpoints)),
        origins: members.flatMap((member) => member.value.origins),
      }),
    () => false,
  );
  const plainByService = graph.index('endpoint lists by service', lists, (_, list) => servicesOf(list));
  const summaries = graph.derive(
    'endpointSummaries',
    plainByService,
    (key, members, read, emit: Emit<EndpointSummary>) => {
      const service = read.get(services.services, key);
      if (service === undefined) return;
      emit(
        key,
        summarize(
          withPeerModes(
            members.flatMap((member) => member.value.endpoints),
            read,
          ),
          {
            addresses: {
              most: isHeadless(service) ? Math.floor(mostListeners / Math.max(1, listeningPorts(service))) : 0,
              cluster: optionsOf(read, inputs).clusterId,
            },
            dns: isDns(service),
          },
        ),
      );
    },
  );
  return { lists, groups, summaries, byService: plainByService, slicesByService, held };
}

/** The services that a list is for. */
export function servicesOf({ service, exportedAs }: Pick<EndpointList, 'service' | 'exportedAs'>): readonly string[] {
  return exportedAs === undefined ? [service] : [service, exportedAs];
}

function selectedBy(
  read: Reader,
  { registry, namespace, selector }: MeshService,
  cluster: string,
  workloads: Workloads,
): readonly Workload[] {
  const selected = selector === undefined ? [] : selectedWorkloads(read, workloads, namespace, selector);
  return registry === 'External'
    ? selected
    : selected.filter((workload) => workload.kind === 'WorkloadEntry' && workload.cluster === cluster);
}

/** Clients listen at each address for each of these. */
export function listeningPorts({ ports }: MeshService): number {
  return ports.filter(({ protocol }) => ['tcp', 'sniffed'].includes(protocolClass(protocol))).length;
}

/** A client's own proxy is not an endpoint for clients in other namespaces. */
function isForAll(service: MeshService, { addresses, ports }: Workload, rootNamespace: string): boolean {
  const endpoints = addresses.map((address) => ({ address, ports, servicePorts: service.ports }));
  return exportsOf({ ...service, endpoints }, rootNamespace) === service.exportTo;
}

function tooMany(endpoints: readonly Endpoint[], object: ObjectRef, field: string): Problem[] {
  if (endpoints.length < mostEndpoints) return [];
  const message = `has ${mostEndpoints} or more endpoints, one for each address and port; the rest are ignored. Use several objects.`;
  return [ineffective(object, field, message)];
}

const ineffective = (object: ObjectRef, field: string, message: string): Problem => ({
  object,
  field,
  reason: 'Ineffective',
  message,
});

/** Without its generation, which changes with every endpoint. */
function originOf(key: string, object: KubernetesObject): ObjectRef {
  const { generation: _, ...ref } = refOf(sourceOfKey(key), object);
  return ref;
}

/** In a network, an address serves a port once, whatever the slices say. */
function groupByPort(endpoints: readonly EncodedEndpoint[]): Map<string, readonly EncodedEndpoint[]> {
  const byPort = new Map<string, EncodedEndpoint[]>();
  const seen = new Set<string>();
  for (const endpoint of endpoints) {
    if (endpoint.fromSlice) {
      const identity = `${endpoint.portName}|${endpoint.address}|${endpoint.network}`;
      if (seen.has(identity)) continue;
      seen.add(identity);
    }
    const list = byPort.get(endpoint.portName);
    if (list === undefined) byPort.set(endpoint.portName, [endpoint]);
    else list.push(endpoint);
  }
  return byPort;
}
