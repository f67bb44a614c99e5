import type { EncodedResource, LeafPart, Part } from '../../ads/store/resource.ts';
import { type ObjectRef, withoutGeneration } from '../../api/object.ts';
import type { HasProblems, Problem } from '../../api/problem.ts';
import { splitKey } from '../../api/keys.ts';
import type { Slot } from '../../model/patch.ts';
import type { PatchedRoutes, Patches } from '../clients/patch-sets.ts';
import { type HasFailed, failedOf, failedPatches, patchingAt, tableSlot } from '../resources/patching.ts';
import type { Collection, Emit, Graph, Reader } from '../../cache/graph.ts';
import { blackHoleVirtualHost, buildVirtualHost } from '../../envoy/route/virtual-host.ts';
import { node, samePart, sameResource } from '../../envoy/encode/resource.ts';
import { type Aged, compareAge } from '../../model/age.ts';
import { type GatewayServer, type MergedListener, hostsFor, intersectionWith, isSecure } from '../../model/gateway.ts';
import { contentHash, spreadHash } from '../../model/hash.ts';
import { bracketed, compareSpecificity } from '../../model/host.ts';
import type { Source } from '../../model/provenance.ts';
import {
  type Parent,
  type RouteBinding,
  gatewayPrecedence,
  gatewaysOf,
  isSeenFrom,
  parentKey,
  takeIn,
} from '../../model/route-binding.ts';
import { joinRoutes, reachedOf } from '../resources/encoded-routes.ts';
import { declareClaimFindings } from './claims.ts';
import {
  type GatewayDeps,
  type RouterClass,
  type Routers,
  emitToRouters,
  routerClient,
  viewOfRouter,
} from './routers.ts';
import { type Member, type Members, sameMember } from '../resources/members.ts';
import { type RouteUse, declareRoutePieces } from '../resources/route-pieces.ts';
import { settingOf } from '../settings.ts';

/** A table's virtual hosts are spread over this many nodes, so that a change to one of thousands is cheap. */
const TABLE_SHARDS = 64;

/** Everything that Gateways ask of the routers in a class. */
export interface GatewaySet {
  readonly router: RouterClass;
  readonly listeners: readonly MergedListener[];
  readonly problems: readonly Problem[];
}

/** A route table of a router class. Its key is `class|name`. */
interface Table {
  /** Key of the class; the same below. */
  readonly router: string;
  readonly name: string;
  /** Port of its first server. */
  readonly port: number;
}

/** The servers of one Gateway that share a table. */
interface TableServers {
  readonly table: string;
  readonly router: string;
  readonly parent: Parent;
  readonly ref: ObjectRef;
  readonly age: Aged;
  readonly servers: readonly GatewayServer[];
}

/** What the routes of one object, or a redirect to https, add to a host of a table. */
interface HostClaim {
  readonly table: string;
  readonly router: string;
  readonly host: string;
  /** Port of the server. */
  readonly port: number;
  readonly httpsRedirect: boolean;
  /** The server. */
  readonly namedIn: Source;
  /** Absent: no routes; the host only redirects. */
  readonly source?: RouteSource;
  /** Gateways by age, their servers as written, routes by precedence. */
  readonly order: { readonly gateway: Aged; readonly server: number; readonly rank: number; readonly route: Aged };
}

/** The routes of an object, as seen by a server of a Gateway. */
interface RouteSource {
  /** Of the {@link RouteBinding}. */
  readonly key: string;
  readonly parent: Parent;
  /** Port of the server, not of the listener: matches compare with it. */
  readonly port: number;
  /** Requests reach the server over TLS. */
  readonly secure: boolean;
}

/** The same source in the tables of a router class. */
type GatewayRouteUse = RouteUse & RouteSource & { readonly router: string; readonly patched?: PatchedRoutes };

function useOf(router: string, source: RouteSource, patched: PatchedRoutes | undefined): GatewayRouteUse {
  const { key, parent, port, secure } = source;
  const routes = [router, parentKey(parent), port, secure, key].join('|');
  if (patched === undefined) return { routes, router, ...source };
  const { table = '', host = '' } = patched.slot;
  return { routes: `${routes}|${table}|${host}`, router, ...source, patched };
}

