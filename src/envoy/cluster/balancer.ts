import type { Balancing } from '../../model/cluster.ts';
import type { MeshService } from '../../model/service.ts';
import type { BackendUtilization, LoadBalancer, OutlierDetection, TrafficPolicy } from '../../model/traffic-policy.ts';
import { duration } from '../duration.ts';
import type {
  Cluster,
  Cluster_CommonLbConfig,
  Cluster_SlowStartConfig,
  LoadBalancingPolicy,
  TypedExtensionConfig,
} from '../gen/types.gen.ts';
import { any } from '../encode/proto.ts';
import { wrapped, wrappedIfSet } from '../encode/wrappers.ts';

type BalancerFields = Pick<
  Cluster,
  | 'lbPolicy'
  | 'roundRobinLbConfig'
  | 'leastRequestLbConfig'
  | 'ringHashLbConfig'
  | 'maglevLbConfig'
  | 'loadBalancingPolicy'
>;

/** The default ring size; the deprecated field is an older way to set it. */
const defaultRingSize = 1024;

/** How endpoints are chosen, for clusters that have endpoints to choose from. */
export function balancerFields(balancer: LoadBalancer | undefined, weighsLocalities = false): BalancerFields {
  const hash = balancer?.consistentHash;
  if (hash?.ring?.kind === 'maglev') {
    const { tableSize } = hash.ring;
    return {
      lbPolicy: 'MAGLEV',
      ...(tableSize === undefined ? {} : { maglevLbConfig: { tableSize: wrapped(tableSize) } }),
    };
  }
  if (hash !== undefined) {
    const size = hash.ring === undefined ? (hash.minimumRingSize ?? defaultRingSize) : hash.ring.minimumRingSize;
    return {
      lbPolicy: 'RING_HASH',
      ...(size === undefined ? {} : { ringHashLbConfig: { minimumRingSize: wrapped(size) } }),
    };
  }
  const slowStartConfig = slowStart(balancer);
  if (balancer?.backendUtilization !== undefined) {
    const byLoad = byUtilization(balancer.backendUtilization, slowStartConfig);
    return { loadBalancingPolicy: weighsLocalities ? withinLocalities(byLoad) : byLoad };
  }
  switch (balancer?.simple) {
    case 'RANDOM':
      return { lbPolicy: 'RANDOM' };
    case 'ROUND_ROBIN':
      return { lbPolicy: 'ROUND_ROBIN', ...(slowStartConfig && { roundRobinLbConfig: { slowStartConfig } }) };
    default:
      return { lbPolicy: 'LEAST_REQUEST', ...(slowStartConfig && { leastRequestLbConfig: { slowStartConfig } }) };
  }
}

function byUtilization(
  utilization: BackendUtilization,
  slowStartConfig: Cluster_SlowStartConfig | undefined,
): LoadBalancingPolicy {
  const { stabilizationPeriod, expirationPeriod, updatePeriod, errorPenaltyPercent, metricNames } = utilization;
  const type =
    'envoy.extensions.load_balancing_policies.client_side_weighted_round_robin.v3.ClientSideWeightedRoundRobin';
  const typedConfig = any(type, {
    blackoutPeriod: stabilizationPeriod === undefined ? undefined : duration(stabilizationPeriod),
    weightExpirationPeriod: expirationPeriod === undefined ? undefined : duration(expirationPeriod),
    weightUpdatePeriod: updatePeriod === undefined ? undefined : duration(updatePeriod),
    errorUtilizationPenalty: errorPenaltyPercent === undefined ? undefined : { value: errorPenaltyPercent / 100 },
    metricNamesForComputingUtilization: metricNames,
    slowStartConfig,
  });
  return policyOf('client_side_weighted_round_robin', typedConfig);
}

