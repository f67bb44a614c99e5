import { firstBy, remembered } from './remembered.ts';
import type { MeshService } from './service.ts';
import type { ClientTls, DestinationRuleModel, HashKey, Subset, TrafficPolicy } from './traffic-policy.ts';

/** The blocks that port settings replace, even if they leave them out. */
const portBlocks = ['connectionPool', 'loadBalancer', 'outlierDetection', 'tls'] as const;

/**
 * The policy in force for a port and subset (none: the host itself). Blocks are never merged: port settings replace the
 * four blocks that they can have, and a subset's block replaces the host's. Whatever none of them sets comes from the
 * mesh's defaults, which apply before subsets.
 */
export function resolvePolicy(
  rule: DestinationRuleModel | undefined,
  port: number,
  subset: Subset | undefined,
  settings: { readonly defaultTrafficPolicy?: TrafficPolicy },
): TrafficPolicy {
  const defaults = settings.defaultTrafficPolicy;
  if (rule === undefined) return defaults ?? {};
  const host = { ...defaults, ...withPort(rule.policy, rule.portPolicies[port]) };
  return subset === undefined ? host : withPort({ ...host, ...subset.policy }, subset.portPolicies[port]);
}

export function subsetOf(rule: DestinationRuleModel | undefined, name: string): Subset | undefined {
  return name === '' || rule === undefined ? undefined : subsetNamed(rule.subsets, name);
}

const subsetNamed = firstBy(({ name }: Subset) => name);

function withPort(policy: TrafficPolicy, port: TrafficPolicy | undefined): TrafficPolicy {
  if (port === undefined) return policy;
  const inherited = { ...policy };
  for (const block of portBlocks) delete inherited[block];
  return { ...inherited, ...port };
}

/**
 * What requests are hashed by. Unlike clusters, routes use the nearest level that has a hash: the subset's port, the
 * subset, the port, the host. `port` is absent if a route does not name one.
 */
export function hashKeyOf(
  rule: DestinationRuleModel | undefined,
  subset: string,
  port: number | undefined,
): HashKey | undefined {
  if (rule === undefined) return undefined;
  const named = subsetOf(rule, subset);
  const levels = [
    port === undefined ? undefined : named?.portPolicies[port],
    named?.policy,
    port === undefined ? undefined : rule.portPolicies[port],
    rule.policy,
  ];
  for (const level of levels) {
    const hash = level?.loadBalancer?.consistentHash;
    if (hash !== undefined) return hash.key;
  }
  return undefined;
}

/** `auto`: those on which no PeerAuthentication has turned it off. */
export type MtlsUse = 'never' | 'auto' | 'always';

/** Whether connections to an endpoint use mutual TLS, if its proxy supports that. */
export function usesMtls({ disablesMtls = false }: { readonly disablesMtls?: boolean }, use: MtlsUse): boolean {
  return use === 'always' || (use === 'auto' && !disablesMtls);
}

/**
 * Which of the endpoints that support mutual TLS are marked for it. Unlike clusters, endpoints inherit the host's mode if
 * the port settings name none.
 */
export function mtlsUse(rule: DestinationRuleModel | undefined, port: number, subset: Subset | undefined): MtlsUse {
  const mode = (subset && tlsModeOf(subset, port)) ?? (rule && tlsModeOf(rule, port));
  if (mode === undefined) return 'auto';
  return mode === 'ISTIO_MUTUAL' ? 'always' : 'never';
}

function tlsModeOf(
  level: Pick<DestinationRuleModel, 'policy' | 'portPolicies'>,
  port: number,
): ClientTls['mode'] | undefined {
  return (level.portPolicies[port]?.tls ?? level.policy.tls)?.mode;
}

/**
 * Endpoints that are not ready are sent, marked as such, so that Envoy does not enter panic mode. A rule with
 * `minHealthPercent` asks for panic mode, which would send requests to them.
 */
export function sendsUnhealthy(policy: TrafficPolicy, service: Pick<MeshService, 'trafficDistribution'>): boolean {
  return service.trafficDistribution !== undefined || (policy.outlierDetection?.minHealthPercent ?? 0) === 0;
}

/** Names of the workload labels by which the rule prefers endpoints: those labels must be in a proxy's topology. */
export const failoverLabels = remembered((rule: Levels): readonly string[] =>
  labelsOf(policiesOf(rule).flatMap((policy) => policy.loadBalancer?.localityLb?.failoverPriority ?? [])),
);

/** Whether a route to the host may have to hash requests. */
export const hashesRequests = remembered((rule: Levels): boolean =>
  policiesOf(rule).some((policy) => policy.loadBalancer?.consistentHash !== undefined),
);

type Levels = Pick<DestinationRuleModel, 'policy' | 'portPolicies' | 'subsets'>;

/** The policies of the host, its ports, its subsets, and their ports. */
function policiesOf(rule: Levels): readonly TrafficPolicy[] {
  return [rule, ...rule.subsets].flatMap((level) => [level.policy, ...Object.values(level.portPolicies)]);
}

/** The failover priorities that compare a label with the proxy's; others name the value themselves. Sorted. */
export function labelsOf(failoverPriority: readonly string[]): string[] {
  return [...new Set(failoverPriority.filter((entry) => !entry.includes('=')))].sort();
}
