import type { HasProblems } from '../../api/problem.ts';
import type { Collection, Graph } from '../../cache/graph.ts';
import type { Credentials } from '../resources/credentials.ts';
import type { DestinationDeps } from '../clients/destinations.ts';
import type { RouteBindings } from '../objects/route-bindings.ts';
import type { Workloads } from '../objects/workloads.ts';
import { declareEmptySubsets } from './empty-subsets.ts';
import { declareRuleCredentialProblems } from './rule-credentials.ts';
import { declareRuleRemarks } from './rule-remarks.ts';
import { declareRuleFileProblems } from './unread-files.ts';

export interface RuleFindingDeps extends DestinationDeps {
  readonly bindings: RouteBindings;
  readonly workloads: Workloads;
}

/** What owners of DestinationRules are told, besides what is wrong with a rule by itself. */
export function declareRuleFindings(
  graph: Graph,
  deps: RuleFindingDeps,
  credentials: Credentials,
): readonly Collection<HasProblems>[] {
  const { rules, services, inputs } = deps;
  return [
    declareRuleCredentialProblems(graph, rules, credentials, inputs),
    declareRuleFileProblems(graph, rules, services, inputs),
    declareRuleRemarks(graph, deps),
    declareEmptySubsets(graph, deps),
  ];
}
