import type { LeafPart, Part } from '../ads/resource.ts';
import type { Collection, Emit, Graph, Index, Reader } from '../cache/graph.ts';
import { types } from '../envoy/proto-types.ts';
import { type Protos, typeUrl } from '../envoy/proto.ts';
import { node, resource, samePart } from '../envoy/resource.ts';
import { routeHeaderPart, virtualHostPart } from '../envoy/route-parts.ts';
import { type BuiltVirtualHost, buildVirtualHost, catchAllVirtualHost } from '../envoy/virtual-host.ts';
import { domainsOf } from '../envoy/virtual-host-domains.ts';
import { compareAge } from '../model/age.ts';
import type { Client } from '../model/client.ts';
import { isWildcard, wildcardsOf } from '../model/host.ts';
import { spreadHash } from '../model/hash.ts';
import { type MeshService, type ServicePort, isHeadless, isVisibleTo, protocolClass } from '../model/service.ts';
import type { EgressListener } from '../model/sidecar.ts';
import { meshGateway } from '../model/virtual-service.ts';
import { type Candidate, virtualServiceFor } from '../model/virtual-service-selection.ts';
import { isServedNow, lookupFor } from './destinations.ts';
import type { ServiceEndpoints } from './endpoints.ts';
import { type Inputs, optionsOf } from './inputs.ts';
import { type Member, type Members, emitMember, sameMember } from './members.ts';
import type { Rules } from './policies.ts';
import { type Services, type Settings, SHARDS, settingOf, shardOf } from './registry.ts';
import {
  type ScopeViews,
  type ServiceView,
  type View,
  type Views,
  builderClient,
  candidatesFor,
  serviceFor,
} from './views.ts';
import type { Sidecars } from './sidecars.ts';
import { type VirtualServices, wildcardKey } from './virtual-services.ts';

/**
 * A host of a VirtualService of the mesh. On ports where no service has that name it is a virtual host of its own: on port
 * 80 always, on others beside the services of its VirtualService.
 */
export interface RouteHost {
  /** Of the VirtualService. */
  readonly namespace: string;
  readonly host: string;
  readonly exportTo: readonly string[];
  readonly createdAt: string;
  readonly name: string;
  /** All hosts of the VirtualService. */
  readonly hosts: readonly string[];
}

/** The virtual hosts of a view for clients of its own namespace are kept beside those for all others. */
const localKey = (view: string): string => `${view}~`;

/** A virtual host in a table of a list, with its place in it. */
interface VirtualHostEntry {
  readonly list: string;
  readonly view: string;
  /** Name of the route table. */
  readonly table: string;
  /** Services make a table; hosts of VirtualServices alone do not. */
  readonly declares: boolean;
  readonly part: LeafPart;
}

export interface RouteParts {
  readonly inputs: Inputs;
  readonly settings: Settings;
  readonly services: Services;
  readonly rules: Rules;
  readonly virtualServices: VirtualServices;
  readonly routeHosts: RouteHosts;
  readonly sidecars: Sidecars;
  readonly views: Views;
  readonly endpoints: ServiceEndpoints;
  readonly protos: Protos;
}

export interface RouteHosts {
  readonly hosts: Collection<RouteHost>;
  readonly byShard: Index<RouteHost>;
  /** Services and route hosts by host name: who may own a domain. */
  readonly owners: Index<{ readonly host: string; readonly exportTo: readonly string[] }>;
  /** By wildcard host. */
  readonly portsUnder: Index<SuffixPorts>;
}

