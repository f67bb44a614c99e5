import type { HasProblems, Problem } from '../../api/problem.ts';
import { quote } from '../../api/quote.ts';
import type { Collection, Emit, Graph, Index } from '../../cache/graph.ts';
import { keySetKey } from '../../model/key-set.ts';
import type { JwksSource, RequestAuthenticationModel } from '../../model/request-authentication.ts';
import type { Inputs } from '../inputs.ts';
import type { Policies } from '../objects/policies.ts';

/** Key sets to fetch, by {@link keySetKey}. */
export type WantedKeySets = Collection<WantedKeySet>;

export interface WantedKeySet {
  readonly source: JwksSource;
  /** Of one of the objects that need it. */
  readonly namespace: string;
}

export function declareWantedKeySets(graph: Graph, { requests }: Policies): WantedKeySets {
  const byKey: Index<RequestAuthenticationModel> = graph.index('rules by key set', requests.models, (_, { rules }) => [
    ...new Set(rules.flatMap(({ keys }) => (keys.kind === 'fetched' ? [keySetKey(keys.source)] : []))),
  ]);
  return graph.derive('wantedKeySets', byKey, (key, members, _, emit: Emit<WantedKeySet>) => {
    const sources = members
      .flatMap(({ value }) => value.rules)
      .flatMap(({ keys }) => (keys.kind === 'fetched' && keySetKey(keys.source) === key ? [keys.source] : []));
    const [first] = sources;
    const timeout = Math.max(...sources.map((source) => source.timeout));
    if (first !== undefined) emit(key, { source: { ...first, timeout }, namespace: members[0].value.namespace });
  });
}

/** What owners of RequestAuthentications are told about keys that cannot be fetched. */
export function declareKeySetProblems(
  graph: Graph,
  { requests }: Policies,
  { keySets }: Inputs,
): Collection<HasProblems> {
  return graph.derive('keySetProblems', requests.models, (key, { ref, rules }, read, emit: Emit<HasProblems>) => {
    const problems = rules.flatMap(({ keys }, i): readonly Problem[] => {
      if (keys.kind !== 'fetched') return [];
      const found = read.get(keySets, keySetKey(keys.source));
      if (found?.problem === undefined) return [];
      const { uri, issuer } = keys.source;
      const consequence =
        found.jwks === undefined
          ? 'no token of this issuer is accepted.'
          : `those of ${found.fetchedAt} stay in use, for a week at most.`;
      const message = `The keys at ${quote(uri === '' ? issuer : uri)} cannot be fetched (${found.problem}); ${consequence}`;
      return [
        {
          object: ref,
          field: `spec.jwtRules[${i}].${uri === '' ? 'issuer' : 'jwksUri'}`,
          reason: 'RefNotFound',
          message,
        },
      ];
    });
    if (problems.length > 0) emit(key, { problems });
  });
}
