import { printRef } from '../api/object.ts';
import type { Problem } from '../api/problem.ts';
import { compareRules } from '../model/rule-selection.ts';
import type { DestinationRuleModel, Subset } from '../model/traffic-policy.ts';
import { ruleId } from './destination-rule.ts';

export interface MergedRules {
  /** One for each visibility and selector; those with a selector first, then the older first. */
  readonly rules: readonly DestinationRuleModel[];
  readonly problems: readonly Problem[];
}

/**
 * Makes one rule of those that the same proxies see, out of all rules of one namespace for one host. The oldest gives
 * the name; its policy counts, or that of the next one that has any; subsets are united, and the older keeps a name.
 */
export function mergeRules(rules: readonly DestinationRuleModel[]): MergedRules {
  const problems: Problem[] = [];
  const merged = new Map<string, DestinationRuleModel>();
  for (const rule of [...rules].sort(compareRules)) {
    const id = ruleId(rule);
    const earlier = merged.get(id);
    merged.set(id, earlier === undefined ? { ...rule, id } : mergeInto(earlier, rule, problems));
  }
  return { rules: [...merged.values()], problems };
}

function mergeInto(
  earlier: DestinationRuleModel,
  rule: DestinationRuleModel,
  problems: Problem[],
): DestinationRuleModel {
  const [object] = rule.origins;
  const conflict = (field: string, message: string): void => {
    if (object !== undefined) problems.push({ object, field, reason: 'Conflicted', message });
  };
  const subsets = new Map<string, Subset>(earlier.subsets.map((subset) => [subset.name, subset]));
  for (const [index, subset] of rule.subsets.entries()) {
    if (!subsets.has(subset.name)) subsets.set(subset.name, subset);
    else
      conflict(
        `spec.subsets[${index}].name`,
        `${namesOf(earlier)} is older and has a subset "${subset.name}" of ${rule.host} already; rename this one.`,
      );
  }
  const replaces = !hasPolicy(earlier) && hasPolicy(rule);
  if (hasPolicy(earlier) && hasPolicy(rule))
    conflict(
      'spec.trafficPolicy',
      `${namesOf(earlier)} is older and sets the policy of ${rule.host}; set it there, or for the subsets only.`,
    );
  return {
    ...earlier,
    ...(replaces ? { policy: rule.policy, portPolicies: rule.portPolicies } : {}),
    subsets: [...subsets.values()],
    origins: [...earlier.origins, ...rule.origins],
  };
}

function hasPolicy(rule: DestinationRuleModel): boolean {
  return Object.keys(rule.policy).length > 0 || Object.keys(rule.portPolicies).length > 0;
}

function namesOf(rule: DestinationRuleModel): string {
  return rule.origins.map(printRef).join(', ');
}
