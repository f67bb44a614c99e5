import type { Collection, Emit, Graph, Reader } from '../../cache/graph.ts';
import type { Encoder } from '../../envoy/encode/encoder.ts';
import { toldTo } from '../../settle/delegate.ts';
import { type VirtualServiceRouteContext, settleVirtualServiceRoutes } from '../../settle/virtual-service-routes.ts';
import { type EncodedRoutes, encodeRoutes } from './encoded-routes.ts';
import type { VirtualServices } from '../objects/virtual-services.ts';

/** A use of a VirtualService's routes by some virtual host. */
export interface RouteUse {
  /** Equal if the routes are equal. */
  readonly routes: string;
  readonly virtualService: string;
}

export interface RoutePieces {
  /** The routes of a use, in order. */
  of(read: Reader, use: RouteUse): readonly EncodedRoutes[];
}

/**
 * Routes of VirtualServices, encoded once for all virtual hosts that use them, whatever their host or table. A list of
 * thousands is built in pieces, each in a separate step.
 */
export function declareRoutePieces<Use extends RouteUse>(
  graph: Graph,
  name: string,
  deps: { readonly virtualServices: VirtualServices; readonly encoder: Encoder },
  uses: readonly Collection<Use>[],
  contextOf: (use: Use, read: Reader) => Omit<VirtualServiceRouteContext, 'model'> | undefined,
): RoutePieces {
  const { cut, routes: models } = deps.virtualServices;
  const used = graph.derive(
    `${name}.used`,
    graph.index(`${name} by routes`, uses, (_, { routes }) => [routes]),
    (key, members, read, emit: Emit<Use>) => {
      const use = members[0].value;
      const { length } = read.get(cut, use.virtualService) ?? [];
      for (let i = 0; i < length; i++) emit(pieceKey(key, i), use);
    },
  );
  const pieces = graph.derive(name, used, (key, use, read, emit: Emit<EncodedRoutes>) => {
    const http = read.get(cut, use.virtualService)?.[indexOf(key)];
    const model = read.get(models, use.virtualService);
    const context = contextOf(use, read);
    if (http === undefined || model === undefined || context === undefined) return;
    const settled = settleVirtualServiceRoutes(http, { ...context, model });
    const problems = settled.problems.map((problem) => toldTo(model, problem));
    emit(key, encodeRoutes({ ...settled, problems }, context.client.traits, deps.encoder));
  });
  return {
    of: (read, { routes, virtualService }) =>
      (read.get(cut, virtualService) ?? []).flatMap((_, i) => read.get(pieces, pieceKey(routes, i)) ?? []),
  };
}

const pieceKey = (routes: string, index: number): string => `${routes}|${index}`;

const indexOf = (key: string): number => Number(key.slice(key.lastIndexOf('|') + 1));
