import type { Labels } from './labels.ts';
import { type Topology, nowhere } from './topology.ts';
import { ownValue } from './own-value.ts';

export const networkLabel = 'topology.istio.io/network';
export const clusterLabel = 'topology.istio.io/cluster';
export const nodeLabel = 'kubernetes.io/hostname';

const sameZone = [networkLabel, 'topology.kubernetes.io/region', 'topology.kubernetes.io/zone'];
/** The failover priorities that a Service preference stands for. */
export const nearestFirst = {
  'same-zone': sameZone,
  'same-node': [...sameZone, 'topology.istio.io/subzone', nodeLabel],
} as const;

/**
 * What an assignment needs to know about the proxy that requests it. Assignments without needs are the same for all
 * proxies.
 */
export interface TopologyNeeds {
  readonly locality: boolean;
  readonly nodeName: boolean;
  readonly cluster: boolean;
  /** Label names. */
  readonly labels: readonly string[];
  /** Its network, and how it reaches others. */
  readonly network?: boolean;
}

/** A topology reduced to what is needed: proxies that are equal in this share it. */
export function narrowTopology(topology: Topology, needs: TopologyNeeds): Topology {
  const named = needs.labels.flatMap((name): [string, string][] => {
    const value = ownValue(topology.labels, name);
    return value === undefined ? [] : [[name, value]];
  });
  return {
    locality: needs.locality ? topology.locality : '',
    ...sightOf(needs.network === true ? topology : nowhere),
    cluster: needs.cluster ? topology.cluster : '',
    nodeName: needs.nodeName ? topology.nodeName : '',
    labels: Object.fromEntries(named),
  };
}

/** What of a topology decides which endpoints of other networks are reached, and how. */
export function sightOf({
  network,
  ipFamily,
  requestedNetworks,
}: Topology): Pick<Topology, 'network' | 'ipFamily' | 'requestedNetworks'> {
  return { network, ...(ipFamily && { ipFamily }), ...(requestedNetworks && { requestedNetworks }) };
}

/** The same for proxies that see endpoints of all networks, clusters and localities alike. */
export const sightKey = (topology: Topology): string =>
  JSON.stringify([sightOf(topology), topology.cluster, topology.locality]);

/** The labels of a gateway, as priorities by label see it. */
export function labelsOfGateway(cluster: string, network: string): Labels {
  return { ...(cluster !== '' && { [clusterLabel]: cluster }), [networkLabel]: network };
}
