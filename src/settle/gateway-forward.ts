import type { ObjectRef } from '../api/object.ts';
import type { Problem } from '../api/problem.ts';
import type { DestinationLookup } from '../model/client.ts';
import { type BoundServer, hostsFor, intersectionWith } from '../model/gateway.ts';
import { haveCommon, hostSet } from '../model/host-set.ts';
import { type ConnectionRoutes, type L4Destination, type L4Match, routesFor, routesOn } from '../model/l4-routes.ts';
import type { L4Target } from '../model/listener.ts';
import type { ListenerSettings } from '../model/mesh-config.ts';
import { contains, remembered } from '../model/remembered.ts';
import { routeTarget } from './outbound-chains.ts';
import { missingDestination } from './missing-destination.ts';

export interface ForwardInput {
  /** For the server's Gateway, in order of precedence. */
  readonly routes: readonly ConnectionRoutes[];
  readonly lookup: DestinationLookup;
  readonly settings: ListenerSettings;
}

/** Where the connections of a server go. */
export interface GatewayForward {
  /** The object that decided. */
  readonly ref: ObjectRef;
  readonly target: L4Target;
}

/** By server name, from a match of a `tls` route. */
export interface PassthroughForward extends GatewayForward {
  /** Field path of the names. */
  readonly field: string;
  readonly serverNames: readonly string[];
}

/** The first `tcp` route that matches the server applies to all its connections. */
export function tcpRoute(
  bound: BoundServer,
  input: ForwardInput,
): { readonly route: GatewayForward | undefined; readonly problems: readonly Problem[] } {
  for (const routes of usersOf(bound, input))
    for (const { route, matches } of routesOn(bound.server.port.number, routes.tcp)) {
      const { destinations } = route;
      if (route.matches.length === 0 || matches.some((match) => holds(match, bound)))
        return {
          route: { ref: routes.ref, target: targetOf(bound, destinations, routes, input) },
          problems: missingDestinations(bound, destinations, routes, input),
        };
    }
  return { route: undefined, problems: [] };
}

/**
 * Every match of a `tls` route that applies to the server, with those of its names that are among the server's hosts: a
 * connection with any other name does not pass.
 */
export function passthroughRoutes(
  bound: BoundServer,
  input: ForwardInput,
): { readonly routes: readonly PassthroughForward[]; readonly problems: readonly Problem[] } {
  const found: PassthroughForward[] = [];
  const problems: Problem[] = [];
  for (const routes of usersOf(bound, input)) {
    const accepted = hostsFor(bound.server, routes.namespace);
    const hostsOf = intersectionWith(accepted);
    for (const { route, matches } of routesFor(accepted, routes.tls)) {
      const { field, destinations } = route;
      const holding = matches.flatMap((match) => {
        const serverNames = holds(match, bound) ? hostsOf(match.sniHosts) : [];
        return serverNames.length > 0 ? [{ serverNames, i: placesOf(route.matches).get(match)! }] : [];
      });
      if (holding.length === 0) continue;
      problems.push(...missingDestinations(bound, destinations, routes, input));
      const target = targetOf(bound, destinations, routes, input);
      for (const { serverNames, i } of holding)
        found.push({ ref: routes.ref, target, field: `${field}.match[${i}].sniHosts`, serverNames });
    }
  }
  return { routes: found, problems };
}

/** Routes with a host that the server accepts from their namespace. */
function usersOf({ server }: BoundServer, { routes }: ForwardInput): readonly ConnectionRoutes[] {
  return routes.filter(({ namespace, hosts }) => {
    const accepted = hostSet(hostsFor(server, namespace));
    return haveCommon(accepted, setOf(hosts));
  });
}

const setOf = remembered(hostSet);

const placesOf = remembered((matches: readonly L4Match[]) => new Map(matches.map((match, i) => [match, i])));

/** Ignores the source of a connection: it comes from outside the mesh. */
function holds({ port, gateways }: L4Match, { server, gateway }: BoundServer): boolean {
  return (port === 0 || port === server.port.number) && (gateways.length === 0 || contains(gateways, gateway));
}

function targetOf(
  { server }: BoundServer,
  destinations: readonly L4Destination[],
  routes: ConnectionRoutes,
  { lookup, settings }: ForwardInput,
): L4Target {
  return routeTarget(destinations, routes, { port: server.port, lookup, settings });
}

function missingDestinations(
  { server }: BoundServer,
  destinations: readonly L4Destination[],
  { ref }: ConnectionRoutes,
  { lookup }: ForwardInput,
): Problem[] {
  return destinations.flatMap((destination) =>
    missingDestination(ref, destination, lookup(destination, server.port.number)),
  );
}
