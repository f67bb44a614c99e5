import { isWildcard } from './host.ts';
import type { MeshService } from './service.ts';
import { hashesRequests } from './policy-resolution.ts';
import type { ConsistentHash, DestinationRuleModel, LoadBalancer, TrafficPolicy } from './traffic-policy.ts';

/**
 * Maximum number of entries in rings and tables of a host, over all its ports and subsets, and over all hosts of a
 * ServiceEntry that a wildcard covers. Every proxy has them all, needs up to 50 bytes for each, and builds them on its
 * main thread. A single table may be as large as this.
 */
export const mostPlaces = 5_000_010;

/** A table needs more entries than there are endpoints, to reach them all. */
const smallTable = 1021;

/** Envoy's default. */
const defaultTable = 65_537;

/** The rule with sizes small enough for all clusters of the service. */
export function fitRings(
  rule: DestinationRuleModel,
  { ports, hostsOfEntry = 1 }: Pick<MeshService, 'ports' | 'hostsOfEntry'>,
): DestinationRuleModel {
  if (!hashesRequests(rule)) return rule;
  const levels = [rule, ...rule.subsets];
  const hosts = isWildcard(rule.host) ? hostsOfEntry : 1;
  let places = 0;
  for (const { number } of ports)
    for (const level of levels) {
      const balancer = balancerOf(level, number) ?? (level.portPolicies[number] ? undefined : balancerOf(rule, number));
      places += sizeOf(balancer?.consistentHash);
    }
  if (places * hosts <= mostPlaces) return rule;
  const most = Math.floor(mostPlaces / (ports.length * levels.length * hosts));
  return {
    ...rule,
    ...shrunk(rule, most),
    subsets: rule.subsets.map((subset) => ({ ...subset, ...shrunk(subset, most) })),
  };
}

/** A port's blocks replace those of its host. */
const balancerOf = ({ policy, portPolicies }: Level, port: number): LoadBalancer | undefined =>
  (portPolicies[port] ?? policy).loadBalancer;

/** Without an explicit size, rings are small. */
function sizeOf(hash: ConsistentHash | undefined): number {
  if (hash === undefined) return 0;
  const { ring, minimumRingSize = 0 } = hash;
  return (ring?.kind === 'maglev' ? (ring.tableSize ?? defaultTable) : ring?.minimumRingSize) ?? minimumRingSize;
}

type Level = Pick<DestinationRuleModel, 'policy' | 'portPolicies'>;

function shrunk({ policy, portPolicies }: Level, most: number): Level {
  const ports = Object.entries(portPolicies).map(([port, own]) => [port, shrunkPolicy(own, most)]);
  return { policy: shrunkPolicy(policy, most), portPolicies: Object.fromEntries(ports) as Level['portPolicies'] };
}

function shrunkPolicy(policy: TrafficPolicy, most: number): TrafficPolicy {
  const { loadBalancer } = policy;
  const hash = loadBalancer?.consistentHash;
  if (loadBalancer === undefined || hash === undefined || sizeOf(hash) <= most) return policy;
  const { ring } = hash;
  const consistentHash: ConsistentHash =
    ring === undefined
      ? { ...hash, minimumRingSize: most }
      : ring.kind === 'maglev'
        ? { ...hash, ring: { ...ring, tableSize: primeBelow(Math.max(most, smallTable)) } }
        : { ...hash, ring: { ...ring, minimumRingSize: most } };
  return { ...policy, loadBalancer: { ...loadBalancer, consistentHash } };
}

function primeBelow(number: number): number {
  for (let candidate = number; ; candidate--) if (isPrime(candidate)) return candidate;
}

export function isPrime(number: number): boolean {
  if (number < 2) return false;
  for (let divisor = 2; divisor * divisor <= number; divisor++) if (number % divisor === 0) return false;
  return true;
}
