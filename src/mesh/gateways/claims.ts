import type { HasProblems, Problem } from '../../api/problem.ts';
import type { Collection, Emit, Graph } from '../../cache/graph.ts';
import type { Parent } from '../../model/route-binding.ts';
import { type VirtualServiceModel, nameOfParent } from '../../model/virtual-service.ts';
import { toldTo } from '../../settle/delegate.ts';
import { matchCanHold } from '../../settle/virtual-service-selection.ts';
import { type GatewayDeps, type Routers, routerClient } from './routers.ts';

/** At most this many are reported for a VirtualService on a gateway. */
const mostRemarks = 20;

interface RoutesOnGateway {
  /** Key of the class. */
  readonly router: string;
  /** Of the `RouteBinding`. */
  readonly key: string;
  readonly parent: Parent;
  readonly port: number;
}

/**
 * What owners of VirtualServices are told about claims that their gateways do not know. Keys are those of the uses.
 *
 * @param uses by keys that begin with the router class.
 */
export function declareClaimFindings(
  graph: Graph,
  deps: GatewayDeps,
  routers: Routers,
  uses: Collection<RoutesOnGateway>,
): Collection<HasProblems> {
  // Few compare claims; the others are looked at only once.
  const claiming = graph.index('routes with claims', deps.virtualServices.routes, (key, model) =>
    claimsIn(model).length > 0 ? [`VirtualService/${key}`] : [],
  );
  return graph.derive('claimFindings', uses, (key, use, read, emit: Emit<HasProblems>) => {
    const [found] = read.group(claiming, use.key);
    if (found === undefined) return;
    const router = read.get(routers.classes, use.router);
    const requests = router && read.get(deps.workloadPolicies.sets, router.policies)?.requests;
    if (router === undefined || (requests !== undefined && requests.length > 0)) return;
    const client = routerClient(router, read, deps);
    const scope = { client, parent: use.parent, listenerPort: use.port };
    const problems = claimsIn(found.value)
      .filter(({ match }) => matchCanHold(match, scope))
      .slice(0, mostRemarks)
      .map(({ object, field, claim }): Problem => {
        const message = `compares the claim ${claim}, but no RequestAuthentication selects the routers of gateway ${nameOfParent(use.parent)}, so requests have no claims; add one for them.`;
        return toldTo(found.value, { object, field, reason: 'Ineffective', message });
      });
    if (problems.length > 0) emit(key, { problems });
  });
}

function claimsIn({ http }: VirtualServiceModel) {
  return http.flatMap(({ object, field, matches }) =>
    matches.flatMap((match, index) => {
      const [claim] = match.claims;
      return claim === undefined
        ? []
        : [{ object, field: `${field}.match[${index}]`, match, claim: claim.path.join('.') }];
    }),
  );
}
