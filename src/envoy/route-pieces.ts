import { distinctRefs, type ObjectRef } from '../api/object.ts';
import type { Problem } from '../api/problem.ts';
import type { HttpRoute } from '../model/virtual-service.ts';
import { bytesOfEach } from '../model/virtual-service-parts.ts';
import type { Encoder } from './encoder.ts';
import type { RouteContext } from './route-context.ts';
import { isCatchAll } from './route-match.ts';
import { translateHttpRoutes } from './route.ts';

/** Some of the routes of a VirtualService, as a client has them: encoded once for all virtual hosts that they stand in. */
export interface RoutePiece {
  /** Fields of a VirtualHost, which may be put between others. */
  readonly routes: Uint8Array;
  /** The route that takes every request, likewise; behind it none is reached. Empty: there is no such. */
  readonly catchAll: Uint8Array;
  /** Names of the clusters that the routes name. Sorted, distinct. */
  readonly clusters: readonly string[];
  /** References that lead nowhere. */
  readonly problems: readonly Problem[];
  readonly origins: readonly ObjectRef[];
}

/** Of matches with small actions, 10 µs each; one with an action of kilobytes counts as several. */
const MOST_MATCHES = 500;

/** The routes of a VirtualService in pieces, in their order. A route with many matches goes on in the next piece. */
export function cutRoutes(http: readonly HttpRoute[]): readonly (readonly HttpRoute[])[] {
  const pieces: HttpRoute[][] = [];
  let room = 0;
  for (const route of http) {
    const { matches } = route;
    const each = 1 + Math.floor(bytesOfEach(route) / 1024);
    let from = 0;
    do {
      if (room < each) {
        pieces.push([]);
        room = MOST_MATCHES;
      }
      const taken = matches.slice(from, from + Math.max(1, Math.floor(room / each)));
      pieces.at(-1)!.push(taken.length === matches.length ? route : { ...route, matches: taken });
      room -= each * Math.max(1, taken.length);
      from += taken.length;
    } while (from < matches.length);
  }
  return pieces;
}

export function buildRoutePiece(http: readonly HttpRoute[], context: RouteContext, encoder: Encoder): RoutePiece {
  const { routes, ...references } = translateHttpRoutes(http, context);
  const last = routes.at(-1);
  const ends = last !== undefined && isCatchAll(last.match ?? {});
  return {
    routes: encoder.routes(ends ? routes.slice(0, -1) : routes),
    catchAll: encoder.routes(ends ? [last] : []),
    ...references,
  };
}

/** Those that are reached. */
export function reachedPieces(pieces: readonly RoutePiece[]): readonly RoutePiece[] {
  const end = pieces.findIndex(({ catchAll }) => catchAll.length > 0);
  return end < 0 ? pieces : pieces.slice(0, end + 1);
}

/** What pieces of one list, or of several, name together. */
export function joinPieces(pieces: readonly RoutePiece[]): Pick<RoutePiece, 'clusters' | 'problems' | 'origins'> {
  return {
    clusters: [...new Set(pieces.flatMap(({ clusters }) => clusters))].sort(),
    problems: pieces.flatMap(({ problems }) => problems),
    origins: distinctRefs(pieces.flatMap(({ origins }) => origins)),
  };
}
