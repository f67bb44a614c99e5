import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { HttpRoute } from '../model/virtual-service.ts';
import { cutRoutes } from './cut-routes.ts';

/** A route with a number of matches, and an action of so many bytes. */
function route(name: string, matches: number, bytes = 0): HttpRoute {
  const named = Array.from({ length: matches }, (_, i) => ({ name: `${name}-${i}` }));
  return { name, matches: named, action: { body: 'x'.repeat(bytes) } } as unknown as HttpRoute;
}

/** What Envoy has: a route for each match, one for a route without. */
const flat = (routes: readonly HttpRoute[]): string[] =>
  routes.flatMap(({ name, matches }) => (matches.length === 0 ? [name] : matches.map((match) => match.name)));

test('pieces have all routes in their order, and none has more than fits', () => {
  const routes = fc.array(fc.tuple(fc.constantFrom(0, 1, 2, 499, 500, 501, 1200), fc.constantFrom(0, 3000, 600_000)), {
    maxLength: 8,
  });
  fc.assert(
    fc.property(routes, (given) => {
      const http = given.map(([matches, bytes], i) => route(`r${i}`, matches, bytes));
      const pieces = cutRoutes(http);
      expect(pieces.flatMap(flat)).toEqual(flat(http));
      for (const piece of pieces) {
        expect(flat(piece).length).toBeGreaterThan(0);
        expect(flat(piece).length).toBeLessThanOrEqual(500);
      }
    }),
  );
});

test('a large action takes the room of many matches', () => {
  expect(cutRoutes([route('a', 100, 102_400)]).map((piece) => flat(piece).length)).toEqual(
    Array.from({ length: 25 }, () => 4),
  );
  expect(cutRoutes([route('a', 3, 1_000_000)]).map((piece) => flat(piece).length)).toEqual([1, 1, 1]);
});