/** A host of a table with all its routes. */
interface TableHost {
  readonly table: string;
  readonly router: string;
  readonly host: string;
  readonly port: number;
  readonly httpsRedirect: boolean;
  readonly sources: readonly RouteSource[];
  /** Servers that name the host. */
  readonly namedIn: readonly Source[];
  /** Equal for hosts that can share a virtual host. */
  readonly sharing: string;
}

interface VirtualHostEntry extends HasProblems {
  readonly table: string;
  readonly part: LeafPart;
}

/** Virtual hosts of Gateways, and the tables made from them. */
export function declareGatewayRoutes(
  graph: Graph,
  deps: GatewayDeps,
  routers: Routers,
  sets: Collection<GatewaySet>,
): { readonly members: Members; readonly findings: readonly Collection<HasProblems>[] } {
  const tables = graph.derive('gatewayTables', sets, (router, set, _, emit: Emit<Table>) => {
    for (const [name, [first]] of serversByTable(set)) {
      if (first !== undefined) emit(`${router}|${name}`, { router, name, port: first.server.port.number });
    }
  });
  const tableServers = graph.derive('tableServers', sets, (router, set, _, emit: Emit<TableServers>) => {
    for (const [name, bound] of serversByTable(set))
      for (const [object, own] of Map.groupBy(bound, ({ ref }) => ref)) {
        const { age } = own[0]!;
        const table = `${router}|${name}`;
        const servers = own.map(({ server }) => server);
        const { source, group, kind, namespace, name: gateway } = object;
        emit(`${table}|${source}/${namespace}/${gateway}`, {
          table,
          router,
          parent: { group, kind, namespace, name: gateway },
          ref: withoutGeneration(object),
          age,
          servers,
        });
      }
  });

  const hosts = declareHosts(graph, deps, routers.classes, tableServers);
  const byRoutes = graph.index(
    'gateway hosts by routes',
    hosts,
    (_, { table, sharing }) => [`${table}|${sharing}`],
    (a, b) => compareSpecificity(a.value.host, b.value.host),
  );
  const uses = graph.derive('gateway routes in use', byRoutes, (key, members, read, emit: Emit<GatewayRouteUse>) => {
    const [{ value: first }] = members;
    const patched = deps.patches && patchedAt(first, read, deps.patches, routers.classes);
    for (const [i, source] of first.sources.entries()) emit(`${key}|${i}`, useOf(first.router, source, patched));
  });
  const each = (use: GatewayRouteUse) => [use];
  const pieces = declareRoutePieces(graph, 'gatewayRoutePieces', deps, [uses], each, (use, read) => {
    const router = read.get(routers.classes, use.router);
    if (router === undefined) return undefined;
    const { parent, port: listenerPort, secure: tls, patched } = use;
    const settings = settingOf(read, deps.settings.routes);
    const scope = { client: routerClient(router, read, deps), settings, parent, listenerPort, tls };
    return { view: viewOfRouter(router), scope, ...(patched && { patched }) };
  });
  const virtualHosts = graph.derive(
    'gatewayVirtualHosts',
    byRoutes,
    (key, members, read, emit: Emit<VirtualHostEntry>) => {
      const [{ value: first }] = members;
      const { table, router, port, httpsRedirect, sources } = first;
      const found = read.get(routers.classes, router);
      if (found === undefined) return;
      const patched = deps.patches && patchedAt(first, read, deps.patches, routers.classes);
      const hosts = members.map((member) => member.value.host);
      const [host = ''] = hosts;
      const { problems, ...content } = joinRoutes(
        sources.flatMap((source) => reachedOf(pieces.of(read, useOf(router, source, patched)))),
      );
      const virtualHost = buildVirtualHost({ host, port, domains: hosts.map(bracketed), httpsRedirect });
      const from = (): readonly Source[] => members.flatMap((member) => member.value.namedIn);
      const patching =
        found.patches === undefined
          ? undefined
          : patchingAt(read, deps.patches, found.patches, { ...slotOf(first), type: 'virtualHost' });
      const part = deps.encoder.virtualHost(virtualHost, content, from, patching);
      emit(key, { table, part, problems: patching === undefined ? problems : [...problems, ...patching.problems] });
    },
    (a, b) => samePart(a.part, b.part) && a.problems.length === 0 && b.problems.length === 0,
  );
  const claims = declareClaimFindings(graph, deps, routers, uses);
  const made = declareTables(graph, deps, routers, tables, virtualHosts);
  const failed =
    deps.patches === undefined ? [] : [failedPatches(graph, pieces.all), failedPatches(graph, made.tables)];
  return { members: made.members, findings: [virtualHosts, claims, ...failed] };
}

