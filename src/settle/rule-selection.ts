import { compareAge } from '../model/age.ts';
import { compareSpecificity, isSubsetOf } from '../model/host.ts';
import type { Labels } from '../model/labels.ts';
import type { DestinationRuleModel, RuleAudience } from '../model/traffic-policy.ts';

export interface RuleQuery {
  /** Host of the service; may be a wildcard. */
  readonly host: string;
  readonly serviceNamespace: string;
  readonly rootNamespace: string;
  /** Absent: a client whose namespace has no rule for the host, and to which no rule is exported by name. */
  readonly clientNamespace?: string | undefined;
  /** Whether the client's proxy has the labels. If absent (inbound), rules with a selector never apply. */
  readonly matches?: ((selector: Labels) => boolean) | undefined;
  /** Merged rules of a namespace; at least those that cover the host, in any order. */
  rulesOf(namespace: string): readonly DestinationRuleModel[];
}

/**
 * The rule that a client uses for a service. The first namespace with any rule for the host decides, even if only by a
 * wildcard: the client's, then the service's, then the root namespace. Within it, the most specific host wins.
 */
export function selectRule(query: RuleQuery): DestinationRuleModel | undefined {
  const { clientNamespace, serviceNamespace, rootNamespace } = query;
  if (clientNamespace !== undefined) {
    // Rules in the root namespace are meant for the whole mesh. Its own proxies (gateways) are bound by those exported
    // only to it, and otherwise look at the service's namespace first, like all others.
    const rules = mostSpecific(query, clientNamespace, clientNamespace === rootNamespace ? 'private' : 'own');
    if (rules.length > 0) return selectByLabels(query, rules);
  }
  for (const namespace of [serviceNamespace, rootNamespace]) {
    // A more specific rule for other clients hides a less specific one for all.
    const rules = mostSpecific(query, namespace, 'others').filter((rule) => isExportedTo(rule, clientNamespace));
    if (rules.length > 0) return selectByLabels(query, rules);
  }
  return undefined;
}

/** Rules with a selector before those without, then oldest first. */
export function compareRules(a: DestinationRuleModel, b: DestinationRuleModel): number {
  return Number(a.workloadSelector === undefined) - Number(b.workloadSelector === undefined) || compareAge(a, b);
}

function mostSpecific(query: RuleQuery, namespace: string, audience: RuleAudience): readonly DestinationRuleModel[] {
  let best: DestinationRuleModel[] = [];
  for (const rule of query.rulesOf(namespace)) {
    if (!isSubsetOf(query.host, rule.host) || !audiencesOf(rule).includes(audience)) continue;
    const order = best[0] === undefined ? -1 : compareSpecificity(rule.host, best[0].host);
    if (order < 0) best = [rule];
    else if (order === 0) best.push(rule);
  }
  return best.length > 1 ? best.sort(compareRules) : best;
}

/** The first rule whose selector matches the proxy, or else the last one without a selector. */
function selectByLabels(query: RuleQuery, rules: readonly DestinationRuleModel[]): DestinationRuleModel | undefined {
  const selected = rules.find(
    ({ namespace, workloadSelector }) =>
      workloadSelector !== undefined &&
      namespace === query.clientNamespace &&
      query.matches?.(workloadSelector) === true,
  );
  return selected ?? rules.findLast((rule) => rule.workloadSelector === undefined);
}

/** Who can find a rule. */
export function audiencesOf(rule: DestinationRuleModel): readonly RuleAudience[] {
  if (rule.audiences !== undefined) return rule.audiences;
  if (!isExportedTo(rule, rule.namespace)) return ['others'];
  return rule.exportTo.length === 1 && rule.exportTo[0] === rule.namespace ? ['own', 'private'] : ['own', 'others'];
}

function isExportedTo(rule: DestinationRuleModel, namespace: string | undefined): boolean {
  return rule.exportTo.includes('*') || (namespace !== undefined && rule.exportTo.includes(namespace));
}
