import type { HasProblems, Problem } from '../../api/problem.ts';
import { quote } from '../../api/quote.ts';
import type { Collection, Emit, Graph } from '../../cache/graph.ts';
import type { Policies } from '../objects/policies.ts';
import { type Settings, settingOf } from '../settings.ts';

/** What owners of AuthorizationPolicies are told about extension providers that cannot be asked. */
export function declareAuthorizerProblems(
  graph: Graph,
  { authorization }: Policies,
  { security }: Settings,
): Collection<HasProblems> {
  return graph.derive(
    'authorizerProblems',
    authorization.models,
    (key, { ref: object, action, provider, dryRun }, read, emit: Emit<HasProblems>) => {
      if (action !== 'CUSTOM' || provider === '') return;
      const problems: Problem[] = [];
      if (dryRun)
        problems.push({
          object,
          field: 'metadata.annotations["istio.io/dry-run"]',
          reason: 'Ineffective',
          message: 'has no dry run with action CUSTOM: the policy is left out.',
        });
      else if (!settingOf(read, security).authorizers.some(({ name }) => name === provider))
        problems.push({
          object,
          field: 'spec.provider.name',
          reason: 'RefNotFound',
          message: `${quote(provider)} is not an extension provider of the mesh config that can be asked; what the rules match is denied.`,
        });
      if (problems.length > 0) emit(key, { problems });
    },
  );
}
