import type { HasProblems } from '../../api/problem.ts';
import type { Collection, Emit, Graph } from '../../cache/graph.ts';
import { isWildcard } from '../../model/host.ts';
import { clientFiles } from '../../model/named-files.ts';
import type { MeshService } from '../../model/service.ts';
import { tlsOfRule } from '../../settle/withheld-files.ts';
import type { Inputs } from '../inputs.ts';
import { isForOthers, mayShareFiles } from '../objects/rule-files.ts';
import type { Rules } from '../objects/rules.ts';
import type { Services } from '../objects/services.ts';

/** What owners of DestinationRules are told about files that clients in other namespaces would need, and do not read. */
export function declareRuleFileProblems(
  graph: Graph,
  { single }: Rules,
  { byHost }: Pick<Services, 'byHost'>,
  inputs: Inputs,
): Collection<HasProblems> {
  return graph.derive('ruleFileProblems', single, (key, rule, read, emit: Emit<HasProblems>) => {
    const { namespace, host, origins } = rule;
    const named = tlsOfRule(rule).find((tls) => clientFiles(tls).length > 0);
    if (named === undefined || !isForOthers(rule) || mayShareFiles(read, inputs, namespace)) return;
    // Clients in other namespaces look for rules only in the namespace of the service.
    const isUsed = ({ exportTo, ...service }: MeshService): boolean =>
      service.namespace === namespace && exportTo.some((to) => to !== namespace && to !== '~');
    if (!isWildcard(host) && !read.group(byHost, host).some(({ value }) => isUsed(value))) return;
    const message = `names files that clients in other namespaces do not read, so their connections to ${host} fail. Set exportTo to ["."], let the clients' namespaces have rules of their own, or set --cross-namespace-files=on.`;
    emit(key, {
      problems: [{ object: origins[0]!, field: named.filesField ?? 'spec', reason: 'Ineffective', message }],
    });
  });
}
