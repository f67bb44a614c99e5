import type { HttpRoute } from '../model/virtual-service.ts';
import { bytesOfEach } from '../model/virtual-service-parts.ts';

/** For matches with small actions, 10 µs each; a match with an action of several kilobytes counts as several. */
const MOST_MATCHES = 500;

/** The routes of a VirtualService in pieces, in order. A route with many matches continues in the next piece. */
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
