import { printRef } from '../api/object.ts';
import type { Problem } from '../api/problem.ts';
import { printWinner } from '../model/age.ts';
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
  const together = new Map<string, DestinationRuleModel[]>();
  for (const rule of [...rules].sort(compareRules)) {
    const id = ruleId(rule);
    const older = together.get(id);
    if (older === undefined) together.set(id, [rule]);
    else older.push(rule);
  }
  return {
    rules: [...together].map(([id, joined]) => mergeJoined(id, joined)),
    problems: [...together.values()].flatMap((joined) =>
      joined.flatMap((rule, i) => conflictsWith(joined.slice(0, i), rule)),
    ),
  };
}

function mergeJoined(id: string, joined: readonly DestinationRuleModel[]): DestinationRuleModel {
  const oldest = joined[0]!;
  const { policy, portPolicies } = joined.find(hasPolicy) ?? oldest;
  const subsets = new Map<string, Subset>();
  for (const subset of joined.flatMap((rule) => rule.subsets))
    if (!subsets.has(subset.name)) subsets.set(subset.name, subset);
  return {
    ...oldest,
    id,
    policy,
    portPolicies,
    subsets: [...subsets.values()],
    origins: joined.flatMap((rule) => rule.origins),
  };
}

/** What of a rule has no effect because older ones say it. */
function conflictsWith(older: readonly DestinationRuleModel[], rule: DestinationRuleModel): Problem[] {
  const conflict = (field: string, message: string): Problem[] =>
    rule.origins.map((object) => ({ object, field, reason: 'Conflicted', message }));
  const subsets = rule.subsets.flatMap(({ name }, index) => {
    const owner = older.find((other) => other.subsets.some((subset) => subset.name === name));
    if (owner === undefined) return [];
    return conflict(
      `spec.subsets[${index}].name`,
      `${rule.host} has a subset ${JSON.stringify(name)} of ${printWinner(namesOf(owner), owner, rule)} already; rename this one.`,
    );
  });
  const owner = hasPolicy(rule) ? older.find(hasPolicy) : undefined;
  if (owner === undefined) return subsets;
  const message = `${rule.host} has the policy of ${printWinner(namesOf(owner), owner, rule)}; set it there, or for the subsets only.`;
  return [...subsets, ...conflict('spec.trafficPolicy', message)];
}

function hasPolicy(rule: DestinationRuleModel): boolean {
  return Object.keys(rule.policy).length > 0 || Object.keys(rule.portPolicies).length > 0;
}

function namesOf(rule: DestinationRuleModel): string {
  return rule.origins.map(printRef).join(', ');
}
