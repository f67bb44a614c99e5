import { nearestFirst, type TopologyNeeds } from '../model/locality.ts';
import type { ClusterSettings } from '../model/mesh-config.ts';
import { labelsOf, resolvePolicy } from '../model/policy-resolution.ts';
import type { MeshService, ServicePort } from '../model/service.ts';
import type { DestinationRuleModel, LocalityLbSetting, TrafficPolicy } from '../model/traffic-policy.ts';

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

/** Whether Envoy must weight localities, and not only endpoints. */
export function weighsLocalities(plan: LocalityPlan | undefined): boolean {
  if (plan === undefined) return false;
  const { distribute, failover, failoverPriority } = plan.setting;
  return distribute.length > 0 || (plan.failover && (failover.length > 0 || failoverPriority.length > 0));
}

/** Priorities by label are for EDS endpoints: clusters are shared by proxies with different labels. */
export function withoutLabels(plan: LocalityPlan | undefined): LocalityPlan | undefined {
  if (plan === undefined || plan.setting.failoverPriority.length === 0) return plan;
  const failover = plan.failover && plan.setting.failover.length > 0;
  return { setting: { ...plan.setting, failoverPriority: [] }, failover };
}

/** What the assignment of a host or a subset depends on. */
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

/** What the clusters for a port of a DNS service depend on: nothing, or the proxy's locality. */
export function dnsTopologyNeeds(
  service: MeshService,
  port: ServicePort,
  rule: DestinationRuleModel | undefined,
  settings: Pick<ClusterSettings, 'localityLb' | 'defaultTrafficPolicy'>,
): TopologyNeeds {
  const locality = [undefined, ...(rule?.subsets ?? [])].some((subset) => {
    const policy = resolvePolicy(rule, port.number, subset, settings);
    const plan = withoutLabels(localityPlan(policy, service, settings));
    return plan !== undefined && (plan.failover || plan.setting.distribute.length > 0);
  });
  return { locality, nodeName: false, cluster: false, labels: [] };
}
