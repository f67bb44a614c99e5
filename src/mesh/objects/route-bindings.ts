import type { Collection, Emit, Graph, Index } from '../../cache/graph.ts';
import { compareAge } from '../../model/age.ts';
import { isWildcard, wildcardKey } from '../../model/host.ts';
import { type RouteBinding, isInMesh } from '../../model/route-binding.ts';

/** The routes of all kinds of objects, as selection sees them. */
export interface RouteBindings {
  /** By object key. */
  readonly all: Collection<RouteBinding>;
  /** Those of the mesh, by exact host. Oldest first. */
  readonly byHost: Index<RouteBinding>;
  /** Those of the mesh with a wildcard host, by {@link wildcardKey}. Oldest first. */
  readonly byWildcard: Index<RouteBinding>;
}

/** @param sources one of each kind of object with routes. */
export function declareRouteBindings(graph: Graph, sources: readonly Collection<RouteBinding>[]): RouteBindings {
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
  };
}
