import type { HasProblems } from '../../api/problem.ts';
import type { Collection, Emit, Graph } from '../../cache/graph.ts';
import type { Parent } from '../../model/route-binding.ts';
import { type GatewayDeps, type Routers, routerClient } from './routers.ts';

interface RoutesOnGateway {
  /** Key of the class. */
  readonly router: string;
  /** Of the `RouteBinding`. */
  readonly key: string;
  readonly parent: Parent;
  readonly port: number;
}

/**
 * What owners of routes are told about claims that their gateways do not know. Keys are those of the uses.
 *
 * @param uses by keys that begin with the router class.
 */
export function declareClaimFindings(
  graph: Graph,
  deps: GatewayDeps,
  routers: Routers,
  uses: Collection<RoutesOnGateway>,
): Collection<HasProblems> {
  return graph.derive('claimFindings', uses, (key, use, read, emit: Emit<HasProblems>) => {
    const { bindings } = deps;
    if (read.get(bindings.all, use.key)?.features.includes('claims') !== true) return;
    const router = read.get(routers.classes, use.router);
    const requests = router && read.get(deps.workloadPolicies.sets, router.policies)?.requests;
    if (router === undefined || (requests !== undefined && requests.length > 0)) return;
    const scope = { client: routerClient(router, read, deps), parent: use.parent, listenerPort: use.port };
    const problems = bindings.unverifiedClaims(read, use.key, scope);
    if (problems.length > 0) emit(key, { problems });
  });
}
