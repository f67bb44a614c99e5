import type { VirtualHostContent } from '../../envoy/encode/encoder.ts';
import type { Route } from '../../envoy/gen/types.gen.ts';
import { buildRoutes, clustersOf } from '../../envoy/route/route.ts';
import type { Traits } from '../../model/traits.ts';
import { type DefaultRouteInput, settleDefaultRoute } from '../../settle/default-route.ts';
import { type EncodedRoutes, joinRoutes } from './encoded-routes.ts';

/** What a virtual host of a sidecar serves. */
export interface Content {
  /** Its own routes. */
  readonly own?: readonly Route[];
  readonly encoded: VirtualHostContent;
}

/**
 * Undefined if none of the routes applies to these clients.
 *
 * @param pieces that requests can reach, of one or more objects, in the order in which they are evaluated.
 */
export function routedContent(pieces: readonly EncodedRoutes[]): Content | undefined {
  const encoded = joinRoutes(pieces);
  return encoded.routes.length > 0 ? { encoded } : undefined;
}

/** The default content: the service itself. */
export function defaultContent(input: DefaultRouteInput, traits: Traits): Content {
  const rule = settleDefaultRoute(input);
  const encoded = { routes: [], clusters: clustersOf([rule]), own: () => rule.sources };
  return { own: buildRoutes([rule], traits), encoded };
}
