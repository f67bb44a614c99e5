import type { ObjectRef } from '../../api/object.ts';
import type { Collection, Emit, Graph, Index } from '../../cache/graph.ts';
import type { GatewayModel } from '../../model/gateway.ts';
import { type Labels, printSelector } from '../../model/labels.ts';
import type { VirtualServiceModel } from '../../model/virtual-service.ts';
import { wholeOf } from '../whole.ts';

/** Routers for which some routes are. */
export interface GatewayOfRoutes {
  readonly selector: Labels;
  /** The object with the first of these routes. */
  readonly routes: ObjectRef;
}

/**
 * Each distinct selector of gateways with routes that are of interest, for `allOf`.
 *
 * @param name of what is of interest.
 */
export function declareGatewaysOfRoutes(
  graph: Graph,
  name: string,
  of: { readonly routes: Collection<VirtualServiceModel>; readonly gateways: Collection<GatewayModel> },
  isOfInterest: (model: VirtualServiceModel) => boolean,
): Index<GatewayOfRoutes> {
  const byGateway = graph.index(`routes with ${name} by gateway`, of.routes, (_, model) =>
    isOfInterest(model) ? model.gateways : [],
  );
  const found = graph.derive(
    `gateways with ${name}`,
    of.gateways,
    (key, gateway, read, emit: Emit<GatewayOfRoutes>) => {
      const [first] = read.group(byGateway, `${gateway.namespace}/${gateway.name}`);
      if (first !== undefined) emit(key, { selector: gateway.selector, routes: first.value.ref });
    },
  );
  const distinct = graph.derive(
    `selectors of gateways with ${name}`,
    graph.index(`gateways with ${name} by selector`, found, (_, { selector }) => [printSelector(selector)]),
    (key, [{ value }], _, emit: Emit<GatewayOfRoutes>) => emit(key, value),
  );
  return wholeOf(graph, `all selectors of gateways with ${name}`, distinct);
}
