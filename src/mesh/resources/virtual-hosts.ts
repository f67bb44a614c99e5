import type { LeafPart } from '../../ads/store/resource.ts';
import type { Collection, Emit, Graph, Reader } from '../../cache/graph.ts';
import type { Encoder } from '../../envoy/encode/encoder.ts';
import { samePart } from '../../envoy/encode/resource.ts';
import { buildVirtualHost } from '../../envoy/route/virtual-host.ts';
import type { Client } from '../../model/client.ts';
import { type Source, wholeObjects } from '../../model/provenance.ts';
import { isWildcard } from '../../model/host.ts';
import {
  type MeshService,
  type ServicePort,
  outboundCluster,
  portNumbered,
  protocolClass,
  routedPort,
} from '../../model/service.ts';
import { MESH } from '../../model/route-binding.ts';
import { clientOf, serviceFor } from '../clients/lookups.ts';
import { isServedNow, lookupFor } from './destinations.ts';
import { type Content, defaultContent, routedContent } from './virtual-host-content.ts';
import type { ServiceEndpoints } from '../objects/endpoints.ts';
import { type Inputs, optionsOf } from '../inputs.ts';
import type { CoveredServices } from '../clients/covered-services.ts';
import { freeDomains } from './free-domains.ts';
import type { RouteHost, RouteHosts } from '../clients/route-hosts.ts';
import { type RoutePieces, type RouteUse, declareRoutePieces } from './route-pieces.ts';
import type { FoundRoutes, RouteBindings } from '../objects/route-bindings.ts';
import { type Rules, ruleOf } from '../objects/rules.ts';
import type { View } from '../clients/scopes.ts';
import type { Services } from '../objects/services.ts';
import { type PortsByRoutes, activePorts, isProxied, portsFor } from '../clients/served-ports.ts';
import { type Settings, settingOf } from '../settings.ts';
import { type Sidecars, egressOf } from '../objects/sidecars.ts';
import type { RouteHostView, ServiceView, Views } from '../clients/views.ts';

/** A virtual host in a table of a list, with its place there. */
export interface VirtualHostEntry {
  readonly list: string;
  readonly view: string;
  /** Name of the route table. */
  readonly table: string;
  /** Services create a table; hosts that only routes name do not. */
  readonly declares: boolean;
  readonly host: string;
  /** Namespace of the object that defines the host. */
  readonly namespace: string;
  readonly domains: readonly string[];
  readonly part: LeafPart;
}

export interface RouteDeps {
  readonly inputs: Inputs;
  readonly settings: Settings;
  readonly services: Services;
  readonly rules: Rules;
  readonly bindings: RouteBindings;
  readonly coveredServices: CoveredServices;
  readonly routeHosts: RouteHosts;
  readonly portsByRoutes: PortsByRoutes;
  readonly sidecars: Sidecars;
  readonly views: Views;
  readonly endpoints: ServiceEndpoints;
  readonly encoder: Encoder;
}

export interface VirtualHosts {
  readonly ofServices: Collection<VirtualHostEntry>;
  /** For hosts that only routes name. */
  readonly ofHosts: Collection<VirtualHostEntry>;
}

