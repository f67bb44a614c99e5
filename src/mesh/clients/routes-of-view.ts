import { joinKey, lastOfKey } from '../../api/keys.ts';
import type { Collection, Emit, Graph, Reader } from '../../cache/graph.ts';
import type { Client } from '../../model/client.ts';
import { isWildcard } from '../../model/host.ts';
import {
  type MeshService,
  outboundCluster,
  portNumbered,
  protocolClass,
  routedPort,
  serviceKey,
} from '../../model/service.ts';
import { type Inputs, optionsOf } from '../inputs.ts';
import type { FoundRoutes } from '../objects/route-bindings.ts';
import { egressOf } from '../objects/sidecars.ts';
import { type Settings, settingOf } from '../settings.ts';
import type { Slot } from '../../model/patch.ts';
import type { PatchedRoutes, Patches } from './patch-sets.ts';
import { freeDomains } from './free-domains.ts';
import { clientOf, serviceFor } from './lookups.ts';
import type { View } from './scopes.ts';
import { type PortDeps, activePorts, isProxied, portsFor } from './served-ports.ts';
import type { RouteHostView, ServiceView, Views } from './views.ts';

/** Where a virtual host stands, and which requests it takes there. */
export interface HostPlace {
  /** Key of the resource list. */
  readonly list: string;
  readonly view: View;
  /** Only for clients in the view's own namespace: see {@link localKey}. */
  readonly local: boolean;
  /** Name of the route table. */
  readonly table: string;
  readonly host: string;
  /** Namespace of the object that defines the host. */
  readonly namespace: string;
  /** Services serve their host without routes, and create its table; what only routes name does neither. */
  readonly declares: boolean;
  /** At least one. */
  readonly domains: readonly string[];
}

/** What requests of a view's clients get for a host on a port: a virtual host before it is spelled. */
export interface HostRoutes {
  readonly place: HostPlace;
  readonly port: number;
  /** Key of the service that has these names; empty: only routes name the host. */
  readonly service: string;
  /** Id of its rule; empty: none. */
  readonly rule: string;
  /** In the order in which they are evaluated. */
  readonly uses: readonly ViewRouteUse[];
}

/** The routes of an object, for clients of a view. */
export interface ViewRouteUse {
  /** Key of the `RouteBinding`. */
  readonly key: string;
  /** Equal if the routes are equal. */
  readonly routes: string;
  readonly view: View;
  /** Only for clients in the view's own namespace, which have other routes. */
  readonly local: boolean;
  /** 0: for all ports. */
  readonly listenerPort: number;
  /** Absent: nothing patches them. */
  readonly patched?: PatchedRoutes;
}

export interface RoutesOfView {
  readonly ofServices: Collection<HostRoutes>;
  /** For hosts that only routes name. */
  readonly ofHosts: Collection<HostRoutes>;
}

export interface ViewRouteDeps extends PortDeps {
  readonly inputs: Inputs;
  readonly settings: Settings;
  readonly views: Views;
  readonly patches: Patches | undefined;
}

/** View × host × port → domains, and routes in order; once for each table that contains them. Keys are `list|table|host:port`. */
export function declareRoutesOfView(graph: Graph, deps: ViewRouteDeps): RoutesOfView {
  const { serviceViews, routeHostViews } = deps.views;
  // Each port is a separate step: services may have any number of them.
  const servicePorts = graph.index('routed ports of serviceViews', serviceViews, (key, { view, ports }) =>
    view.traits.proxyType === 'router' ? [] : [...new Set(ports)].map((port) => joinKey(key, port)),
  );
  const emitAll = (found: Iterable<HostRoutes>, emit: Emit<HostRoutes>): void => {
    for (const routes of found) {
      const { list, table, host } = routes.place;
      emit(`${list}|${table}|${host}:${routes.port}`, routes);
    }
  };
  return {
    ofServices: graph.derive('routesOfView.services', servicePorts, (key, [first], read, emit: Emit<HostRoutes>) =>
      emitAll(routesOfService(first.value, Number(lastOfKey(key)), read, deps), emit),
    ),
    ofHosts: graph.derive('routesOfView.routeHosts', routeHostViews, (_, host, read, emit: Emit<HostRoutes>) =>
      emitAll(routesOfHost(host, read, deps), emit),
    ),
  };
}

function* routesOfService(
  serviceView: ServiceView,
  port: number,
  read: Reader,
  deps: ViewRouteDeps,
): Generator<HostRoutes> {
  const { list, view, service: id, rule, routes } = serviceView;
  const service = read.get(deps.services.services, id);
  if (service === undefined || routedPort(service.ports, port) === undefined) return;
  const { host, namespace } = service;
  const tables = tablesOf(service, port, view, read, deps);
  for (const part of partsOf(list, view, read, deps)) {
    const { client } = part;
    for (const table of tables) {
      const isOwn = isOwnTable(table);
      if (isOwn && part.local) continue;
      const listenerPort = portOfTable(table, port);
      // A table for a single service needs no names.
      const domains = isOwn ? ['*'] : freeDomains({ client, host, service, port, listenerPort }, view, read, deps);
      if (domains.length === 0) continue;
      const chosen = deps.bindings.chosen(read, routes, { client, listenerPort });
      const place = { list: part.list, view, local: part.local, table, host, namespace, declares: true, domains };
      yield { place, port, service: id, rule, uses: usesOf(chosen, part, place, listenerPort, read, deps) };
    }
  }
}

