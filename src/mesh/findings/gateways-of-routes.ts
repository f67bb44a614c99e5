import type { ObjectRef } from '../../api/object.ts';
import type { Collection, Emit, Graph, Index } from '../../cache/graph.ts';
import type { GatewayModel } from '../../model/gateway.ts';
import { type Labels, printSelector } from '../../model/labels.ts';
import { type RouteFeature, gatewaysOf, parentKey } from '../../model/route-binding.ts';
import type { RouteBindings } from '../objects/route-bindings.ts';
import { wholeOf } from '../whole.ts';

/** Routers for which some routes are. */
export interface GatewayOfRoutes {
  readonly selector: Labels;
  /** The object with the first of these routes. */
  readonly routes: ObjectRef;
}

/** Each distinct selector of gateways with routes that have a feature, for `allOf`. */
export function declareGatewaysOfRoutes(
  graph: Graph,
  feature: RouteFeature,
  { bindings, gateways }: { readonly bindings: RouteBindings; readonly gateways: Collection<GatewayModel> },
): Index<GatewayOfRoutes> {
  const byParent = graph.index(`routes with ${feature} by parent`, bindings.all, (_, binding) =>
    binding.features.includes(feature) ? [...gatewaysOf(binding).keys()] : [],
  );
  const found = graph.derive(
    `gateways with ${feature}`,
    gateways,
    (key, { ref, selector }, read, emit: Emit<GatewayOfRoutes>) => {
      const [first] = read.group(byParent, parentKey(ref));
      if (first !== undefined) emit(key, { selector, routes: first.value.ref });
    },
  );
  const distinct = graph.derive(
    `selectors of gateways with ${feature}`,
    graph.index(`gateways with ${feature} by selector`, found, (_, { selector }) => [printSelector(selector)]),
    (key, [{ value }], _, emit: Emit<GatewayOfRoutes>) => emit(key, value),
  );
  return wholeOf(graph, `all selectors of gateways with ${feature}`, distinct);
}