/** Where the routes of a host stand. Hosts that share a virtual host stand where the first one does. */
function slotOf({ table, host, port }: Pick<TableHost, 'table' | 'host' | 'port'>): Slot {
  const [, name] = splitKey(table);
  return { type: 'route', direction: 'gateway', table: name, host, port };
}

function patchedAt(
  host: TableHost,
  read: Reader,
  patches: Patches,
  routers: Collection<RouterClass>,
): PatchedRoutes | undefined {
  const set = read.get(routers, host.router)?.patches;
  const slot = slotOf(host);
  return set !== undefined && patches.isPatched(read, set, slot) ? { set, slot } : undefined;
}

/** Whether a patch is for this host, which then has a virtual host of its own. */
function isNamed(
  host: Pick<TableHost, 'table' | 'router' | 'host' | 'port'>,
  read: Reader,
  patches: Patches,
  routers: Collection<RouterClass>,
): boolean {
  const set = read.get(routers, host.router)?.patches;
  if (set === undefined) return false;
  const slot = slotOf(host);
  return patches.isNamed(read, set, slot) || patches.isNamed(read, set, { ...slot, type: 'virtualHost' });
}

function serversByTable({ listeners }: GatewaySet): ReadonlyMap<string, GatewaySet['listeners'][number]['servers']> {
  const routed = listeners.flatMap(({ servers }) => servers).filter(({ routes }) => routes !== '');
  return Map.groupBy(routed, ({ routes }) => routes);
}

/** Hosts of tables: where servers meet the routes of their Gateway, and where servers redirect. */
function declareHosts(
  graph: Graph,
  deps: GatewayDeps,
  routers: Collection<RouterClass>,
  tableServers: Collection<TableServers>,
): Collection<TableHost> {
  const ofGateway = graph.index('table servers by gateway', tableServers, (_, { parent }) => [parentKey(parent)]);
  const routeClaims = graph.derive(
    'gatewayRouteClaims',
    deps.bindings.all,
    (key, binding, read, emit: Emit<HostClaim>) => {
      if (!binding.hasRequests) return;
      for (const [gateway, parents] of gatewaysOf(binding)) {
        for (const { key: serversKey, value: servers } of read.group(ofGateway, gateway)) {
          const router = read.get(routers, servers.router);
          if (router === undefined || !isSeenFrom(binding, router.namespace)) continue;
          const client = routerClient(router, read, deps);
          const holdsOn = (listenerPort: number): boolean =>
            deps.bindings.canHold(read, key, { client, parent: servers.parent, listenerPort });
          for (const claim of claimsOf(binding, parents, servers, router, holdsOn))
            emit(`${serversKey}|${claim.order.server}|${claim.host}|${key}`, claim);
        }
      }
    },
  );
  const redirects = graph.derive('gatewayRedirects', tableServers, (key, servers, _, emit: Emit<HostClaim>) => {
    const nobody = { createdAt: '', name: '', namespace: '' };
    const { table, router, age, ref } = servers;
    for (const [index, server] of servers.servers.entries()) {
      if (!server.httpsRedirect) continue;
      const order = { gateway: age, server: index, rank: LAST, route: nobody };
      for (const host of new Set(server.hosts.map((entry) => entry.host.toLowerCase())))
        emit(`${key}|${index}|${host}`, {
          table,
          router,
          host,
          port: server.port.number,
          httpsRedirect: true,
          namedIn: { object: ref, field: server.field },
          order,
        });
    }
  });
  const byHost = graph.index(
    'gateway claims by host',
    [routeClaims, redirects],
    (_, { table, host }) => [`${table}|${host}`],
    (a, b) => compareClaims(a.value, b.value),
  );
  return graph.derive('gatewayHosts', byHost, (key, members, read, emit: Emit<TableHost>) => {
    const claims = members.map((member) => member.value);
    const { table, router, host, port } = claims[0]!;
    const httpsRedirect = claims.some((claim) => claim.httpsRedirect);
    const sources = claims.flatMap(({ source }) => (source === undefined ? [] : [source]));
    const own = deps.patches && isNamed({ table, router, host, port }, read, deps.patches, routers) ? [host] : [];
    const sharing = contentHash(JSON.stringify([httpsRedirect, sources, ...own]));
    emit(key, {
      table,
      router,
      host,
      port,
      httpsRedirect,
      sources,
      namedIn: claims.map(({ namedIn }) => namedIn),
      sharing,
    });
  });
}

