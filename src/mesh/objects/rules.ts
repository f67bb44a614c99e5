import { sourceOfKey } from '../../api/object.ts';
import type { DestinationRule } from '../../api/gen/destination-rule.gen.ts';
import type { HasProblems, Problem } from '../../api/problem.ts';
import type { Collection, Emit, Graph, Index, Reader } from '../../cache/graph.ts';
import { compareAge } from '../../model/age.ts';
import { isWildcard } from '../../model/host.ts';
import type { RuleClient } from '../../model/client.ts';
import { fitRings } from '../../model/ring-sizes.ts';
import type { MeshService } from '../../model/service.ts';
import type { DestinationRuleModel } from '../../model/traffic-policy.ts';
import { selectRule } from '../../settle/rule-selection.ts';
import { type MergedRules, mergeRules } from '../../settle/destination-rule-merge.ts';
import { type ReconciledRule, reconcileDestinationRule } from '../../reconcilers/destination-rule/destination-rule.ts';
import { type Inputs, optionsOf } from '../inputs.ts';
import { withholdFiles } from '../../settle/withheld-files.ts';
import { declareRuleFiles, namesFiles } from './rule-files.ts';
import { type InForce, declareReconciled } from './in-force.ts';
import { type Settings, settingOf } from '../settings.ts';

export interface Rules {
  readonly parsed: Collection<ReconciledRule & InForce>;
  /** By object key, before merging. */
  readonly single: Collection<DestinationRuleModel>;
  /** Which files they may have clients read. By namespace. */
  readonly files: Collection<HasProblems>;
  readonly merged: Collection<{ rules: readonly DestinationRuleModel[]; problems: readonly Problem[] }>;
  /** By rule id. */
  readonly rules: Collection<DestinationRuleModel>;
  /** By `namespace/host`, exact hosts only. */
  readonly byHost: Index<DestinationRuleModel>;
  /** By namespace: rules for wildcard hosts; a namespace has few. */
  readonly wildcards: Index<DestinationRuleModel>;
}

export function declareRules(graph: Graph, inputs: Inputs, settings: Settings): Rules {
  const parsed = declareReconciled<ReconciledRule>(
    graph,
    'destinationRules',
    'DestinationRule',
    inputs,
    (key, object, read) =>
      reconcileDestinationRule(object as DestinationRule, {
        source: sourceOfKey(key),
        domainSuffix: optionsOf(read, inputs).domainSuffix,
        defaultExportTo: settingOf(read, settings.visibility).defaultDestinationRuleExportTo,
      }),
    { rules: [] },
  );
  const single = graph.derive('rule of object', parsed, (key, { rules }, _, emit: Emit<DestinationRuleModel>) => {
    for (const rule of rules) emit(key, rule);
  });
  const sameHost = graph.index(
    'rules of one host',
    single,
    (_, rule) => [`${rule.namespace}/${rule.host}`],
    (a, b) => compareAge(a.value, b.value),
  );
  const files = declareRuleFiles(graph, single, inputs);
  const merged = graph.derive('merged rules', sameHost, (key, members, read, emit: Emit<MergedRules>) => {
    const all = members.map((member) => member.value);
    const result = mergeRules(all);
    const allowed = all.some(namesFiles) ? read.get(files, all[0]!.namespace) : undefined;
    emit(
      key,
      allowed === undefined
        ? result
        : { ...result, rules: result.rules.flatMap((rule) => withholdFiles(rule, allowed)) },
    );
  });
  const rules = graph.derive('rules', merged, (_, value, __, emit: Emit<DestinationRuleModel>) => {
    for (const rule of value.rules) emit(rule.id, rule);
  });
  return {
    parsed,
    files,
    merged,
    single,
    rules,
    byHost: graph.index('rules by host', rules, (_, rule) =>
      isWildcard(rule.host) ? [] : [`${rule.namespace}/${rule.host}`],
    ),
    wildcards: graph.index('wildcard rules', rules, (_, rule) => (isWildcard(rule.host) ? [rule.namespace] : [])),
  };
}

/**
 * The rule that a client uses for a service. `client` is absent for clients whose namespace has no rule for it (the
 * audience shared by most).
 */
export function ruleFor(
  read: Reader,
  rules: Rules,
  service: Pick<MeshService, 'namespace' | 'host' | 'ports' | 'hostsOfEntry'>,
  rootNamespace: string,
  client: RuleClient | undefined,
): DestinationRuleModel | undefined {
  const { host, namespace } = service;
  const candidates: DestinationRuleModel[] = [];
  for (const place of new Set([client?.namespace ?? namespace, namespace, rootNamespace])) {
    for (const { value } of read.group(rules.byHost, `${place}/${host}`)) candidates.push(value);
    for (const { value } of read.group(rules.wildcards, place)) candidates.push(value);
  }
  const rule = selectRule(candidates, { host, serviceNamespace: namespace, rootNamespace, client });
  return rule && fitRule(rule, service);
}

/** The rule with this id as it applies to a service, just as {@link ruleFor} returns it. */
export function ruleOf(
  read: Reader,
  { rules }: Rules,
  id: string,
  service: Pick<MeshService, 'ports' | 'hostsOfEntry'>,
): DestinationRuleModel | undefined {
  const rule = id === '' ? undefined : read.get(rules, id);
  return rule && fitRule(rule, service);
}

/** Maximum number of subset clusters per service. All readers of its rule must agree on which these are. */
export const mostSubsetClusters = 10_000;

/** Keeps the first subsets, as many as count for all ports of the service, and limits rings so that all of them fit. */
export function fitRule(
  rule: DestinationRuleModel,
  service: Pick<MeshService, 'ports' | 'hostsOfEntry'>,
): DestinationRuleModel {
  const most = Math.floor(mostSubsetClusters / Math.max(1, service.ports.length));
  const fitting = rule.subsets.length <= most ? rule : { ...rule, subsets: rule.subsets.slice(0, most) };
  return fitRings(fitting, service);
}
