import { printRef } from '../api/object.ts';
import type { Problem } from '../api/problem.ts';
import { printWinner } from '../model/age.ts';
import { mostSubsets, ruleId } from '../model/destination-rule.ts';
import { audiencesOf, compareRules } from './rule-selection.ts';
import type { DestinationRuleModel, Subset } from '../model/traffic-policy.ts';

export interface MergedRules {
  /** Rules with a selector first, then oldest first. */
  readonly rules: readonly DestinationRuleModel[];
  readonly problems: readonly Problem[];
}

/** Owners are told only the first ones. */
const mostProblems = 100;

/**
 * Merges all rules of one namespace for one host into one rule for each set of proxies that see the same rules. The
 * oldest gives the name; its policy applies, or that of the next rule with a policy; subsets are combined, and the
 * older rule keeps a name.
 */
export function mergeRules(rules: readonly DestinationRuleModel[]): MergedRules {
  const sorted = [...rules].sort(compareRules);
  const alike = Map.groupBy(sorted, ruleId);
  return {
    rules: new Set(sorted.map(({ exportTo }) => exportTo.join())).size < 2 ? consolidate(sorted) : byAudience(sorted),
    problems: [...alike.values()].flatMap(conflictsOf),
  };
}

/** Each audience has its own list, of the rules that it can find. The same result in several lists is one rule. */
function byAudience(sorted: readonly DestinationRuleModel[]): DestinationRuleModel[] {
  const found = new Map<string, DestinationRuleModel>();
  for (const audience of ['own', 'others', 'private'] as const)
    for (const rule of consolidate(sorted.filter((candidate) => audiencesOf(candidate).includes(audience)))) {
      const key = JSON.stringify([rule.id, rule.origins]);
      found.set(key, { ...rule, audiences: [...(found.get(key)?.audiences ?? []), audience] });
    }
  const merged = [...found.values()].sort(compareRules);
  // Ids are built from exports and selector, which several rules here may share.
  return merged.map(({ audiences = [], ...rule }, i) => {
    const same = merged.slice(0, i).filter(({ id }) => id === rule.id).length;
    const usual = audiences.join() === audiencesOf(rule).join();
    return { ...rule, ...(same > 0 && { id: `${rule.id}#${same}` }), ...(!usual && { audiences }) };
  });
}

/**
 * The list for one audience, as Istio builds it: a rule is merged into each earlier rule with the same exports and
 * selector. It also stays in the list, unless it was merged into the last entry: if there are several, the last one
 * applies.
 */
function consolidate(sorted: readonly DestinationRuleModel[]): DestinationRuleModel[] {
  const list: { readonly id: string; readonly joined: DestinationRuleModel[] }[] = [];
  for (const rule of sorted) {
    const id = ruleId(rule);
    const alike = list.filter((other) => other.id === id);
    for (const { joined } of alike) joined.push(rule);
    // Selectors tell rules with a selector apart: a second rule with the same selector would never be consulted.
    const joins = rule.workloadSelector === undefined ? list.at(-1)?.id === id : alike.length > 0;
    if (!joins) list.push({ id, joined: [rule] });
  }
  return list.map(({ id, joined }) => mergeJoined(id, joined));
}

function mergeJoined(id: string, joined: readonly DestinationRuleModel[]): DestinationRuleModel {
  const oldest = joined[0]!;
  const { policy, portPolicies } = joined.find(hasPolicy) ?? oldest;
  const subsets = new Map<string, Subset>();
  const most = mostSubsets(oldest.host);
  for (const rule of joined) {
    for (const subset of rule.subsets)
      if (!subsets.has(subset.name) && subsets.size < most) subsets.set(subset.name, subset);
    if (subsets.size === most) break;
  }
  return {
    ...oldest,
    id,
    policy,
    portPolicies,
    subsets: [...subsets.values()],
    origins: joined.flatMap((rule) => rule.origins),
  };
}

/** The parts of rules that have no effect because older rules in the list define them. */
function conflictsOf(joined: readonly DestinationRuleModel[]): Problem[] {
  const owners = new Map<string, DestinationRuleModel>();
  let policyOwner: DestinationRuleModel | undefined;
  return joined.flatMap((rule) => {
    const found = new Map<string, string>();
    for (const [index, { name }] of rule.subsets.entries()) {
      const owner = owners.get(name);
      if (owner !== undefined) {
        const message = `${rule.host} already has a subset ${JSON.stringify(name)} from ${printWinner(namesOf(owner), owner, rule)}; rename this one.`;
        found.set(`spec.subsets[${index}].name`, message);
      } else if (owners.size < mostSubsets(rule.host)) owners.set(name, rule);
      else
        found.set(
          'spec.subsets',
          `${rule.host} has ${owners.size} subsets including those of older rules, and no more are allowed. Remove subsets that no route uses.`,
        );
    }
    if (hasPolicy(rule)) {
      if (policyOwner !== undefined)
        found.set(
          'spec.trafficPolicy',
          `${rule.host} has the policy of ${printWinner(namesOf(policyOwner), policyOwner, rule)}; set it there, or only on subsets.`,
        );
      policyOwner ??= rule;
    }
    // The policy comes last, and is always reported.
    const told = [...found].filter(([field], i) => i < mostProblems || field === 'spec.trafficPolicy');
    return told.flatMap(([field, message]) =>
      rule.origins.map((object): Problem => ({ object, field, reason: 'Conflicted', message })),
    );
  });
}

function hasPolicy(rule: DestinationRuleModel): boolean {
  return Object.keys(rule.policy).length > 0 || Object.keys(rule.portPolicies).length > 0;
}

function namesOf(rule: DestinationRuleModel): string {
  return rule.origins.map(printRef).join(', ');
}