/** The localities keep their weights, and the policy chooses within each. */
function withinLocalities(endpointPickingPolicy: LoadBalancingPolicy): LoadBalancingPolicy {
  const type = 'envoy.extensions.load_balancing_policies.wrr_locality.v3.WrrLocality';
  return policyOf('wrr_locality', any(type, { endpointPickingPolicy }));
}

function policyOf(name: string, typedConfig: TypedExtensionConfig['typedConfig']): LoadBalancingPolicy {
  return { policies: [{ typedExtensionConfig: { name: `envoy.load_balancing_policies.${name}`, typedConfig } }] };
}

function slowStart(balancer: LoadBalancer | undefined): Cluster_SlowStartConfig | undefined {
  if (balancer?.warmup !== undefined) {
    const { duration: window, aggression = 1, minimumPercent = 10 } = balancer.warmup;
    return {
      slowStartWindow: duration(window),
      // Envoy requires a runtime key. This one is never set.
      aggression: { defaultValue: aggression, runtimeKey: '(' },
      minWeightPercent: { value: minimumPercent },
    };
  }
  return balancer?.warmupDuration === undefined ? undefined : { slowStartWindow: duration(balancer.warmupDuration) };
}

export function commonLbFields(
  { panicThreshold, weighsLocalities }: Balancing,
  policy: TrafficPolicy,
  service: Pick<MeshService, 'persistentSession'>,
): Cluster_CommonLbConfig {
  return {
    healthyPanicThreshold: { value: panicThreshold },
    // Envoy rejects this beside a policy by utilization, which has its own form of it.
    ...(weighsLocalities && policy.loadBalancer?.backendUtilization === undefined
      ? { localityWeightedLbConfig: {} }
      : {}),
    ...(service.persistentSession
      ? { overrideHostStatus: { statuses: ['HEALTHY', 'DRAINING', 'UNKNOWN', 'DEGRADED'] } }
      : {}),
  };
}

/**
 * Turns off ejection by success rate, which Envoy enables by default: Istio's API cannot express it. Ejection by
 * percentage, which Envoy disables by default, is on if the rule has a threshold.
 */
export function outlierFields(outlier: OutlierDetection | undefined): Pick<Cluster, 'outlierDetection'> {
  if (outlier === undefined) return {};
  const { consecutive5xx, consecutiveGatewayErrors, interval, baseEjectionTime, maxEjectionPercent } = outlier;
  const percentage = outlier.failurePercentageThreshold;
  const localOrigin = outlier.splitExternalLocalOriginErrors;
  const localFailures = outlier.consecutiveLocalOriginFailures ?? 0;
  return {
    outlierDetection: {
      enforcingSuccessRate: wrapped(0),
      consecutive5xx: wrappedIfSet(consecutive5xx),
      enforcingConsecutive5xx: enforcing(consecutive5xx),
      consecutiveGatewayFailure: wrappedIfSet(consecutiveGatewayErrors),
      enforcingConsecutiveGatewayFailure: enforcing(consecutiveGatewayErrors),
      interval: interval === undefined ? undefined : duration(interval),
      baseEjectionTime: baseEjectionTime === undefined ? undefined : duration(baseEjectionTime),
      maxEjectionPercent: maxEjectionPercent ? wrapped(maxEjectionPercent) : undefined,
      ...(percentage === undefined
        ? {}
        : { failurePercentageThreshold: wrapped(percentage), enforcingFailurePercentage: wrapped(100) }),
      ...(localOrigin ? { splitExternalLocalOriginErrors: true, enforcingLocalOriginSuccessRate: wrapped(0) } : {}),
      ...(localOrigin && localFailures > 0
        ? {
            consecutiveLocalOriginFailure: wrapped(localFailures),
            enforcingConsecutiveLocalOriginFailure: wrapped(100),
          }
        : {}),
    },
  };
}

/** Consecutive errors always eject, or never if the number is 0. */
function enforcing(errors: number | undefined): { readonly value: number } | undefined {
  return errors === undefined ? undefined : wrapped(errors > 0 ? 100 : 0);
}