/** Declared before views, because shards hold these hosts too. */
export function declareRouteHosts(graph: Graph, services: Services, virtualServices: VirtualServices): RouteHosts {
  const hosts = graph.derive('routeHosts', virtualServices.routes, (key, model, _, emit: Emit<RouteHost>) => {
    if (!model.gateways.includes(meshGateway) || model.http.length === 0) return;
    const { namespace, exportTo, createdAt, name } = model;
    for (const host of new Set(model.hosts))
      if (host !== '*') emit(`${key}|${host}`, { namespace, host, exportTo, createdAt, name, hosts: model.hosts });
  });
  return {
    hosts,
    byShard: graph.index(
      'route hosts by shard',
      hosts,
      (_, value) => [shardOf(value)],
      (a, b) => compareAge(a.value, b.value),
    ),
    owners: graph.index<{ readonly host: string; readonly exportTo: readonly string[]; readonly resolution?: string }>(
      'owners of domains',
      [services.services, hosts],
      (_, value) => (value.resolution === 'Alias' ? [] : [value.host]),
    ),
    portsUnder: declareSuffixes(graph, services),
  };
}

interface SuffixPorts {
  /** `*.default.svc.cluster.local` */
  readonly suffix: string;
  readonly ports: readonly number[];
}

/** By wildcard: ports that services under it serve with HTTP, in pieces of a namespace. */
function declareSuffixes(graph: Graph, services: Services): Index<SuffixPorts> {
  const pieces = graph.derive(
    'ports by suffix',
    graph.index('services by suffix', services.services, (_, { host }) => [
      `${wildcardKey(`*${host.slice(host.indexOf('.'))}`)}|${spreadHash(host) % SHARDS}`,
    ]),
    (key, members, _, emit: Emit<SuffixPorts>) => {
      const ports = new Set(
        members.flatMap(({ value }) => value.ports.filter((p) => isRouted(p.protocol)).map((p) => p.number)),
      );
      emit(key, { suffix: key.slice(0, key.lastIndexOf('|')), ports: [...ports].sort((a, b) => a - b) });
    },
  );
  return graph.index('ports under wildcards', pieces, (_, { suffix }) => wildcardsOf(suffix));
}

/** Virtual hosts of a table, of one shard or one view. */
interface TablePiece {
  readonly view: string;
  readonly table: string;
  readonly declares: boolean;
  readonly part: Part;
}

const isRouted = (protocol: MeshService['ports'][number]['protocol']): boolean => {
  const kind = protocolClass(protocol);
  return kind === 'http' || kind === 'sniffed';
};

/** Virtual hosts, and the tables of parts that scopes have. */
export function declareRoutes(graph: Graph, parts: RouteParts): readonly Members[] {
  const { views } = parts;
  const ofServices = graph.derive(
    'virtualHosts',
    views.serviceViews,
    (_, view, read, emit: Emit<VirtualHostEntry>) => {
      if (view.view.traits.proxyType === 'router') return;
      for (const [name, entry] of serviceVirtualHosts(view, read, parts))
        if (!isOwnTable(entry.table) || entry.list === view.list) emit(`${entry.list}|${entry.table}|${name}`, entry);
    },
    sameEntry,
  );
  const hostMembers = graph.derive(
    'routeHosts.members',
    views.shardViews,
    (list, { view, shard }, read, emit: Emit<{ list: string; view: View; host: RouteHost }>) => {
      if (view.traits.proxyType === 'router') return;
      const taken = new Set<string>();
      for (const { value: host } of read.group(parts.routeHosts.byShard, shard))
        if (!taken.has(host.host) && isVisibleTo(host, view.client)) {
          taken.add(host.host);
          emit(`${list}|${host.host}`, { list, view, host });
        }
    },
  );
  const ofHosts = graph.derive(
    'virtualHosts.routeHosts',
    hostMembers,
    (_, { list, view, host }, read, emit: Emit<VirtualHostEntry>) => {
      for (const [name, entry] of hostVirtualHosts(list, view, host, read, parts))
        emit(`${entry.list}|${entry.table}|${name}`, entry);
    },
    sameEntry,
  );

  const byTable = graph.index('virtual hosts by table', [ofServices, ofHosts], (_, { list, table }) =>
    isOwnTable(table) ? [] : [`${list}|${table}`],
  );
  const assemble = <Piece extends TablePiece>(name: string, source: Index<Piece>) =>
    graph.derive(
      name,
      source,
      (key, members, _, emit: Emit<TablePiece>) => {
        const pieces = members.map((member) => member.value);
        const { view, table } = pieces[0]!;
        const declares = pieces.some((piece) => piece.declares);
        emit(key, { view, table, declares, part: node(pieces.map((piece) => piece.part)) });
      },
      samePiece,
    );
  const routeShards = assemble('routeShards', byTable);
  const routeNamespaces = assemble(
    'routeNamespaces',
    graph.index('route shards by view', routeShards, (_, { view, table }) => [`${view}|${table}`]),
  );
  const tablesOfView = graph.derive(
    'tablesOfView',
    graph.index('tables by view', routeNamespaces, (_, { view, declares }) => (declares ? [view] : [])),
    (view, members, _, emit: Emit<readonly string[]>) => emit(view, members.map((member) => member.value.table).sort()),
  );
  const routeTables = declareTables(graph, parts, routeNamespaces, tablesOfView);
  const ownTables = graph.derive(
    'routeTables.sniffed',
    ofServices,
    (_, { list, table, part }, __, emit: Emit<Member>) => {
      if (!isOwnTable(table)) return;
      emitMember(emit, list, resource(typeUrl(types.route), table, node([routeHeaderPart(parts.protos, table), part])));
    },
    sameMember,
  );
  return [routeTables, ownTables];
}

