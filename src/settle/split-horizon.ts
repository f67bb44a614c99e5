import type { AssignableEndpoint, GatewayEndpoint } from '../model/assignment.ts';
import { labelsOfGateway } from '../model/locality.ts';
import { type NetworkGateway, gatewaysFor } from '../model/network.ts';
import type { Topology } from '../model/topology.ts';

/** Gateways by network. A network that is absent has none, and is reached directly. */
export type Horizon = ReadonlyMap<string, readonly NetworkGateway[]>;

/**
 * Endpoints as a proxy reaches them: those of other networks that have gateways are replaced by these, in their
 * localities, with their weights. An address of such a network is never served, even if no gateway can be reached, and
 * one of a network without gateways only if it is not that of an endpoint in the proxy's own network.
 *
 * @param passes whether requests for an endpoint can, and may, take the way through a gateway.
 */
export function splitHorizon<Form>(
  endpoints: readonly AssignableEndpoint<Form>[],
  { network: own, ipFamily, requestedNetworks: requested }: Topology,
  horizon: Horizon,
  passes: (endpoint: AssignableEndpoint<Form>) => boolean,
): readonly (AssignableEndpoint<Form> | GatewayEndpoint)[] {
  const isForeign = ({ network }: AssignableEndpoint<Form>): boolean => network !== '' && network !== own;
  const near = new Set(endpoints.filter(({ network }) => network === own).map(({ address }) => address));
  const direct: AssignableEndpoint<Form>[] = [];
  const behind = new Map<string, Map<NetworkGateway, number>>();
  for (const endpoint of endpoints) {
    const { network, cluster, locality, weight } = endpoint;
    if (requested !== undefined && network !== '' && !requested.includes(network)) continue;
    const gateways = network === own ? undefined : horizon.get(network);
    if (gateways === undefined) {
      if (endpoint.sendable && !(isForeign(endpoint) && near.has(endpoint.address))) direct.push(endpoint);
      continue;
    }
    if (!passes(endpoint)) continue;
    const chosen = gatewaysFor(gateways, cluster, ipFamily ?? 'v4');
    const weights = behind.get(locality) ?? new Map<NetworkGateway, number>();
    behind.set(locality, weights);
    for (const gateway of chosen) weights.set(gateway, (weights.get(gateway) ?? 0) + weight / chosen.length);
  }
  return behind.size === 0 ? direct : [...direct, ...Array.from(behind, gatewayEndpoints).flat()];
}

/** In the order in which the gateways of each network are known. */
function gatewayEndpoints([locality, weights]: readonly [
  string,
  ReadonlyMap<NetworkGateway, number>,
]): readonly GatewayEndpoint[] {
  return [...weights].map(([{ address, port, cluster, network }, weight]) => ({
    addresses: [address],
    port,
    portName: '',
    labels: labelsOfGateway(cluster, network),
    locality,
    network,
    cluster,
    identity: '',
    tlsMode: 'istio',
    // Whole numbers, unless there are too many gateways for a common multiple.
    weight: Math.min(Math.max(1, Math.round(weight)), 2 ** 32 - 1),
    workload: '',
    namespace: '',
    nodeName: '',
  }));
}