/** Virtual hosts, once for each table that contains them. */
export function declareVirtualHosts(graph: Graph, deps: RouteDeps): VirtualHosts {
  const { serviceViews, routeHostViews } = deps.views;
  // Each port is a separate step: services may have any number of them.
  const portsOf = (key: string, { view, ports }: ServiceView): string[] =>
    view.traits.proxyType === 'router' ? [] : [...new Set(ports)].map((port) => `${key}|${port}`);
  const servicePorts = graph.index('routed ports of serviceViews', serviceViews, portsOf);
  const usesOfServices = graph.derive(
    'routes in use by services',
    graph.index('ports of serviceViews with routes', serviceViews, (key, view) =>
      view.routes.length === 0 ? [] : portsOf(key, view),
    ),
    (key, [first], read, emit: Emit<ViewRouteUse>) =>
      emitUses(key, choicesOfService(first.value, portOfKey(key), read, deps), emit),
  );
  const usesOfHosts = graph.derive(
    'routes in use by hosts',
    routeHostViews,
    (key, host, read, emit: Emit<ViewRouteUse>) => emitUses(key, choicesOfHost(host, read, deps), emit),
  );
  const pieces = declareRoutePieces(graph, 'routePieces', deps, [usesOfServices, usesOfHosts], (use, read) => ({
    client: clientOf(use.local ? { ...use.view, client: use.view.namespace } : use.view, domainSuffixOf(read, deps)),
    lookup: lookupFor(use.view, read, deps),
    settings: settingOf(read, deps.settings.routes),
    parent: MESH,
    listenerPort: use.listenerPort,
  }));
  const ofServices = graph.derive(
    'virtualHosts',
    servicePorts,
    (key, [first], read, emit: Emit<VirtualHostEntry>) => {
      const view = first.value;
      for (const [name, entry] of serviceVirtualHosts(view, portOfKey(key), read, deps, pieces))
        if (!isOwnTable(entry.table) || entry.list === view.list) emit(`${entry.list}|${entry.table}|${name}`, entry);
    },
    sameEntry,
  );
  const ofHosts = graph.derive(
    'virtualHosts.routeHosts',
    routeHostViews,
    (_, view, read, emit: Emit<VirtualHostEntry>) => {
      for (const [name, entry] of hostVirtualHosts(view, read, deps, pieces))
        emit(`${entry.list}|${entry.table}|${name}`, entry);
    },
    sameEntry,
  );
  return { ofServices, ofHosts };
}

const portOfKey = (key: string): number => Number(key.slice(key.lastIndexOf('|') + 1));

const domainSuffixOf = (read: Reader, deps: RouteDeps): string => optionsOf(read, deps.inputs).domainSuffix;

/** Routes for the clients of a view. */
interface ViewRouteUse extends RouteUse {
  readonly view: View;
  /** Only for clients in the view's own namespace, which have other routes. */
  readonly local: boolean;
  /** 0: for all ports. */
  readonly listenerPort: number;
}

/** A virtual host before it is built: where it goes, and which routes apply. */
interface Choice {
  readonly target: ListTarget;
  readonly port: number;
  /** 0: the table is for all ports. */
  readonly listenerPort: number;
  readonly table: string;
  /** In the order in which they are evaluated. */
  readonly uses: readonly ViewRouteUse[];
}

/** @param listenerPort 0: for all ports. */
function usesOf(
  chosen: readonly FoundRoutes[],
  { view: target }: ListTarget,
  { view, listenerPort }: Pick<ViewRouteUse, 'view' | 'listenerPort'>,
  read: Reader,
  { bindings }: RouteDeps,
): readonly ViewRouteUse[] {
  return chosen.map(({ key }) => {
    const local = isLocalKey(target) && bindings.dependsOnNamespace(read, key);
    const routes = [local ? target : view.key, listenerPort, key].join('|');
    return { routes, key, view, local, listenerPort };
  });
}

function emitUses(key: string, choices: Iterable<Choice>, emit: Emit<ViewRouteUse>): void {
  const uses = new Map<string, ViewRouteUse>();
  for (const choice of choices) for (const use of choice.uses) uses.set(use.routes, use);
  for (const use of uses.values()) emit(`${key}|${use.routes}`, use);
}

function sameEntry(a: VirtualHostEntry, b: VirtualHostEntry): boolean {
  return samePart(a.part, b.part);
}

