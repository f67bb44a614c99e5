import type { HasProblems, Problem } from '../../api/problem.ts';
import type { Collection, Emit, Graph, Reader } from '../../cache/graph.ts';
import { asSecret, clientResources, parseAccountKey } from '../../model/credential.ts';
import type { Inputs } from '../inputs.ts';
import type { Rules } from '../objects/rules.ts';
import { type Credentials, credentialState } from '../resources/credentials.ts';
import { credentialsOfRule } from '../resources/named-credentials.ts';

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
      const named = clientResources(tls);
      const pairs = named.pairs.map((pair) => asSecret(pair, 'pair'));
      const roots = asSecret(named.roots, 'roots');
      const isClient = (account: string): boolean =>
        exportTo.includes('*') || exportTo.includes(parseAccountKey(account).namespace);
      const ofPair = pairs.map((pair) => problemOf(read, pair, 'pair', isClient)).find((text) => text !== undefined);
      const message = ofPair ?? (roots === '' ? undefined : problemOf(read, roots, 'roots', isClient));
      if (message === undefined) return [];
      const field = tls.credentialFields?.[ofPair === undefined ? 'roots' : 'pair'] ?? '';
      return [{ object: origins[0]!, field, reason: 'RefNotFound', message }];
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
      if (isPending || problem === undefined) return undefined;
      found ??=
        content === undefined
          ? `${problem}; requests that need it get 503.`
          : `${problem}; what it last contained stays in use.`;
    }
    return found;
  }
}
