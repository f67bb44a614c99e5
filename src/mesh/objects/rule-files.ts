import type { HasProblems, Problem } from '../../api/problem.ts';
import type { Collection, Emit, Graph, Reader } from '../../cache/graph.ts';
import { compareAge } from '../../model/age.ts';
import { clientFiles } from '../../model/named-files.ts';
import { mostNamed, mostNamedForOthers } from '../../model/named-limits.ts';
import type { DestinationRuleModel } from '../../model/traffic-policy.ts';
import { audiencesOf } from '../../settle/rule-selection.ts';
import { type AllowedFiles, tlsOfRule } from '../../settle/withheld-files.ts';
import { type Inputs, optionsOf } from '../inputs.ts';

/** The files that rules of a namespace may have clients read: those of the oldest rules. By namespace. */
export function declareRuleFiles(
  graph: Graph,
  single: Collection<DestinationRuleModel>,
  inputs: Inputs,
): Collection<AllowedFiles & HasProblems> {
  const naming = graph.index(
    'rules with files',
    single,
    (_, rule) => (namesFiles(rule) ? [rule.namespace] : []),
    (a, b) => compareAge(a.value, b.value),
  );
  return graph.derive('files of rules', naming, (namespace, members, read, emit: Emit<AllowedFiles & HasProblems>) => {
    const rules = members.map(({ value }) => value);
    const own = limited(rules, mostNamed, `that DestinationRules in namespace ${namespace} may name`);
    const shared = mayShareFiles(read, inputs, namespace) ? rules.filter(isForOthers) : [];
    const others = limited(
      shared,
      mostNamedForOthers,
      `that DestinationRules in namespace ${namespace} may name for clients in other namespaces`,
    );
    emit(namespace, { own: own.files, others: others.files, problems: [...own.problems, ...others.problems] });
  });
}

export function namesFiles(rule: DestinationRuleModel): boolean {
  return tlsOfRule(rule).some((tls) => clientFiles(tls).length > 0);
}

/** Whether proxies in other namespaces read files that objects of this one name. */
export function mayShareFiles(read: Reader, inputs: Inputs, namespace: string): boolean {
  const { rootNamespace, crossNamespaceFiles } = optionsOf(read, inputs);
  return crossNamespaceFiles || namespace === rootNamespace;
}

export const isForOthers = (rule: DestinationRuleModel): boolean => audiencesOf(rule).includes('others');

function limited(rules: readonly DestinationRuleModel[], most: number, which: string) {
  const files = new Set<string>();
  const problems = rules.flatMap((rule): Problem[] => {
    let cut: string | undefined;
    for (const tls of tlsOfRule(rule))
      for (const file of clientFiles(tls))
        if (files.size < most) files.add(file);
        else if (!files.has(file)) cut ??= tls.filesField;
    if (cut === undefined) return [];
    const message = `names files beyond the ${most} ${which}; connections that need them fail. Name fewer.`;
    return [{ object: rule.origins[0]!, field: cut, reason: 'Ineffective', message }];
  });
  return { files: [...files], problems };
}
