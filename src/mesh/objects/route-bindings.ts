import type { HasProblems, Problem } from '../../api/problem.ts';
import { kindKey, parseKindKey } from '../../api/keys.ts';
import type { Collection, Emit, Graph, Index, Reader } from '../../cache/graph.ts';
import { compareAge } from '../../model/age.ts';
import type { DestinationName } from '../../model/client.ts';
import { compareSpecificity, isWildcard, wildcardKey } from '../../model/host.ts';
import type { ConnectionRoutes } from '../../model/l4-routes.ts';
import type { SettledRoutes } from '../../model/route.ts';
import { type RouteBinding, isInMesh } from '../../model/route-binding.ts';
import type { RouteContext, RouteScope } from '../../settle/route-scope.ts';

/** Routes, and the one of their hosts by which they were found. */
export interface FoundRoutes {
  readonly key: string;
  readonly matched: string;
}

/** What the rules of one kind of object mean: nothing else knows them. Keys are the objects' own. */
export interface RouteRules {
  /** Of several objects for a host, one has it. */
  readonly isExclusive: boolean;
  /**
   * Of the routes of this kind for a host, those whose rules apply to requests of a sidecar, in the order in which they are
   * evaluated.
   *
   * @param found most specific host first, then oldest first.
   */
  chosen(read: Reader, found: readonly FoundRoutes[], scope: Omit<RouteScope, 'parent'>): readonly FoundRoutes[];
  /** Whether some request may take one of the rules there. */
  canHold(read: Reader, key: string, scope: RouteScope): boolean;
  /** Whether clients that differ only in their namespace may get different rules. */
  dependsOnNamespace(read: Reader, key: string): boolean;
  /** What it says about connections. Undefined: it is gone. */
  connections(read: Reader, key: string): ConnectionRoutes | undefined;
  /** What its owner is told about rules that compare claims, where nothing verifies tokens. */
  unverifiedClaims(read: Reader, key: string, scope: RouteScope): readonly Problem[];
  /** In how many pieces the rules are settled, each small enough for one step of a commit. */
  countPieces(read: Reader, key: string): number;
  /** What a piece of the rules leads to: distinct, as far as clients may see it differently. */
  destinations(read: Reader, key: string, piece: number): readonly DestinationName[];
  /** A piece of the rules, as somebody gets it. Undefined: it is gone. */
  settle(read: Reader, key: string, piece: number, context: RouteContext): SettledRoutes | undefined;
}

/** One kind of object with routes. */
export interface RouteFrontEnd {
  readonly kind: string;
  readonly bindings: Collection<RouteBinding>;
  readonly rules: RouteRules;
  /** What is wrong with its objects by themselves. */
  readonly problems: readonly Collection<HasProblems>[];
}

/** The routes of all kinds of objects, as selection sees them. Keys are `kind/source/namespace/name`. */
export interface RouteBindings extends Omit<RouteRules, 'isExclusive'> {
  readonly all: Collection<RouteBinding>;
  /** Routes of the mesh, by exact host. Oldest first. */
  readonly byHost: Index<RouteBinding>;
  /** Routes of the mesh with a wildcard host, by {@link wildcardKey}. Oldest first. */
  readonly byWildcard: Index<RouteBinding>;
  isExclusive(kind: string): boolean;
  /** Of several kinds that have a host, the lowest keeps it. */
  rankOf(kind: string): number;
  /** Of all kinds, what is wrong with objects by themselves. */
  readonly problems: readonly Collection<HasProblems>[];
}

/** @param frontEnds of several kinds that have a host, the first keeps it. */
export function declareRouteBindings(graph: Graph, frontEnds: readonly RouteFrontEnd[]): RouteBindings {
  const sources = frontEnds.map(({ bindings }) => bindings);
  const byKind = new Map(frontEnds.map((frontEnd) => [frontEnd.kind, frontEnd.rules]));
  const all = graph.derive(
    'routeBindings',
    graph.index('route bindings by object', sources, (_, { key }) => [key]),
    (key, [first], _, emit: Emit<RouteBinding>) => emit(key, first.value),
  );
  const oldest = (a: { value: RouteBinding }, b: { value: RouteBinding }) => compareAge(a.value, b.value);
  const hostsOf = (binding: RouteBinding) => (isInMesh(binding) ? binding.hosts : []);
  const exactHosts = (_: string, binding: RouteBinding) => hostsOf(binding).filter((host) => !isWildcard(host));
  const wildcards = (_: string, binding: RouteBinding) => [
    ...new Set(hostsOf(binding).filter(isWildcard).map(wildcardKey)),
  ];
  const ask = <T>(key: string, question: (rules: RouteRules, objectKey: string) => T): T => {
    const { kind, key: objectKey } = parseKindKey(key);
    return question(byKind.get(kind)!, objectKey);
  };
  return {
    all,
    byHost: graph.index('routes by host', all, exactHosts, oldest),
    byWildcard: graph.index('routes by wildcard', all, wildcards, oldest),
    problems: frontEnds.flatMap(({ problems }) => problems),
    isExclusive: (kind) => byKind.get(kind)!.isExclusive,
    rankOf: (kind) => frontEnds.findIndex((each) => each.kind === kind),
    chosen(read, found, scope) {
      let best: readonly FoundRoutes[] = [];
      if (found.length === 0) return best;
      for (const [kind, rules] of byKind) {
        const own = found.flatMap(({ key: id, matched }) => {
          const { kind: of, key } = parseKindKey(id);
          return of === kind ? [{ key, matched }] : [];
        });
        const [first, ...more] = own.length === 0 ? [] : rules.chosen(read, own, scope);
        // Whoever has the more specific host, or else the first kind.
        if (first === undefined || (best[0] !== undefined && compareSpecificity(first.matched, best[0].matched) >= 0))
          continue;
        best = [first, ...more].map(({ key, matched }) => ({ key: kindKey(kind, key), matched }));
      }
      return best;
    },
    canHold: (read, key, scope) => ask(key, (rules, objectKey) => rules.canHold(read, objectKey, scope)),
    dependsOnNamespace: (read, key) => ask(key, (rules, objectKey) => rules.dependsOnNamespace(read, objectKey)),
    connections: (read, key) => ask(key, (rules, objectKey) => rules.connections(read, objectKey)),
    unverifiedClaims: (read, key, scope) =>
      ask(key, (rules, objectKey) => rules.unverifiedClaims(read, objectKey, scope)),
    countPieces: (read, key) => ask(key, (rules, objectKey) => rules.countPieces(read, objectKey)),
    destinations: (read, key, piece) => ask(key, (rules, objectKey) => rules.destinations(read, objectKey, piece)),
    settle: (read, key, piece, context) =>
      ask(key, (rules, objectKey) => rules.settle(read, objectKey, piece, context)),
  };
}
