import { isWildcard } from './host.ts';
import { printSelector } from './labels.ts';
import type { DestinationRuleModel } from './traffic-policy.ts';

/** Unique among merged rules: rules that are alike in all of this are merged. */
export function ruleId(
  rule: Pick<DestinationRuleModel, 'namespace' | 'host' | 'exportTo' | 'workloadSelector'>,
): string {
  const selector = rule.workloadSelector === undefined ? '' : `{${printSelector(rule.workloadSelector)}}`;
  return `${rule.namespace}/${rule.host}@${rule.exportTo.join(',')}${selector}`;
}

/**
 * Each is a cluster for each port of a service, and those of a port are made in one step, 50 µs each. Of a wildcard they
 * are clusters of each host below it, of which there may be 10,000.
 */
export function mostSubsets(host: string): number {
  return isWildcard(host) ? 10 : 1000;
}