function* choicesOfService(view: ServiceView, number: number, read: Reader, deps: RouteDeps): Generator<Choice> {
  const service = read.get(deps.services.services, view.service);
  const port = service && routedPort(service.ports, number);
  if (service === undefined || port === undefined) return;
  for (const target of listTargetsOf(view.list, view.view, read, deps)) {
    const chosen = deps.bindings.chosen(read, view.routes, { client: target.client, listenerPort: number });
    for (const table of tablesOf(service, port, view.view, read, deps)) {
      const listenerPort = table === proxyTable ? 0 : number;
      const uses = usesOf(chosen, target, { view: view.view, listenerPort }, read, deps);
      yield { target, port: number, listenerPort, table, uses };
    }
  }
}

function* serviceVirtualHosts(
  view: ServiceView,
  number: number,
  read: Reader,
  deps: RouteDeps,
  pieces: RoutePieces,
): Generator<[name: string, entry: VirtualHostEntry]> {
  const service = read.get(deps.services.services, view.service);
  if (service === undefined) return;
  const rule = ruleOf(read, deps.rules, view.rule, service);
  const settings = settingOf(read, deps.settings.routes);
  for (const choice of choicesOfService(view, number, read, deps)) {
    const { target, port, listenerPort, table, uses } = choice;
    const { client } = target;
    const subject = { client, host: service.host, service, port, listenerPort };
    const served = isServedNow(service, port, {}, read, deps);
    const content =
      routedContent(uses.flatMap((use) => pieces.of(read, use))) ??
      defaultContent({ service, port, rule, served, settings }, client.traits);
    const free = freeDomains(subject, view.view, read, deps);
    // A table for a single service needs no names.
    const domains = isOwnTable(table) ? ['*'] : free;
    const entry = entryOf(content, service, { ...choice, domains, alias: undefined }, true, deps);
    if (entry !== undefined) yield [`${service.host}:${port}`, entry];
  }
}

interface ListTarget {
  readonly list: string;
  readonly view: string;
  readonly client: Client;
}

/** Where the virtual hosts of a view go, and for which client each is built. */
function listTargetsOf(list: string, view: View, read: Reader, deps: RouteDeps): ListTarget[] {
  const domainSuffix = domainSuffixOf(read, deps);
  const targets: ListTarget[] = [{ list, view: view.key, client: clientOf(view, domainSuffix) }];
  if (read.get(deps.views.localViews, view.key) === true) {
    const client = clientOf({ ...view, client: view.namespace }, domainSuffix);
    targets.push({ list: localKey(list), view: localKey(view.key), client });
  }
  return targets;
}

interface Named {
  readonly domains: readonly string[];
  /** Gives a route host its domains. */
  readonly alias: MeshService | undefined;
}

/** Undefined if no domain is left. */
function entryOf(
  { own, encoded }: Content,
  named: MeshService | RouteHost,
  { target, port, table, domains, alias }: Choice & Named,
  declares: boolean,
  { encoder }: RouteDeps,
): VirtualHostEntry | undefined {
  if (domains.length === 0) return undefined;
  const { host, namespace } = named;
  const virtualHost = buildVirtualHost({ host, port, domains, ...(own && { routes: own }) });
  const { list, view } = target;
  const part = encoder.virtualHost(virtualHost, encoded, () => namersOf(alias ?? named));
  return { list, view, table, declares, host, namespace, domains, part };
}

/** The objects that give a host its names; a host of routes gets them from these. */
function namersOf(named: MeshService | RouteHost): readonly Source[] {
  return 'aliases' in named ? wholeObjects([named, ...named.aliases].flatMap(({ origins }) => origins)) : [];
}

/** A view's virtual hosts for clients in its own namespace are kept separately from those for all others. */
export const localKey = (view: string): string => `${view}~`;

export const isLocalKey = (key: string): boolean => key.endsWith('~');

/** The view for a key that may be the key of its local virtual hosts. */
export const viewOfKey = (key: string): string => (isLocalKey(key) ? key.slice(0, -1) : key);

