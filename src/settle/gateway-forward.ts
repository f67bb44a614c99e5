import type { ObjectRef } from '../api/object.ts';
import type { Problem } from '../api/problem.ts';
import { type Targets, targetIn } from '../model/client.ts';
import { type BoundServer, hostsFor, intersectionWith } from '../model/gateway.ts';
import { haveCommon, hostSet } from '../model/host-set.ts';
import { type ConnectionRoutes, type L4Match, type L4Route, routesFor, routesOn } from '../model/l4-routes.ts';
import type { L4Target } from '../model/listener.ts';
import type { ListenerSettings } from '../model/mesh-config.ts';
import { contains, remembered } from '../model/remembered.ts';
import { parentKey } from '../model/route-binding.ts';
import { routeTarget } from './outbound-chains.ts';
import { missingDestination } from './missing-destination.ts';

/** A route that takes connections of a server, with the names for which it does. */
export interface ServerRoute {
  /** The object that it is in. */
  readonly routes: ConnectionRoutes;
  readonly route: L4Route;
  /** By field path, those of a `tls` route. Empty: it takes all connections. */
  readonly names: readonly { readonly field: string; readonly serverNames: readonly string[] }[];
}

/**
 * The routes that take connections of a server: of those for `tls`, where it passes TLS through, every one with a name
 * that is among the server's hosts; otherwise the first for `tcp`. None for servers that serve requests.
 *
 * @param all for the server's Gateway, in order of precedence.
 */
export function routesOfServer(bound: BoundServer, all: readonly ConnectionRoutes[]): readonly ServerRoute[] {
  switch (bound.server.serves.kind) {
    case 'tcp':
    case 'tls':
      return tcpRoutes(bound, all);
    case 'passthrough':
      return tlsRoutes(bound, all);
    case 'http':
    case 'https':
    case 'autoPassthrough':
      return [];
  }
}

function tcpRoutes(bound: BoundServer, all: readonly ConnectionRoutes[]): readonly ServerRoute[] {
  for (const routes of usersOf(bound, all))
    for (const { route, matches } of routesOn(bound.server.port.number, routes.tcp))
      if (route.matches.length === 0 || matches.some((match) => holds(match, bound)))
        return [{ routes, route, names: [] }];
  return [];
}

/** A connection with any other name than those of the server's hosts does not pass. */
function tlsRoutes(bound: BoundServer, all: readonly ConnectionRoutes[]): readonly ServerRoute[] {
  const found: ServerRoute[] = [];
  for (const routes of usersOf(bound, all)) {
    const accepted = hostsFor(bound.server, routes.namespace);
    const hostsOf = intersectionWith(accepted);
    for (const { route, matches } of routesFor(accepted, routes.tls)) {
      const names = matches.flatMap((match) => {
        const serverNames = holds(match, bound) ? hostsOf(match.sniHosts) : [];
        if (serverNames.length === 0) return [];
        return [{ field: `${route.field}.match[${placesOf(route.matches).get(match)!}].sniHosts`, serverNames }];
      });
      if (names.length > 0) found.push({ routes, route, names });
    }
  }
  return found;
}

/** Routes with a host that the server accepts from their namespace. */
function usersOf({ server }: BoundServer, all: readonly ConnectionRoutes[]): readonly ConnectionRoutes[] {
  return all.filter(({ namespace, hosts }) => {
    const accepted = hostSet(hostsFor(server, namespace));
    return haveCommon(accepted, setOf(hosts));
  });
}

const setOf = remembered(hostSet);

const placesOf = remembered((matches: readonly L4Match[]) => new Map(matches.map((match, i) => [match, i])));

/** Ignores the source of a connection: it comes from outside the mesh. */
function holds({ port, parents }: L4Match, { server, ref }: BoundServer): boolean {
  return (port === 0 || port === server.port.number) && (parents.length === 0 || contains(parents, parentKey(ref)));
}

/** Where the connections of a route go. */
export interface GatewayForward {
  /** The object that decided. */
  readonly ref: ObjectRef;
  readonly target: L4Target;
}

/** @param targets of what the route leads to, from the server's port. */
export function forwardOf(
  { server }: BoundServer,
  { routes, route: { destinations } }: ServerRoute,
  targets: Targets,
  settings: ListenerSettings,
): { readonly forward: GatewayForward; readonly problems: readonly Problem[] } {
  const { ref } = routes;
  return {
    forward: { ref, target: routeTarget(destinations, routes, { port: server.port, targets, settings }) },
    problems: destinations.flatMap((destination) =>
      missingDestination(ref, destination, targetIn(targets, destination)),
    ),
  };
}