function* routesOfHost(
  { list, view, host: named, routes }: RouteHostView,
  read: Reader,
  deps: ViewRouteDeps,
): Generator<HostRoutes> {
  if (!named.routed) return;
  const { host, namespace, bindingKey } = named;
  const own = serviceFor(read, deps, view, host);
  // An Alias has virtual hosts like a service, but only through routes.
  const alias = own?.resolution === 'Alias' ? own : undefined;
  const served = new Set(alias === undefined ? portsFor(host, view, read, deps, 'ports') : []);
  const ports = [...activePorts(bindingKey, view, read, deps)].filter((port) => !served.has(port));
  const proxied = isProxied(named, view, read, deps) ? proxyTables(view, read, deps) : [];
  // On ports other than 80, routes count if one of their hosts is served there.
  const activeOn = (port: number): readonly FoundRoutes[] =>
    port === 80 || routes.length === 1
      ? routes
      : routes.filter(({ key }) => activePorts(key, view, read, deps).has(port));
  for (const part of partsOf(list, view, read, deps))
    for (const port of ports) {
      const { client } = part;
      const active = activeOn(port);
      const service = alias && portNumbered(alias.ports, port) ? alias : undefined;
      for (const table of [String(port), ...proxied]) {
        const listenerPort = portOfTable(table, port);
        const chosen = deps.bindings.chosen(read, active, { client, listenerPort });
        // If several objects have routes for the host, it is there once: Envoy accepts a domain only once.
        if (chosen[0]?.key !== bindingKey) continue;
        const subject = { client, host, port, listenerPort, ...(service && { service }) };
        const domains = freeDomains(subject, view, read, deps);
        if (domains.length === 0) continue;
        const place = {
          list: part.list,
          view,
          local: part.local,
          table,
          host,
          namespace,
          declares: false,
          domains,
        };
        const uses = usesOf(chosen, part, place, listenerPort, read, deps);
        yield { place, port, service: service === undefined ? '' : serviceKey(service), rule: '', uses };
      }
    }
}

/** Clients of a view, and where their virtual hosts go. */
interface ViewPart extends Pick<HostPlace, 'list' | 'view' | 'local'> {
  readonly client: Client;
}

function partsOf(list: string, view: View, read: Reader, deps: ViewRouteDeps): ViewPart[] {
  const { domainSuffix } = optionsOf(read, deps.inputs);
  const all: ViewPart[] = [{ list, view, local: false, client: clientOf(view, domainSuffix) }];
  if (read.get(deps.views.localViews, view.key) === true)
    all.push({ list: localKey(list), view, local: true, client: clientOf(ownClients(view), domainSuffix) });
  return all;
}

/** The clients of a public view that are in its own namespace. */
export const ownClients = (view: View): View => ({ ...view, client: view.namespace });

/** Of the listener. 0: for all ports. */
const portOfTable = (table: string, port: number): number => (table === proxyTable ? 0 : port);

function usesOf(
  chosen: readonly FoundRoutes[],
  { view, local: isLocal }: ViewPart,
  place: Pick<HostPlace, 'host' | 'table'>,
  listenerPort: number,
  read: Reader,
  { bindings, patches }: ViewRouteDeps,
): readonly ViewRouteUse[] {
  const { host, table } = place;
  const patched = patchedAt(view.patches?.routes, place, listenerPort, read, patches);
  return chosen.map(({ key }) => {
    const local = isLocal && bindings.dependsOnNamespace(read, key);
    const routes = [partKey({ view, local }), listenerPort, key].join('|');
    const use = { key, routes, view, local, listenerPort };
    return patched === undefined ? use : { ...use, routes: `${routes}|${table}|${host}`, patched };
  });
}

/** Absent, or a set that does not patch routes there: nothing patches them. */
function patchedAt(
  set: string | undefined,
  { host, table }: Pick<HostPlace, 'host' | 'table'>,
  listenerPort: number,
  read: Reader,
  patches: Patches | undefined,
): PatchedRoutes | undefined {
  if (set === undefined || patches === undefined) return undefined;
  const port = listenerPort === 0 ? {} : { port: listenerPort };
  const slot: Slot = { type: 'route', direction: 'outbound', host, table, ...port };
  return patches.isPatched(read, set, slot) ? { set, slot } : undefined;
}

/** A view's virtual hosts for clients in its own namespace are kept separately from those for all others. */
export const localKey = (view: string): string => `${view}~`;

/** Key of the view, or of its local part. */
export const partKey = ({ view, local }: Pick<HostPlace, 'view' | 'local'>): string =>
  local ? localKey(view.key) : view.key;

/**
 * The table for the port; proxies for any port have one for all. A sniffed service with an address has its own, and for
 * gRPC's own clients, each service has.
 */
function tablesOf(service: MeshService, port: number, view: View, read: Reader, deps: ViewRouteDeps): string[] {
  const { host, ports } = service;
  if (view.traits.family === 'grpc') return isWildcard(host) ? [] : [outboundCluster(port, '', host)];
  const listener = egressOf(read, deps.sidecars, view);
  const heard = listener?.port?.protocol ?? routedPort(ports, port)?.protocol;
  const own = heard !== undefined && protocolClass(heard) === 'sniffed' ? [`${host}:${port}`] : [];
  return [String(port), ...proxyTables(view, read, deps), ...own];
}

/** The table for HTTP proxies, for all ports at once. */
export const proxyTable = 'http_proxy';

/**
 * The table for one service, shared by all scopes that see the service: for a port whose protocol is sniffed, or for
 * gRPC's own clients, where it is named like the cluster.
 */
export const isOwnTable = (table: string): boolean => table.includes(':') || table.includes('|');

/** Only if something listens for all ports at once. */
function proxyTables(view: View, read: Reader, deps: ViewRouteDeps): string[] {
  const { proxyHttpPort } = settingOf(read, deps.settings.listeners);
  return proxyHttpPort > 0 || view.traits.httpProxyPort > 0 || view.egress !== undefined ? [proxyTable] : [];
}