/**
 * The table for the port; proxies for any port have one for all. A sniffed service with an address has its own, and for
 * gRPC's own clients, each service has.
 */
function tablesOf(
  service: MeshService,
  { number, protocol }: ServicePort,
  view: View,
  read: Reader,
  deps: RouteDeps,
): string[] {
  if (view.traits.family === 'grpc') return isWildcard(service.host) ? [] : [outboundCluster(number, '', service.host)];
  const tables = [String(number), ...proxyTables(view, read, deps)];
  const listener = egressOf(read, deps.sidecars, view);
  const heard = listener?.port?.protocol ?? protocol;
  if (protocolClass(heard) === 'sniffed') tables.push(`${service.host}:${number}`);
  return tables;
}

/** The table for HTTP proxies, for all ports at once. */
export const proxyTable = 'http_proxy';

/**
 * The table for one service, shared by all scopes that see the service: for a port whose protocol is sniffed, or for
 * gRPC's own clients, where it is named like the cluster.
 */
export const isOwnTable = (table: string): boolean => table.includes(':') || table.includes('|');

/** Only if something listens for all ports at once. */
function proxyTables(view: View, read: Reader, deps: RouteDeps): string[] {
  const { proxyHttpPort } = settingOf(read, deps.settings.listeners);
  return proxyHttpPort > 0 || view.traits.httpProxyPort > 0 || view.egress !== undefined ? [proxyTable] : [];
}

function* choicesOfHost(
  { list, view, host, routes }: RouteHostView,
  read: Reader,
  deps: RouteDeps,
): Generator<Choice & { readonly alias: MeshService | undefined }> {
  if (!host.routed) return;
  const service = serviceFor(read, deps, view, host.host);
  // An Alias has virtual hosts like a service, but only through routes.
  const alias = service?.resolution === 'Alias' ? service : undefined;
  const served = new Set(alias === undefined ? portsFor(host.host, view, read, deps, 'ports') : []);
  const ports = activePorts(host.bindingKey, view, read, deps);
  // On ports other than 80, routes count if one of their hosts is served there.
  const activeOn = (port: number): readonly FoundRoutes[] =>
    port === 80 || routes.length === 1
      ? routes
      : routes.filter(({ key }) => activePorts(key, view, read, deps).has(port));
  for (const target of listTargetsOf(list, view, read, deps))
    for (const port of [...ports].filter((candidate) => !served.has(candidate))) {
      const chosen = deps.bindings.chosen(read, activeOn(port), { client: target.client, listenerPort: port });
      // If several objects have routes for the host, it is there once: Envoy accepts a domain only once.
      if (chosen[0]?.key !== host.bindingKey) continue;
      const named = alias && portNumbered(alias.ports, port) ? alias : undefined;
      const inProxyTables = isProxied(host, view, read, deps) ? proxyTables(view, read, deps) : [];
      for (const table of [String(port), ...inProxyTables]) {
        const listenerPort = table === proxyTable ? 0 : port;
        const uses = usesOf(chosen, target, { view, listenerPort }, read, deps);
        yield { target, port, listenerPort, table, uses, alias: named };
      }
    }
}

function* hostVirtualHosts(
  hostView: RouteHostView,
  read: Reader,
  deps: RouteDeps,
  pieces: RoutePieces,
): Generator<[name: string, entry: VirtualHostEntry]> {
  const { view, host } = hostView;
  for (const choice of choicesOfHost(hostView, read, deps)) {
    const { target, port, listenerPort, alias, uses } = choice;
    const subject = { client: target.client, host: host.host, port, listenerPort, ...(alias && { service: alias }) };
    const domains = freeDomains(subject, view, read, deps);
    const content = routedContent(uses.flatMap((use) => pieces.of(read, use)));
    if (content === undefined) continue;
    const entry = entryOf(content, host, { ...choice, domains }, false, deps);
    if (entry !== undefined) yield [`${host.host}:${port}`, entry];
  }
}
