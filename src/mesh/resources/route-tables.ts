import type { HasProblems } from '../../api/problem.ts';
import { IdentityMemo } from '../../base/identity-memo.ts';
import type { LeafPart, Part } from '../../ads/store/resource.ts';
import type { Collection, Emit, Graph, Reader } from '../../cache/graph.ts';
import { httpProxyPort } from '../../model/listener.ts';
import { types } from '../../envoy/encode/proto-types.ts';
import type { Encoder } from '../../envoy/encode/encoder.ts';
import { typeUrl } from '../../envoy/encode/proto.ts';
import { node, resource, samePart } from '../../envoy/encode/resource.ts';
import { catchAllVirtualHost } from '../../envoy/route/virtual-host.ts';
import { protocolClass } from '../../model/service.ts';
import type { EgressListener } from '../../model/sidecar.ts';
import { type DoubledDomain, declareDoubledDomains, withoutDomains } from './doubled-domains.ts';
import { type Member, type Members, emitMember, sameMember } from './members.ts';
import type { Slot } from '../../model/patch.ts';
import { fromNothing } from '../../envoy/encode/trace.ts';
import { type HasFailed, type SlotPatching, failedOf, failedPatches, patchingAt, tableSlot } from './patching.ts';
import type { Scope } from '../clients/proxies.ts';
import type { ScopeViews } from '../clients/scopes.ts';
import { settingOf } from '../settings.ts';
import { unknownTraffic } from './unknown-traffic.ts';
import { isOwnTable, localKey, partKey, proxyTable } from '../clients/routes-of-view.ts';
import { type RouteDeps, type VirtualHostEntry, declareVirtualHosts } from './virtual-hosts.ts';

export interface TableDeps extends RouteDeps {
  readonly scopes: Collection<ScopeViews>;
}

/** Virtual hosts of a table, from one shard or one view. */
interface TablePiece {
  readonly view: string;
  readonly table: string;
  readonly declares: boolean;
  readonly part: Part;
}

/** The tables of scopes, assembled from virtual hosts without copying them. */
export function declareRouteTables(
  graph: Graph,
  deps: TableDeps,
): { readonly members: readonly Members[]; readonly problems: readonly Collection<HasProblems>[] } {
  const { entries: virtualHosts, patched } = declareVirtualHosts(graph, deps);
  const byTable = graph.index('virtual hosts by table', virtualHosts, (_, { place: { list, table } }) =>
    isOwnTable(table) ? [] : [`${list}|${table}`],
  );
  const doubled = declareDoubledDomains(graph, virtualHosts, deps.views.scopesByView);
  const routeShards = graph.derive(
    'routeShards',
    byTable,
    (key, members, read, emit: Emit<TablePiece>) => {
      const lost = read.group(doubled, key).map((member) => member.value);
      const pieces = lost.length === 0 ? members.map((member) => member.value) : left(members, lost, deps.encoder);
      emitPiece(key, pieces.map(pieceOf), emit);
    },
    samePiece,
  );
  const routeNamespaces = graph.derive(
    'routeNamespaces',
    graph.index('route shards by view', routeShards, (_, { view, table }) => [`${view}|${table}`]),
    (key, members, _, emit: Emit<TablePiece>) =>
      emitPiece(
        key,
        members.map((member) => member.value),
        emit,
      ),
    samePiece,
  );
  const tablesOfView = graph.derive(
    'tablesOfView',
    graph.index('tables by view', routeNamespaces, (_, { view, declares }) => (declares ? [view] : [])),
    (view, members, _, emit: Emit<readonly string[]>) => emit(view, members.map((member) => member.value.table).sort()),
  );
  const routeTables = declareTables(graph, deps, routeNamespaces, tablesOfView);
  const ownTables = graph.derive(
    'routeTables of services',
    graph.index('virtual hosts with their own table', virtualHosts, (key, { place: { table } }) =>
      isOwnTable(table) ? [key] : [],
    ),
    (_, [first], read, emit: Emit<Member>) => {
      const { place, part } = first.value;
      const { list, table, view } = place;
      const patching = view.patches && tablePatching(table, view.patches.routes, read, deps);
      emitMember(emit, list, deps.encoder.routeTable(table, [part], patching), '', patching);
    },
    sameMember,
  );
  const problems = deps.patches === undefined ? [] : patched.map((source) => failedPatches(graph, source));
  return { members: [routeTables, ownTables], problems };
}

function pieceOf({ place, part }: VirtualHostEntry): TablePiece {
  return { view: partKey(place), table: place.table, declares: place.declares, part };
}

function emitPiece(key: string, pieces: readonly TablePiece[], emit: Emit<TablePiece>): void {
  const [first] = pieces;
  if (first === undefined) return;
  const { view, table } = first;
  const declares = pieces.some((piece) => piece.declares);
  emit(key, { view, table, declares, part: node(pieces.map((piece) => piece.part)) });
}

/** Virtual hosts with the domains that they keep. */
function left(
  members: readonly { readonly key: string; readonly value: VirtualHostEntry }[],
  lost: readonly DoubledDomain[],
  encoder: Encoder,
): VirtualHostEntry[] {
  return members.flatMap(({ key, value }) => {
    const own = lost.filter(({ loser }) => loser === key);
    const part = own.length === 0 ? value.part : withoutDomains(value.part, own, encoder);
    return part === undefined ? [] : [{ ...value, part }];
  });
}

