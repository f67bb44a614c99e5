import type { ObjectRef } from '../../api/object.ts';
import type { Collection, Emit, Graph, Index, Reader } from '../../cache/graph.ts';
import { type EncodedEndpoint, encodeEndpoints } from '../../envoy/endpoint/assignment-endpoint.ts';
import type { Endpoint, EndpointSummary } from '../../model/endpoint.ts';
import { type MeshService, isDns, isHeadless, protocolClass } from '../../model/service.ts';
import { summarize } from '../../reconcilers/core/endpoint-summary.ts';
import { mostListeners } from '../../reconcilers/service-entry/host-claims.ts';
import { type Inputs, ONE, optionsOf } from '../inputs.ts';
import { type EndpointList, servicesOf } from './endpoint-list.ts';
import type { Networks } from './networks.ts';
import type { PeerModesOf } from './peer-modes.ts';
import type { Services } from './services.ts';

/** All endpoints of a service by port name, each with its encoded bytes. */
export interface EndpointGroup {
  readonly byPort: ReadonlyMap<string, readonly EncodedEndpoint[]>;
  /** The slices that contain them. */
  readonly origins: readonly ObjectRef[];
}

export interface EndpointGroups {
  /** By `namespace/host`; absent for services without endpoints. */
  readonly groups: Collection<EndpointGroup>;
  readonly summaries: Collection<EndpointSummary>;
  /** The lists of a service; by `namespace/host`. */
  readonly byService: Index<EndpointList>;
}

export interface EndpointGroupDeps {
  readonly services: Services;
  readonly peerModes: PeerModesOf;
  readonly networks: Networks;
}

interface EncodedList extends Omit<EndpointList, 'endpoints' | 'problems'> {
  readonly endpoints: readonly EncodedEndpoint[];
}

export const NO_ENDPOINTS: EndpointSummary = {
  identities: [],
  plaintext: true,
  addresses: [],
  dnsEndpoints: [],
};

/** What the lists of each service come to. */
export function declareEndpointGroups(
  graph: Graph,
  inputs: Inputs,
  lists: readonly Collection<EndpointList>[],
  { services, peerModes, networks }: EndpointGroupDeps,
): EndpointGroups {
  const disablesMtls = ({ namespace, labels, port }: Endpoint, read: Reader): boolean => {
    const { mode, ports } = peerModes.ofClients(read, namespace, labels);
    return (ports[port] ?? mode) === 'DISABLE';
  };
  const withPeerModes = (endpoints: readonly Endpoint[], read: Reader): readonly Endpoint[] =>
    endpoints.map((endpoint) =>
      endpoint.tlsMode === 'istio' && disablesMtls(endpoint, read) ? { ...endpoint, disablesMtls: true } : endpoint,
    );

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
  const listsByService = graph.index('endpoint lists by service', lists, (_, list) => servicesOf(list));
  const summaries = graph.derive(
    'endpointSummaries',
    listsByService,
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
  return { groups, summaries, byService: listsByService };
}

/** Clients listen at each address for each of these. */
export function listeningPorts({ ports }: MeshService): number {
  return ports.filter(({ protocol }) => ['tcp', 'sniffed'].includes(protocolClass(protocol))).length;
}

/**
 * In a network, an address serves a port once, whatever the slices say. Of other clusters of a ClusterMesh, several ports
 * of an address may serve one.
 */
function groupByPort(endpoints: readonly EncodedEndpoint[]): Map<string, readonly EncodedEndpoint[]> {
  const byPort = new Map<string, EncodedEndpoint[]>();
  const seen = new Map<string, EncodedEndpoint>();
  const remotePorts = new Set<string>();
  for (const endpoint of endpoints) {
    if (endpoint.fromSlice) {
      const identity = `${endpoint.portName}|${endpoint.address}|${endpoint.network}`;
      const first = seen.get(identity);
      if (first !== undefined && !(first.viaClusterMesh && endpoint.viaClusterMesh)) continue;
      seen.set(identity, endpoint);
      if (endpoint.viaClusterMesh) {
        const port = `${identity}|${endpoint.port}`;
        if (remotePorts.has(port)) continue;
        remotePorts.add(port);
      }
    }
    const list = byPort.get(endpoint.portName);
    if (list === undefined) byPort.set(endpoint.portName, [endpoint]);
    else list.push(endpoint);
  }
  return byPort;
}