function sameEntry(a: VirtualHostEntry, b: VirtualHostEntry): boolean {
  return samePart(a.part, b.part);
}

function samePiece(a: TablePiece, b: TablePiece): boolean {
  return samePart(a.part, b.part) && a.declares === b.declares;
}

/** Which table each scope has under which name, and from which views. */
function declareTables(
  graph: Graph,
  parts: RouteParts,
  routeNamespaces: Collection<TablePiece>,
  tablesOfView: Collection<readonly string[]>,
): Members {
  interface Table {
    readonly list: string;
    readonly name: string;
    /** The table of the views that it is made of. */
    readonly source: string;
    readonly views: readonly string[];
    readonly scope: ScopeViews['scope'];
  }
  const tables = graph.derive(
    'scopeTables',
    parts.views.scopes,
    (key, { scope, outlets, local }, read, emit: Emit<Table>) => {
      if (scope.traits.proxyType === 'router') return;
      const taken = new Set<string>();
      for (const { listener, views } of outlets)
        for (const { name, source } of tablesOfOutlet(
          listener,
          new Set(views.flatMap((v) => read.get(tablesOfView, v.key) ?? [])),
          scope,
          read,
          parts,
        ))
          if (!taken.has(name)) {
            taken.add(name);
            emit(`${key}|${name}`, {
              list: key,
              name,
              source,
              views: views.map((view) => (view.key === local ? localKey(view.key) : view.key)),
              scope,
            });
          }
    },
  );
  return graph.derive(
    'routeTables',
    tables,
    (_, table, read, emit: Emit<Member>) => {
      const children: Part[] = [routeHeaderPart(parts.protos, table.name)];
      for (const view of table.views) {
        const found = read.get(routeNamespaces, `${view}|${table.source}`);
        if (found !== undefined) children.push(found.part);
      }
      children.push(catchAllPart(table.scope, read, parts));
      emitMember(emit, table.list, resource(typeUrl(types.route), table.name, node(children)));
    },
    sameMember,
  );
}

const PROXY_TABLE = 'http_proxy';

function tablesOfOutlet(
  listener: EgressListener,
  tables: ReadonlySet<string>,
  scope: ScopeViews['scope'],
  read: Reader,
  parts: RouteParts,
): { name: string; source: string }[] {
  const { port } = listener;
  if (port === undefined) {
    const all = [...tables].filter((table) => table !== PROXY_TABLE).map((table) => ({ name: table, source: table }));
    const { proxyHttpPort } = settingOf(read, parts.settings.listeners);
    const proxied = proxyHttpPort > 0 || scope.traits.httpProxyPort > 0;
    return proxied ? [...all, { name: PROXY_TABLE, source: PROXY_TABLE }] : all;
  }
  if (port.number === 0) return [{ name: listener.bind, source: PROXY_TABLE }];
  if (port.protocol === 'HTTP_PROXY') return [{ name: String(port.number), source: PROXY_TABLE }];
  const own = String(port.number);
  const routed = protocolClass(port.protocol) === 'http' || tables.has(own);
  return routed ? [{ name: own, source: own }] : [];
}

