import type { Problem } from '../../api/problem.ts';
import type { Collection, Emit, Graph, Reader } from '../../cache/graph.ts';
import { clientResources } from '../../model/credential.ts';
import { isWildcard } from '../../model/host.ts';
import { clientFiles } from '../../model/named-files.ts';
import type { MeshService } from '../../model/service.ts';
import { tlsOfRule } from '../../settle/withheld-files.ts';
import type { Inputs } from '../inputs.ts';
import { isForOthers, mayShareFiles } from '../objects/rule-files.ts';
import type { Rules } from '../objects/rules.ts';
import type { Services } from '../objects/services.ts';
import { type Credentials, credentialState } from '../resources/credentials.ts';
import { credentialsOfRule } from '../resources/named-credentials.ts';
import type { HasProblems } from './problems.ts';

/** What owners of DestinationRules are told about credentials that none of the clients has. */
export function declareRuleCredentialProblems(
  graph: Graph,
  { single }: Rules,
  credentials: Credentials,
  inputs: Inputs,
): Collection<HasProblems> {
  return graph.derive('ruleCredentialProblems', single, (key, rule, read, emit: Emit<HasProblems>) => {
    const { exportTo, origins } = rule;
    const problems = credentialsOfRule(rule).flatMap((tls): readonly Problem[] => {
      const { pairs, roots } = clientResources(tls);
      const isClient = (account: string): boolean =>
        exportTo.includes('*') || exportTo.includes(account.split('/', 1)[0]!);
      const problem =
        pairs.map((pair) => problemOf(read, pair, 'pair', isClient)).find((text) => text !== undefined) ??
        (roots === '' ? undefined : problemOf(read, roots, 'roots', isClient));
      if (problem === undefined) return [];
      return [{ object: origins[0]!, field: tls.credentialField ?? '', reason: 'RefNotFound', message: problem }];
    });
    if (problems.length > 0) emit(key, { problems });
  });

  /** Undefined if some client has what it needs, or may soon have it, or there are none. */
  function problemOf(
    read: Reader,
    resource: string,
    part: 'pair' | 'roots',
    isClient: (account: string) => boolean,
  ): string | undefined {
    let found: string | undefined;
    for (const { value } of read.group(credentials.byResource, resource)) {
      if (!isClient(value.account)) continue;
      const { problem, content, isPending } = credentialState(read, inputs, value, part);
      if (isPending || (content !== undefined && problem === undefined)) return undefined;
      found ??=
        content === undefined
          ? `${problem}; requests that need it get 503.`
          : `${problem}; what it last contained stays in use.`;
    }
    return found;
  }
}

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
