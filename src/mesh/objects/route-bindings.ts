import type { Collection, Emit, Graph, Index, Reader } from '../../cache/graph.ts';
import { compareAge } from '../../model/age.ts';
import { isWildcard, wildcardKey } from '../../model/host.ts';
import type { ConnectionRoutes } from '../../model/l4-routes.ts';
import type { SettledRoutes } from '../../model/route.ts';
import { type RouteBinding, isInMesh } from '../../model/route-binding.ts';
import type { RouteContext, RouteScope } from '../../settle/route-scope.ts';

/** The routes of an object. */
export interface RouteKey {
  readonly kind: string;
  /** Of the object. */
  readonly key: string;
}

/** Routes, and the one of their hosts by which they were found. */
export interface FoundRoutes extends RouteKey {
  readonly matched: string;
}

/** What the rules of one kind of object mean: nothing else knows them. */
export interface RouteRules {
  /** Of several objects for a host, one has it. */
  readonly isExclusive: boolean;
  /**
   * Of the routes of this kind for a host, those whose rules apply to requests of a sidecar, in the order in which they are
   * evaluated.
   *
   * @param found as in {@link RouteBindings.chosen}.
   */
  chosen(read: Reader, found: readonly FoundRoutes[], scope: Omit<RouteScope, 'parent'>): readonly RouteKey[];
  /** Whether some request may take one of the rules there. */
  canHold(read: Reader, key: string, scope: RouteScope): boolean;
  /** Whether clients that differ only in their namespace may get different rules. */
  dependsOnNamespace(read: Reader, key: string): boolean;
  /** What it says about connections. Undefined: it is gone. */
  connections(read: Reader, key: string): ConnectionRoutes | undefined;
  /** In how many pieces the rules are settled, each small enough for one step of a commit. */
  countPieces(read: Reader, key: string): number;
  /** A piece of the rules, as somebody gets it. Undefined: it is gone. */
  settle(read: Reader, key: string, piece: number, context: RouteContext): SettledRoutes | undefined;
}

/** One kind of object with routes. */
export interface RouteFrontEnd {
  readonly kind: string;
  readonly bindings: Collection<RouteBinding>;
  readonly rules: RouteRules;
}

/** The routes of all kinds of objects, as selection sees them. */
export interface RouteBindings {
  /** By object key. */
  readonly all: Collection<RouteBinding>;
  /** Those of the mesh, by exact host. Oldest first. */
  readonly byHost: Index<RouteBinding>;
  /** Those of the mesh with a wildcard host, by {@link wildcardKey}. Oldest first. */
  readonly byWildcard: Index<RouteBinding>;
  readonly rulesOf: (kind: string) => RouteRules;
  /** Of several kinds that have a host, the lowest keeps it. */
  readonly rankOf: (kind: string) => number;
  /**
   * Of the routes for a host, those whose rules apply to requests of a sidecar, in the order in which they are evaluated.
   *
   * @param found most specific host first, then oldest first.
   */
  readonly chosen: RouteRules['chosen'];
}

/** @param frontEnds of several kinds that have a host, the first keeps it. */
export function declareRouteBindings(graph: Graph, frontEnds: readonly RouteFrontEnd[]): RouteBindings {
  const sources = frontEnds.map(({ bindings }) => bindings);
  const rules = new Map(frontEnds.map((frontEnd) => [frontEnd.kind, frontEnd.rules]));
  const all = graph.derive(
    'routeBindings',
    graph.index('route bindings by object', sources, (key) => [key]),
    (key, [first], _, emit: Emit<RouteBinding>) => emit(key, first.value),
  );
  const oldest = (a: { value: RouteBinding }, b: { value: RouteBinding }) => compareAge(a.value, b.value);
  const hostsOf = (binding: RouteBinding) => (isInMesh(binding) ? binding.hosts : []);
  const exactHosts = (_: string, binding: RouteBinding) => hostsOf(binding).filter((host) => !isWildcard(host));
  const wildcards = (_: string, binding: RouteBinding) => [
    ...new Set(hostsOf(binding).filter(isWildcard).map(wildcardKey)),
  ];
  return {
    all,
    byHost: graph.index('routes by host', all, exactHosts, oldest),
    byWildcard: graph.index('routes by wildcard', all, wildcards, oldest),
    rulesOf: (kind) => rules.get(kind)!,
    rankOf: (kind) => frontEnds.findIndex((each) => each.kind === kind),
    chosen(read, found, scope) {
      for (const [kind, { chosen }] of found.length === 0 ? [] : rules) {
        const own = found.filter((each) => each.kind === kind);
        const routes = own.length === 0 ? [] : chosen(read, own, scope);
        if (routes.length > 0) return routes;
      }
      return [];
    },
  };
}
