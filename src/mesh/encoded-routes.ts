import type { Problem } from '../api/problem.ts';
import type { Encoder, VirtualHostContent } from '../envoy/encoder.ts';
import { buildRoutes, clustersOf } from '../envoy/route.ts';
import type { Source } from '../model/provenance.ts';
import type { RouteRule, SettledRoutes } from '../model/route.ts';
import type { Traits } from '../model/traits.ts';

/** Some of the rules of an object, as clients have them: encoded once for all virtual hosts that they stand in. */
export interface EncodedRoutes {
  /** Lower precedence first; each is fields of a VirtualHost, which may be put between others. */
  readonly routes: readonly { readonly precedence: number; readonly bytes: Uint8Array }[];
  /** One of them takes every request: what the object has behind these is never reached. */
  readonly isComplete: boolean;
  /** Names of the clusters that the routes name. Sorted, distinct. */
  readonly clusters: readonly string[];
  /** References that lead nowhere. */
  readonly problems: readonly Problem[];
}

export function encodeRoutes({ rules, ...found }: SettledRoutes, traits: Traits, encoder: Encoder): EncodedRoutes {
  const routes = [...Map.groupBy(rules, ({ precedence }) => precedence)]
    .sort(([a], [b]) => a - b)
    .map(([precedence, same]) => ({
      precedence,
      bytes: encoder.routes(buildRoutes(same, traits), () => same.flatMap(sourcesOfEach)),
    }));
  return { routes, clusters: clustersOf(rules), ...found };
}

/** Those that are reached. */
export function reachedOf(pieces: readonly EncodedRoutes[]): readonly EncodedRoutes[] {
  const end = pieces.findIndex((piece) => piece.isComplete);
  return end < 0 ? pieces : pieces.slice(0, end + 1);
}

/** The routes of a virtual host: of one object or of several, which are given in the order in which they were asked. */
export function joinRoutes(
  pieces: readonly EncodedRoutes[],
): VirtualHostContent & { readonly problems: readonly Problem[] } {
  const all = pieces.flatMap(({ routes }) => routes).sort((a, b) => a.precedence - b.precedence);
  return {
    routes: all.map(({ bytes }) => bytes),
    clusters: [...new Set(pieces.flatMap(({ clusters }) => clusters))].sort(),
    problems: pieces.flatMap(({ problems }) => problems),
  };
}

/** A rule is a route for each of its matches. */
function sourcesOfEach({ matches, sources }: RouteRule): readonly (readonly Source[])[] {
  return Array.from({ length: Math.max(1, matches.length) }, () => sources);
}
