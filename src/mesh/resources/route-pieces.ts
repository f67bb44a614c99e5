import type { Collection, Emit, Graph, Reader } from '../../cache/graph.ts';
import type { Encoder } from '../../envoy/encode/encoder.ts';
import type { RouteContext } from '../../settle/route-scope.ts';
import type { RouteBindings } from '../objects/route-bindings.ts';
import { type DestinationDeps, targetsOf } from '../clients/destinations.ts';
import type { ClientView } from '../clients/lookups.ts';
import type { PatchedRoutes, Patches } from '../clients/patch-sets.ts';
import { patchingAt } from './patching.ts';
import { type EncodedRoutes, encodeRoutes } from './encoded-routes.ts';

/** A use of an object's routes by some virtual host. */
export interface RouteUse {
  /** Of the {@link RouteBindings}. */
  readonly key: string;
  /** Equal if the routes are equal. */
  readonly routes: string;
}

export interface RoutePieces {
  readonly all: Collection<EncodedRoutes>;
  /** The routes of a use, in order. */
  of(read: Reader, use: RouteUse): readonly EncodedRoutes[];
}

export interface RoutePieceDeps extends DestinationDeps {
  readonly bindings: RouteBindings;
  readonly patches: Patches | undefined;
  readonly encoder: Encoder;
}

/** For whom routes are. */
export interface UseContext {
  /** Whose destinations count. */
  readonly view: ClientView;
  readonly scope: Omit<RouteContext, 'targets'>;
  /** Absent: nothing patches them. */
  readonly patched?: PatchedRoutes;
}

/**
 * Routes, encoded once for all virtual hosts that use them, whatever their host or table. A list of thousands is built in
 * pieces, each in a separate step.
 */
export function declareRoutePieces<User, Use extends RouteUse>(
  graph: Graph,
  name: string,
  deps: RoutePieceDeps,
  users: readonly Collection<User>[],
  usesOf: (user: User) => readonly Use[],
  contextOf: (use: Use, read: Reader) => UseContext | undefined,
): RoutePieces {
  const { bindings, encoder } = deps;
  const used = graph.derive(
    `${name}.used`,
    graph.index(`${name} by routes`, users, (_, user) => usesOf(user).map(({ routes }) => routes)),
    (key, [first], read, emit: Emit<Use>) => {
      const use = usesOf(first.value).find(({ routes }) => routes === key)!;
      const count = bindings.countPieces(read, use.key);
      for (let i = 0; i < count; i++) emit(pieceKey(key, i), use);
    },
  );
  const pieces = graph.derive(name, used, (key, use, read, emit: Emit<EncodedRoutes>) => {
    const context = contextOf(use, read);
    if (context === undefined) return;
    const { view, scope, patched } = context;
    const piece = indexOf(key);
    const destinations = bindings.destinations(read, use.key, piece);
    const targets = targetsOf(destinations, scope.listenerPort, view, read, deps);
    const settled = bindings.settle(read, use.key, piece, { ...scope, targets });
    const patching = patched && patchingAt(read, deps.patches, patched.set, patched.slot);
    if (settled !== undefined) emit(key, encodeRoutes(settled, view.traits, encoder, patching));
  });
  return {
    all: pieces,
    of: (read, use) =>
      Array.from(
        { length: bindings.countPieces(read, use.key) },
        (_, i) => read.get(pieces, pieceKey(use.routes, i)) ?? [],
      ).flat(),
  };
}

const pieceKey = (routes: string, index: number): string => `${routes}|${index}`;

const indexOf = (key: string): number => Number(key.slice(key.lastIndexOf('|') + 1));
