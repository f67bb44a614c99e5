import type { Problem } from '../../api/problem.ts';
import { quote } from '../../api/quote.ts';
import type { Collection, Reader } from '../../cache/graph.ts';
import { isAddress } from '../../model/address.ts';
import { hostSet } from '../../model/host-set.ts';
import { type MeshService, type Protocol, isRouted, isTls, protocolClass } from '../../model/service.ts';
import type { L4Match } from '../../model/l4-routes.ts';
import { MESH_KEY } from '../../model/route-binding.ts';
import { type HttpMatch, type VirtualServiceModel, meshGateway } from '../../model/virtual-service.ts';
import type { Services } from '../objects/services.ts';
import type { DestinationDeps } from '../clients/destinations.ts';
import { type GatewayHosts, type RouteKind, acceptsSome } from '../findings/gateway-hosts.ts';
import { oneOf, protocolsOf, servicesOf } from '../findings/ports-of-hosts.ts';
import { hostsOfGateway, placesOfGateways } from './outside-gateways.ts';

const kinds: readonly RouteKind[] = ['http', 'tls', 'tcp'];

/** Which ports of a service each kind of routes is for, on sidecars. */
const takes: Readonly<Record<RouteKind, (protocol: Protocol) => boolean>> = {
  http: isRouted,
  tls: isTls,
  tcp: (protocol) => !isTls(protocol) && ['tcp', 'sniffed'].includes(protocolClass(protocol)),
};

/**
 * Routes of a kind that nobody takes: for requests where connections are forwarded, or the reverse. Nothing is said
 * where something that a VirtualService names is not known.
 */
export function* uselessRoutes(
  key: string,
  model: VirtualServiceModel,
  read: Reader,
  deps: DestinationDeps & { readonly gatewayHosts: Collection<GatewayHosts> },
): Iterable<Problem> {
  const written = kinds.filter((kind) => model[kind].length > 0);
  /** The kinds that have an effect somewhere; all, if it is not known. */
  const useful = new Set<RouteKind>();
  const idle: Problem[] = [];
  const places = placesOfGateways(model);
  const own = hostSet(model.hosts);
  for (const [gateway, i] of places) {
    if (gateway === meshGateway) {
      const ports = protocolsOf(model, read, deps);
      for (const kind of kinds) if (ports === undefined || ports.some(takes[kind])) useful.add(kind);
      continue;
    }
    const hosts = hostsOfGateway(key, gateway, read, deps.gatewayHosts);
    const taken = kinds.filter((kind) => {
      const taking = hosts?.taking[kind];
      return hosts === undefined || (taking !== undefined && acceptsSome(taking, model, own));
    });
    for (const kind of taken) useful.add(kind);
    // Another finding covers the case where none applies.
    if (taken.length > 0 && !written.some((kind) => taken.includes(kind)))
      idle.push(problem(model, `spec.gateways[${i}]`, `${ofGateway(gateway, taken)} ${advice(taken, written)}`));
  }
  yield* idle;
  if (useful.size === 0 || idle.length === places.size) return;
  for (const kind of written)
    if (!useful.has(kind)) yield problem(model, `spec.${kind}`, whyUseless(kind, model, read, deps));
}

function problem({ ref: object }: VirtualServiceModel, field: string, message: string): Problem {
  return { object, field, reason: 'Ineffective', message };
}

function ofGateway(gateway: string, taken: readonly RouteKind[]): string {
  return `has no effect: the servers of Gateway ${gateway} for these hosts take only ${taken.join(' and ')} routes.`;
}

function advice(taken: readonly RouteKind[], written: readonly RouteKind[]): string {
  if (taken.includes('tls'))
    return written.includes('http')
      ? 'Write tls routes with sniHosts, or have the server terminate TLS (mode SIMPLE); until then its port stays shut.'
      : 'Write tls routes with sniHosts; until then its port stays shut.';
  return taken.includes('http')
    ? 'Write http routes; until then requests get 404.'
    : 'Write tcp routes; until then its port stays shut.';
}

