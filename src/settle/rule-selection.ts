import { compareAge } from '../model/age.ts';
import { compareSpecificity, isSubsetOf } from '../model/host.ts';
import { type RuleClient, matchesSelector } from '../model/client.ts';
import type { DestinationRuleModel, RuleAudience } from '../model/traffic-policy.ts';

export interface RuleQuery {
  /** Host of the service; may be a wildcard. */
  readonly host: string;
  readonly serviceNamespace: string;
  readonly rootNamespace: string;
  /** Absent: a client whose namespace has no rule for the host, and to which no rule is exported by name. */
  readonly client?: RuleClient | undefined;
}

/**
 * The rule that a client uses for a service. The first namespace with any rule for the host decides, even if only by a
 * wildcard: the client's, then the service's, then the root namespace. Within it, the most specific host wins.
 *
 * @param all merged rules of these namespaces; at least those that cover the host, in any order.
 */
export function selectRule(all: readonly DestinationRuleModel[], query: RuleQuery): DestinationRuleModel | undefined {
  if (all.length === 0) return undefined;
  const { client, serviceNamespace, rootNamespace } = query;
  const clientNamespace = client?.namespace;
  if (clientNamespace !== undefined) {
    // Rules in the root namespace are meant for the whole mesh. Its own proxies (gateways) are bound by those exported
    // only to it, and otherwise look at the service's namespace first, like all others.
    const rules = mostSpecific(all, query, clientNamespace, clientNamespace === rootNamespace ? 'private' : 'own');
    if (rules.length > 0) return selectByLabels(client, rules);
  }
  for (const namespace of [serviceNamespace, rootNamespace]) {
    // A more specific rule for other clients hides a less specific one for all.
    const rules = mostSpecific(all, query, namespace, 'others').filter((rule) => isExportedTo(rule, clientNamespace));
    if (rules.length > 0) return selectByLabels(client, rules);
  }
  return undefined;
}

/** Rules with a selector before those without, then oldest first. */
export function compareRules(a: DestinationRuleModel, b: DestinationRuleModel): number {
  return Number(a.workloadSelector === undefined) - Number(b.workloadSelector === undefined) || compareAge(a, b);
}

function mostSpecific(
  all: readonly DestinationRuleModel[],
  { host }: RuleQuery,
  namespace: string,
  audience: RuleAudience,
): readonly DestinationRuleModel[] {
  let best: DestinationRuleModel[] = [];
  for (const rule of all) {
    if (rule.namespace !== namespace || !isSubsetOf(host, rule.host) || !audiencesOf(rule).includes(audience)) continue;
    const order = best[0] === undefined ? -1 : compareSpecificity(rule.host, best[0].host);
    if (order < 0) best = [rule];
    else if (order === 0) best.push(rule);
  }
  return best.length > 1 ? best.sort(compareRules) : best;
}

/** The first rule whose selector matches the proxy, or else the last one without a selector. */
function selectByLabels(
  client: RuleClient | undefined,
  rules: readonly DestinationRuleModel[],
): DestinationRuleModel | undefined {
  const selected =
    client &&
    rules.find(
      ({ namespace, workloadSelector }) =>
        workloadSelector !== undefined && namespace === client.namespace && matchesSelector(client, workloadSelector),
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
