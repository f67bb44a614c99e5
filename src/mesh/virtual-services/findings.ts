import type { HasProblems, Problem } from '../../api/problem.ts';
import { boundProblems } from '../../api/problem-list.ts';
import type { Collection, Emit, Graph, Reader } from '../../cache/graph.ts';
import type { GatewayModel } from '../../model/gateway.ts';
import type { VirtualServiceModel } from '../../model/virtual-service.ts';
import type { DestinationDeps } from '../clients/destinations.ts';
import { type GatewayHosts, declareGatewayHosts } from '../findings/gateway-hosts.ts';
import { declareIdleDelegates } from './idle-delegates.ts';
import { outsideGateways } from './outside-gateways.ts';
import { missingDestinations, missingGateways } from './references.ts';
import { addressHosts, uselessPorts, uselessRoutes } from './useless-routes.ts';
import type { VirtualServices } from './virtual-services.ts';

/**
 * What owners of VirtualServices are told, besides what is wrong with one by itself: names that lead nowhere, and routes
 * that nobody takes.
 *
 * @param gateways as parsed.
 */
export function declareVirtualServiceFindings(
  graph: Graph,
  virtualServices: VirtualServices,
  gateways: Collection<GatewayModel>,
  deps: DestinationDeps,
): readonly Collection<HasProblems>[] {
  const gatewayHosts = declareGatewayHosts(graph, gateways);
  const references = graph.derive(
    'references of routes',
    virtualServices.routes,
    (key, model, read, emit: Emit<HasProblems>) => {
      const problems = boundProblems(findingsOf(key, model, read, { ...deps, gatewayHosts }));
      if (problems.length > 0) emit(key, { problems });
    },
  );
  return [references, declareIdleDelegates(graph, virtualServices)];
}

/** One after the other: an object can have a hundred thousand destinations. */
function* findingsOf(
  key: string,
  model: VirtualServiceModel,
  read: Reader,
  deps: DestinationDeps & { readonly gatewayHosts: Collection<GatewayHosts> },
): Iterable<Problem> {
  yield* missingDestinations(model, read, deps);
  yield* missingGateways(key, model, read, deps);
  yield* outsideGateways(key, model, read, deps.gatewayHosts);
  yield* uselessRoutes(key, model, read, deps);
  yield* uselessPorts(model, read, deps);
  yield* addressHosts(model, read, deps);
}
