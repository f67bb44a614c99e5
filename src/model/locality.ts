import type { Labels } from './labels.ts';
import type { ClusterSettings } from './mesh-config.ts';
import type { MeshService } from './service.ts';
import type { TrafficPolicy, LocalityLbSetting } from './traffic-policy.ts';
import { type Topology, nowhere } from './topology.ts';
import { ownValue } from './own-value.ts';
import { labelsOf } from './policy-resolution.ts';

/** How endpoints of different localities are used. */
export interface LocalityPlan {
  readonly setting: LocalityLbSetting;
  /**
   * Whether farther endpoints have lower priorities. Without outlier detection, Envoy would never leave the first
   * priority, so there is no failover then, unless the Service itself asks for near endpoints.
   */
  readonly failover: boolean;
}

/**
 * The setting in force: the rule's, or else what the Service prefers, or else the mesh's. Undefined: switched off. If
 * labels are ignored, near endpoints are preferred by locality alone.
 */
export function localityPlan(
  policy: TrafficPolicy,
  service: Pick<MeshService, 'trafficDistribution'>,
  settings: Pick<ClusterSettings, 'localityLb'>,
  ignoresLabels = false,
): LocalityPlan | undefined {
  const plan = planInForce(policy, service, settings);
  return plan && ignoresLabels ? { ...plan, setting: { ...plan.setting, failoverPriority: [] } } : plan;
}

function planInForce(
  policy: TrafficPolicy,
  service: Pick<MeshService, 'trafficDistribution'>,
  settings: Pick<ClusterSettings, 'localityLb'>,
): LocalityPlan | undefined {
  const own = policy.loadBalancer?.localityLb;
  const failover = policy.outlierDetection !== undefined;
  if (own !== undefined) return own.enabled ? { setting: own, failover } : undefined;
  const { trafficDistribution } = service;
  if (trafficDistribution !== undefined)
    return {
      setting: { distribute: [], failover: [], failoverPriority: nearestFirst[trafficDistribution] },
      failover: true,
    };
  return settings.localityLb === undefined ? undefined : { setting: settings.localityLb, failover };
}

export const networkLabel = 'topology.istio.io/network';
export const clusterLabel = 'topology.istio.io/cluster';
export const nodeLabel = 'kubernetes.io/hostname';

const sameZone = [networkLabel, 'topology.kubernetes.io/region', 'topology.kubernetes.io/zone'];
/** The failover priorities that a Service preference stands for. */
export const nearestFirst = {
  'same-zone': sameZone,
  'same-node': [...sameZone, 'topology.istio.io/subzone', nodeLabel],
} as const;

/** Whether Envoy must weight localities, and not only endpoints. */
export function weighsLocalities(plan: LocalityPlan | undefined): boolean {
  if (plan === undefined) return false;
  const { distribute, failover, failoverPriority } = plan.setting;
  return distribute.length > 0 || (plan.failover && (failover.length > 0 || failoverPriority.length > 0));
}

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

export function topologyNeeds(
  policy: TrafficPolicy,
  service: Pick<MeshService, 'trafficDistribution' | 'nodeLocal'>,
  settings: Pick<ClusterSettings, 'localityLb'>,
  clusterLocal = false,
  ignoresLabels = false,
): TopologyNeeds {
  const plan = localityPlan(policy, service, settings, ignoresLabels);
  const { distribute = [], failover = [], failoverPriority = [] } = plan?.setting ?? {};
  const distributes = distribute.length > 0;
  const prefers = !distributes && plan?.failover === true;
  return {
    locality: distributes || (prefers && (failoverPriority.length === 0 || failover.length > 0)),
    nodeName: service.nodeLocal,
    cluster: service.nodeLocal || clusterLocal,
    labels: prefers ? labelsOf(failoverPriority) : [],
  };
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