/** The rank of redirects: after the routes of their server. */
const LAST = 3;

function compareClaims({ order: a }: HostClaim, { order: b }: HostClaim): number {
  return compareAge(a.gateway, b.gateway) || a.server - b.server || a.rank - b.rank || compareAge(a.route, b.route);
}

/**
 * The hosts that routes have on the servers of a Gateway. The routes are those for the first server that these
 * fit: on other servers of the same table they are identical.
 *
 * @param parents those of the routes that are this Gateway.
 */
function* claimsOf(
  binding: RouteBinding,
  parents: readonly Parent[],
  { table, router, parent, ref, age, servers }: TableServers,
  { namespace }: RouterClass,
  holdsOn: (port: number) => boolean,
): Generator<HostClaim> {
  let source: RouteSource | undefined;
  const hostsOf = intersectionWith(binding.hosts);
  for (const [index, server] of servers.entries()) {
    if (!takeIn(parents, server)) continue;
    const hosts = hostsOf(hostsFor(server, binding.namespace));
    const port = server.port.number;
    if (hosts.length === 0) continue;
    if (source === undefined && !holdsOn(port)) continue;
    source ??= { key: binding.key, parent, port, secure: isSecure(server) };
    const order = {
      gateway: age,
      server: index,
      rank: gatewayPrecedence(binding, namespace),
      route: { createdAt: binding.createdAt, name: binding.name, namespace: binding.namespace },
    };
    const namedIn = { object: ref, field: server.field };
    for (const host of new Set(hosts.map((name) => name.toLowerCase())))
      yield { table, router, host, port, httpsRedirect: server.httpsRedirect, namedIn, source, order };
  }
}

interface BuiltTable extends HasFailed {
  readonly router: string;
  readonly resource: EncodedResource;
}

/** Tables assembled from virtual hosts without copying them. */
function declareTables(
  graph: Graph,
  { encoder, patches }: GatewayDeps,
  routers: Routers,
  tables: Collection<Table>,
  virtualHosts: Collection<VirtualHostEntry>,
): { readonly members: Members; readonly tables: Collection<BuiltTable> } {
  const shards = graph.derive(
    'gatewayTableShards',
    graph.index('gateway virtual hosts by shard', virtualHosts, (key, { table }) => [
      `${table}|${spreadHash(key) % TABLE_SHARDS}`,
    ]),
    (key, members, _, emit: Emit<{ table: string; part: Part }>) =>
      emit(key, { table: members[0].value.table, part: node(members.map((member) => member.value.part)) }),
    (a, b) => samePart(a.part, b.part),
  );
  const byTable = graph.index('gateway table shards by table', shards, (_, { table }) => [table]);
  const built = graph.derive(
    'gatewayRouteTables.built',
    tables,
    (key, { router, name, port }, read, emit: Emit<BuiltTable>) => {
      const filled = read.group(byTable, key).map((member) => member.value.part);
      const content = filled.length > 0 ? filled : [encoder.virtualHost(blackHoleVirtualHost(port))];
      const set = patches && read.get(routers.classes, router)?.patches;
      const patching = patchingAt(read, patches, set, { ...tableSlot('gateway', name), port });
      emit(key, { router, resource: encoder.routeTable(name, content, patching), ...(patching && failedOf(patching)) });
    },
    (a, b) => a.failed === b.failed && sameResource(a.resource, b.resource),
  );
  const members = graph.derive(
    'gatewayRouteTables',
    built,
    (_, { router, resource: table }, read, emit: Emit<Member>) => emitToRouters(emit, read, routers, router, table),
    sameMember,
  );
  return { members, tables: built };
}