function catchAllPart(scope: ScopeViews['scope'], read: Reader, parts: RouteParts): LeafPart {
  const sidecar = scope.sidecar === '' ? undefined : read.get(parts.sidecars.models, scope.sidecar);
  const { outboundTrafficPolicy } = settingOf(read, parts.settings.listeners);
  const policy = sidecar?.outboundTrafficPolicy ?? { mode: outboundTrafficPolicy };
  const proxy = 'egressProxy' in policy ? policy.egressProxy : undefined;
  const target =
    proxy &&
    lookupFor(
      { client: scope.namespace, traits: scope.traits, matched: scope.matched },
      read,
      parts,
    )(proxy, proxy.port ?? 0);
  const cluster = target?.kind === 'cluster' ? target.cluster : undefined;
  const { virtualHost, clusters } = catchAllVirtualHost(policy.mode, cluster);
  return virtualHostPart(parts.protos, virtualHost, clusters, []);
}

function* serviceVirtualHosts(
  view: ServiceView,
  read: Reader,
  parts: RouteParts,
): Generator<[name: string, entry: VirtualHostEntry]> {
  const service = read.get(parts.services.services, view.service);
  if (service === undefined) return;
  const rule = view.rule === '' ? undefined : read.get(parts.rules.rules, view.rule);
  const candidates = view.routes.flatMap(({ matched, key }): Candidate[] => {
    const model = read.get(parts.virtualServices.routes, key);
    return model === undefined ? [] : [{ matched, model }];
  });
  const lookup = lookupFor(view.view, read, parts);
  const settings = settingOf(read, parts.settings.routes);
  for (const place of placesOf(view.list, view.view, read, parts)) {
    const { client } = place;
    for (const port of service.ports) {
      if (!view.ports.includes(port.number) || !isRouted(port.protocol)) continue;
      const virtualService = virtualServiceFor(candidates, { client, listenerPort: port.number });
      for (const table of tablesOf(service, port, view.view, read, parts)) {
        const subject = {
          client,
          host: service.host,
          service,
          port: port.number,
          ...(table === PROXY_TABLE && { listenerPort: 0 }),
        };
        const built = buildVirtualHost({
          ...subject,
          protos: parts.protos,
          ...(virtualService && { virtualService }),
          ...(rule && { rule }),
          served: isServedNow(service, port.number, {}, read, parts),
          lookup,
          settings,
          domains: freeDomains(domainsOf(subject), service, port.number, view.view, read, parts),
          sniffed: isOwnTable(table),
        });
        const entry = entryOf(built, place, table, true, parts);
        if (entry !== undefined) yield [`${service.host}:${port.number}`, entry];
      }
    }
  }
}

interface Place {
  readonly list: string;
  readonly view: string;
  readonly client: Client;
}

/** Where the virtual hosts of a view go, and for which client each is made. */
function placesOf(list: string, view: View, read: Reader, parts: RouteParts): Place[] {
  const { domainSuffix } = optionsOf(read, parts.inputs);
  const places: Place[] = [{ list, view: view.key, client: builderClient(view, domainSuffix) }];
  if (read.get(parts.views.localViews, view.key) === true) {
    const client = builderClient({ ...view, client: view.namespace }, domainSuffix);
    places.push({ list: localKey(list), view: localKey(view.key), client });
  }
  return places;
}

function entryOf(
  built: BuiltVirtualHost,
  { list, view }: Place,
  table: string,
  declares: boolean,
  parts: RouteParts,
): VirtualHostEntry | undefined {
  if (built.virtualHost === undefined) return undefined;
  const part = virtualHostPart(parts.protos, built.virtualHost, built.clusters, built.origins);
  return { list, view, table, declares, part };
}

