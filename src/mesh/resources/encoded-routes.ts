import type { ObjectRef } from '../../api/object.ts';
import type { Problem } from '../../api/problem.ts';
import type { Encoder, VirtualHostContent } from '../../envoy/encode/encoder.ts';
import { originsOf } from '../../envoy/encode/resource.ts';
import { buildRoutes, clustersOf } from '../../envoy/route/route.ts';
import type { Source } from '../../model/provenance.ts';
import { type HasFailed, type SlotPatching, failedOf } from './patching.ts';
import type { RouteRule, SettledRoutes } from '../../model/route.ts';
import type { Traits } from '../../model/traits.ts';
import { rulesForGrpc } from '../../settle/grpc-rules.ts';

/** Some of an object's rules, as clients see them: encoded once for all virtual hosts that contain them. */
export interface EncodedRoutes extends HasFailed {
  /** Lower precedence first. Each consists of fields of a VirtualHost, so it can be placed between others. */
  readonly routes: readonly { readonly precedence: number; readonly bytes: Uint8Array }[];
  /** One of them matches every request: the object's later rules are never reached. */
  readonly isComplete: boolean;
  /** Names of the clusters that the routes refer to. Sorted, distinct. */
  readonly clusters: readonly string[];
  /** Objects with conditions that they were made from. */
  readonly origins: readonly ObjectRef[];
  /** References that do not resolve. */
  readonly problems: readonly Problem[];
}

export function encodeRoutes(
  { rules: all, ...found }: SettledRoutes,
  traits: Traits,
  encoder: Encoder,
  patching?: SlotPatching,
): EncodedRoutes {
  const rules = traits.family === 'grpc' ? rulesForGrpc(all) : all;
  const routes = [...Map.groupBy(rules, ({ precedence }) => precedence)]
    .sort(([a], [b]) => a - b)
    .map(([precedence, same]) => ({
      precedence,
      bytes: encoder.routes(buildRoutes(same, traits), () => same.flatMap(sourcesOfEach), patching),
    }));
  const origins = originsOf(rules.flatMap(({ sources }) => sources));
  const encoded = { routes, clusters: clustersOf(rules), origins, ...found };
  if (patching === undefined) return encoded;
  return { ...encoded, origins: [...origins, ...originsOf(patching.sources)], ...failedOf(patching) };
}

/** The pieces that can be reached. */
export function reachedOf(pieces: readonly EncodedRoutes[]): readonly EncodedRoutes[] {
  const end = pieces.findIndex((piece) => piece.isComplete);
  return end < 0 ? pieces : pieces.slice(0, end + 1);
}

/** The routes of a virtual host, from one or more objects, passed in the order in which they are evaluated. */
export function joinRoutes(
  pieces: readonly EncodedRoutes[],
): VirtualHostContent & { readonly problems: readonly Problem[] } {
  const all = pieces.flatMap(({ routes }) => routes).sort((a, b) => a.precedence - b.precedence);
  return {
    routes: all.map(({ bytes }) => bytes),
    clusters: [...new Set(pieces.flatMap(({ clusters }) => clusters))].sort(),
    origins: pieces.flatMap(({ origins }) => origins),
    problems: pieces.flatMap(({ problems }) => problems),
  };
}

/** A rule becomes one route per match. */
function sourcesOfEach({ matches, sources }: RouteRule): readonly (readonly Source[])[] {
  return Array.from({ length: Math.max(1, matches.length) }, () => sources);
}