function whyUseless(kind: RouteKind, model: VirtualServiceModel, read: Reader, deps: DestinationDeps): string {
  if (!model.gateways.includes(meshGateway)) return 'has no effect: no server of its Gateways takes such routes.';
  const protocols = [...new Set(protocolsOf(model, read, deps))];
  const ports = `has no effect: the ports of its hosts have protocol ${protocols.join(', ')}`;
  const fitting = kinds.filter((other) => protocols.some(takes[other])).join(' or ');
  switch (kind) {
    case 'http':
      return `${ports}, and proxies do not look into these connections. Declare a port as HTTP where the application sends plain HTTP, or write ${fitting} routes.`;
    case 'tls':
      return `${ports}, and only connections to ports with protocol TLS or HTTPS have a server name for sidecars. Declare the protocol, or write other routes.`;
    case 'tcp':
      return `${ports}, and tcp routes are only for TCP. Write ${fitting} routes.`;
  }
}

/** Matches for a port that the hosts do not have, or on which routes of their kind have no effect, on sidecars. */
export function* uselessPorts(model: VirtualServiceModel, read: Reader, deps: DestinationDeps): Iterable<Problem> {
  if (!model.gateways.includes(meshGateway)) return;
  const isOnlyForMesh = model.gateways.every((gateway) => gateway === meshGateway);
  const isForMesh = (match: HttpMatch | L4Match): boolean => {
    if ('parents' in match && match.parents.length > 0) return match.parents.every((parent) => parent === MESH_KEY);
    if ('gateways' in match && match.gateways.length > 0)
      return match.gateways.every((gateway) => gateway === meshGateway);
    return isOnlyForMesh;
  };
  const limited = kinds.flatMap((kind) =>
    model[kind].flatMap((route) => {
      if ('object' in route && route.object !== model.ref) return [];
      return route.matches.flatMap((match, i) => {
        const { port } = match;
        const hasSubnets = 'destinationSubnets' in match && match.destinationSubnets.length > 0;
        if (port === 0 || hasSubnets || !isForMesh(match)) return [];
        return [{ kind, port, field: `${route.field}.match[${i}].port` }];
      });
    }),
  );
  if (limited.length === 0) return;
  const protocols = protocolsByPort(servicesOf(model, read, deps) ?? []);
  const useful = kinds.filter((kind) => [...protocols.values()].some((same) => same.some(takes[kind])));
  const meant = oneOf(protocols, 'one that they have');
  for (const { kind, port, field } of limited) {
    // Another finding covers the case where none applies.
    if (!useful.includes(kind)) continue;
    const same = protocols.get(port) ?? [];
    if (same.some(takes[kind])) continue;
    const [protocol] = same;
    const why =
      protocol === undefined
        ? `its hosts have no port ${port}; name ${meant}`
        : `port ${port} has protocol ${protocol}, which ${kind} routes are not for; write another kind of route, or declare the protocol`;
    yield problem(model, field, `never matches: ${why}.`);
  }
}

/** Each protocol of a port once: there may be as many hosts as matches. */
function protocolsByPort(services: readonly MeshService[]): ReadonlyMap<number, readonly Protocol[]> {
  const found = new Map<number, Protocol[]>();
  for (const { ports } of services)
    for (const { number, protocol } of ports) {
      const known = found.get(number);
      if (known === undefined) found.set(number, [protocol]);
      else if (!known.includes(protocol)) known.push(protocol);
    }
  return found;
}

/** Hosts that are addresses of services: sidecars find routes by the host of a service. */
export function* addressHosts(
  model: VirtualServiceModel,
  read: Reader,
  { services }: { readonly services: Services },
): Iterable<Problem> {
  if (!model.gateways.includes(meshGateway)) return;
  for (const [i, host] of model.hosts.entries()) {
    if (!isAddress(host)) continue;
    const written = kinds.filter((kind) => model[kind].length > 0);
    const [service] = read.group(services.byAddress, host).map(({ value }) => value);
    const ports = (service?.ports ?? []).flatMap(({ protocol, number }) =>
      written.some((kind) => takes[kind](protocol)) ? [number] : [],
    );
    if (service === undefined || ports.length === 0) continue;
    const where = ports.length === 1 ? `port ${ports[0]}` : `ports ${ports.join(', ')}`;
    const message = `${quote(host)} has no effect for sidecars on ${where}: there the address belongs to ${quote(service.host)}, and only routes for that host apply. Name that host.`;
    yield problem(model, `spec.hosts[${i}]`, message);
  }
}
