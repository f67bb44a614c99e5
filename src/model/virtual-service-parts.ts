import type { ObjectRef } from '../api/object.ts';
import type { HttpMatch, HttpRoute, VirtualServiceModel } from './virtual-service.ts';
import type { L4Match } from './l4-routes.ts';
import type { Destination } from './route.ts';

/** Destinations of all its routes, including mirrors, each with the object that contains it. */
export function destinationsOf(
  model: VirtualServiceModel,
): readonly { readonly object: ObjectRef; readonly destination: Destination }[] {
  const http = model.http.flatMap((route) =>
    destinationsOfRoute(route).map((destination) => ({ object: route.object, destination })),
  );
  const l4 = [...model.tcp, ...model.tls].flatMap(({ destinations }) =>
    destinations.map((destination) => ({ object: model.ref, destination })),
  );
  return [...http, ...l4];
}

/** Including mirrors. */
export function destinationsOfRoute({ action }: HttpRoute): readonly Destination[] {
  if (action.kind !== 'forward') return [];
  return [...action.destinations, ...(action.mirrors ?? []).map((mirror) => mirror.destination)];
}

/** All matches of a VirtualService, for all protocols. */
export function matchesOf(model: VirtualServiceModel): readonly (HttpMatch | L4Match)[] {
  return [
    ...model.http.flatMap((route) => route.matches),
    ...model.tcp.flatMap((route) => route.matches),
    ...model.tls.flatMap((route) => route.matches),
  ];
}

/** Roughly the bytes that are repeated for each match of a route. */
export function bytesOfEach({ action, headers, fault, cors }: HttpRoute): number {
  return weigh([action, headers, fault, cors]);
}

/** Roughly the bytes of its matches, which are repeated for each host, and for each match of whoever delegates to it. */
export function bytesOfMatches({ matches }: HttpRoute): number {
  return weigh(matches);
}

function weigh(value: unknown): number {
  if (typeof value === 'string' || value instanceof Uint8Array) return value.length;
  if (typeof value !== 'object' || value === null) return 0;
  let bytes = 2;
  for (const member of Object.values(value)) bytes += weigh(member);
  return bytes;
}
