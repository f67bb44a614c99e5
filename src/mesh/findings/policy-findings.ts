import type { HasProblems } from '../../api/problem.ts';
import type { Collection, Graph } from '../../cache/graph.ts';
import type { GatewayModel } from '../../model/gateway.ts';
import type { Inputs } from '../inputs.ts';
import type { Services } from '../objects/services.ts';
import type { Sidecars } from '../objects/sidecars.ts';
import type { RouteBindings } from '../objects/route-bindings.ts';
import type { Workloads } from '../objects/workloads.ts';
import { type AuthorizationFindingDeps, declareAuthorizationFindings } from './authorization.ts';
import { declareAuthorizerProblems } from './authorizers.ts';
import { type IdlePolicyDeps, declareIdlePolicies } from './idle-policies.ts';
import { declareKeySetProblems } from './key-sets.ts';
import { declarePreflightRemarks } from './preflights.ts';
import { declareRouterServers } from './router-servers.ts';
import { declareSharedWorkloads } from './shared-workloads.ts';
import { declareTokenFindings } from './tokens.ts';

export interface PolicyFindingDeps extends AuthorizationFindingDeps, IdlePolicyDeps {
  readonly inputs: Inputs;
  readonly workloads: Workloads;
  readonly services: Services;
  readonly sidecars: Sidecars;
  readonly bindings: RouteBindings;
}

/**
 * What owners of security policies are told, besides what is wrong with a policy by itself.
 *
 * @param gateways by object key.
 */
export function declarePolicyFindings(
  graph: Graph,
  deps: PolicyFindingDeps,
  gateways: Collection<GatewayModel>,
): readonly Collection<HasProblems>[] {
  const { inputs, policies, settings, services, bindings } = deps;
  const routers = declareRouterServers(graph, gateways);
  return [
    declareKeySetProblems(graph, policies, inputs),
    declareAuthorizerProblems(graph, policies, settings),
    declareAuthorizationFindings(graph, deps, routers),
    ...declareTokenFindings(graph, policies, settings, services, bindings, gateways, routers),
    declarePreflightRemarks(graph, { policies, bindings, gateways, settings }),
    ...declareIdlePolicies(graph, deps),
    declareSharedWorkloads(graph, deps),
  ];
}
