import { isWildcard } from './host.ts';
import { printSelector } from './labels.ts';
import type { DestinationRuleModel } from './traffic-policy.ts';

/** Unique among merged rules: rules that are equal in all of these fields are merged. */
export function ruleId(
  rule: Pick<DestinationRuleModel, 'namespace' | 'host' | 'exportTo' | 'workloadSelector'>,
): string {
  const selector = rule.workloadSelector === undefined ? '' : `{${printSelector(rule.workloadSelector)}}`;
  return `${rule.namespace}/${rule.host}@${rule.exportTo.join(',')}${selector}`;
}

/**
 * Each subset is one cluster per service port. The clusters of a port are built in one step, 50 µs each. For a
 * wildcard, that applies to each host under it, and there may be 10,000.
 */
export function mostSubsets(host: string): number {
  return isWildcard(host) ? 10 : 1000;
}