function samePiece(a: TablePiece, b: TablePiece): boolean {
  return samePart(a.part, b.part) && a.declares === b.declares;
}

/** A table of a scope: its own parts, and keys of the pieces that it shares with others. */
interface ScopeTable extends HasFailed {
  readonly list: string;
  readonly name: string;
  readonly header: LeafPart;
  readonly pieces: readonly string[];
  readonly catchAll: LeafPart;
}

/** How many pieces are in a run, on average: these are mostly shorter than a slice. */
const PIECES_PER_RUN = 4;

/**
 * Most scopes have the same pieces one after the other: a run of them is one node there, which is laid out for the wire
 * once. Where a run ends depends on the bytes of its last piece alone, so that other runs stay the same when pieces come
 * and go, and content that is equal has equal runs.
 */
class Runs {
  readonly #known = new IdentityMemo<Part>();

  of(pieces: readonly Part[]): readonly Part[] {
    const runs: Part[] = [];
    let from = 0;
    pieces.forEach(({ hash }, i) => {
      const ends = i === pieces.length - 1 || hash.charCodeAt(0) % PIECES_PER_RUN === 0;
      if (!ends) return;
      const run = pieces.slice(from, i + 1);
      runs.push(run.length === 1 ? run[0]! : this.#known.of(run, () => node(run)));
      from = i + 1;
    });
    return runs;
  }
}

/** Which tables each scope has, under which names, and from which views. */
function declareTables(
  graph: Graph,
  deps: TableDeps,
  routeNamespaces: Collection<TablePiece>,
  tablesOfView: Collection<readonly string[]>,
): Members {
  const tables = graph.derive(
    'scopeTables',
    deps.scopes,
    (list, { scope, outlets, local }, read, emit: Emit<ScopeTable>) => {
      if (scope.traits.proxyType === 'router' || scope.traits.family === 'grpc') return;
      const catchAll = catchAllPart(scope, read, deps);
      const taken = new Set<string>();
      const emitTable = (name: string, source: string, pieces: readonly string[]): void => {
        if (taken.has(name)) return;
        taken.add(name);
        const patching = scope.patches && tablePatching(name, scope.patches.routes, read, deps);
        const header = deps.encoder.routeTableHeader(name, source === proxyTable, patching);
        emit(`${list}|${name}`, { list, name, header, pieces, catchAll, ...(patching && failedOf(patching)) });
      };
      for (const { listener, views } of outlets) {
        const found = new Set(views.flatMap((view) => read.get(tablesOfView, view.key) ?? []));
        for (const { name, source } of tablesOfOutlet(listener, found, scope, read, deps))
          emitTable(
            name,
            source,
            views.map((view) => `${view.key === local ? localKey(view.key) : view.key}|${source}`),
          );
      }
      // Even if a Sidecar imports nothing for it, its listener has a table.
      if (hasHttpProxy(scope, read, deps)) emitTable(proxyTable, proxyTable, []);
    },
  );
  const runs = new Runs();
  // When one virtual host changes, this runs once per scope: it creates no key or part that already exists.
  return graph.derive(
    'routeTables',
    tables,
    (key, { list, name, header, pieces, catchAll, failed }, read, emit: Emit<Member>) => {
      const shared = pieces.flatMap((piece) => read.get(routeNamespaces, piece)?.part ?? []);
      const table = node([header, ...runs.of(shared), catchAll]);
      const made = resource(typeUrl(types.route), name, table);
      emit(key, { list, qualifier: '', resource: made, ...(failed && { failed }) });
    },
    sameMember,
  );
}

function tablesOfOutlet(
  listener: EgressListener,
  tables: ReadonlySet<string>,
  scope: Scope,
  read: Reader,
  deps: RouteDeps,
): { name: string; source: string }[] {
  const { port } = listener;
  if (port === undefined) {
    const all = [...tables].filter((table) => table !== proxyTable).map((table) => ({ name: table, source: table }));
    return hasHttpProxy(scope, read, deps) ? [...all, { name: proxyTable, source: proxyTable }] : all;
  }
  if (port.number === 0) return [{ name: listener.bind, source: proxyTable }];
  if (port.protocol === 'HTTP_PROXY') return [{ name: String(port.number), source: proxyTable }];
  const own = String(port.number);
  const routed = protocolClass(port.protocol) === 'http' || tables.has(own);
  return routed ? [{ name: own, source: own }] : [];
}

function hasHttpProxy(scope: Scope, read: Reader, deps: RouteDeps): boolean {
  return httpProxyPort(scope.traits, settingOf(read, deps.settings.listeners)) > 0;
}

function catchAllPart(scope: Scope, read: Reader, deps: RouteDeps): LeafPart {
  const { policy, egressProxy } = unknownTraffic(scope, read, deps);
  const { virtualHost, clusters } = catchAllVirtualHost(policy, egressProxy);
  const slot: Slot = { type: 'virtualHost', direction: 'outbound' };
  const patching = scope.patches && patchingAt(read, deps.patches, scope.patches.routes, slot);
  return deps.encoder.virtualHost(virtualHost, { routes: [], clusters }, fromNothing, patching);
}

function tablePatching(
  table: string,
  set: string | undefined,
  read: Reader,
  deps: TableDeps,
): SlotPatching | undefined {
  return patchingAt(read, deps.patches, set, tableSlot('outbound', table));
}