/** The table of the port; a sniffed service with an address has one of its own; proxies for any port have one for all. */
function tablesOf(
  service: MeshService,
  { number, protocol }: ServicePort,
  view: View,
  read: Reader,
  parts: RouteParts,
): string[] {
  const tables = [String(number), ...proxyTables(view, read, parts)];
  const listener = view.egress && read.get(parts.sidecars.models, view.egress.sidecar)?.egress[view.egress.listener];
  const addressed =
    isHeadless(service) ||
    service.addresses.some((address) => address !== '0.0.0.0') ||
    view.traits.interception === 'NONE' ||
    (listener !== undefined && (listener.bind !== '' || listener.bindToPort));
  const heard = listener?.port?.protocol ?? protocol;
  if (protocolClass(heard) === 'sniffed' && addressed) tables.push(`${service.host}:${number}`);
  return tables;
}

/** The table of one sniffed service, which all scopes that see the service share. */
const isOwnTable = (table: string): boolean => table.includes(':');

/** Only where somebody listens for all ports at once. */
function proxyTables(view: View, read: Reader, parts: RouteParts): string[] {
  const { proxyHttpPort } = settingOf(read, parts.settings.listeners);
  return proxyHttpPort > 0 || view.traits.httpProxyPort > 0 || view.egress !== undefined ? [PROXY_TABLE] : [];
}

/** Domains that nobody with a better claim has: a host of that very name, or an older service with the same address. */
function freeDomains(
  domains: readonly string[],
  service: MeshService,
  port: number,
  view: View,
  read: Reader,
  parts: RouteParts,
): readonly string[] {
  const full = new Set([service.host, `${service.host}.`]);
  return domains.filter((domain) => {
    if (full.has(domain) || domain.endsWith('.') || isWildcard(domain)) return true;
    const rivals = read.group(parts.routeHosts.owners, domain);
    if (rivals.some((rival) => rival.value.host !== service.host && isVisibleTo(rival.value, view.client)))
      return false;
    const sharing = read.group(parts.services.byAddress, domain);
    const first = sharing.find(
      ({ value }) =>
        isVisibleTo(value, view.client) && value.ports.some((p) => p.number === port && isRouted(p.protocol)),
    );
    return first === undefined || first.value.host === service.host;
  });
}

function* hostVirtualHosts(
  list: string,
  view: View,
  host: RouteHost,
  read: Reader,
  parts: RouteParts,
): Generator<[name: string, entry: VirtualHostEntry]> {
  const served = routedPorts(host.host, view, read, parts);
  const ports = new Set([80, ...host.hosts.flatMap((sibling) => routedPorts(sibling, view, read, parts))]);
  const candidates = candidatesFor(read, parts.virtualServices, view.client, host.host);
  const lookup = lookupFor(view, read, parts);
  const settings = settingOf(read, parts.settings.routes);
  for (const place of placesOf(list, view, read, parts))
    for (const port of [...ports].filter((candidate) => !served.includes(candidate))) {
      const virtualService = virtualServiceFor(candidates, { client: place.client, listenerPort: port });
      if (virtualService === undefined) continue;
      for (const table of [String(port), ...proxyTables(view, read, parts)]) {
        const subject = {
          client: place.client,
          host: host.host,
          port,
          ...(table === PROXY_TABLE && { listenerPort: 0 }),
        };
        const domains = domainsOf(subject);
        const built = buildVirtualHost({ ...subject, protos: parts.protos, virtualService, lookup, settings, domains });
        const entry = entryOf(built, place, table, false, parts);
        if (entry !== undefined) yield [`${host.host}:${port}`, entry];
      }
    }
}

/** Ports on which a service of that name, or services under that wildcard, are served with HTTP. */
function routedPorts(host: string, view: View, read: Reader, parts: RouteParts): readonly number[] {
  if (isWildcard(host))
    return read.group(parts.routeHosts.portsUnder, wildcardKey(host)).flatMap((member) => member.value.ports);
  const service = serviceFor(read, parts.services, view, host);
  return (service?.ports ?? []).filter((port) => isRouted(port.protocol)).map((port) => port.number);
}
