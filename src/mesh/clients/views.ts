import type { Collection, Emit, Graph, Index, Reader } from '../../cache/graph.ts';
import { directionOf } from '../../model/patch.ts';
import { remembered } from '../../model/remembered.ts';
import { type MeshService, isVisibleTo, serviceKey } from '../../model/service.ts';
import { egressImports, everything, importedPorts, takesPort } from '../../model/sidecar.ts';
import { type Traits, viewTraitsKey } from '../../model/traits.ts';
import { type FoundBinding, candidatesFor, ruleClientOf, serviceFor } from './lookups.ts';
import type { Inputs } from '../inputs.ts';
import type { Patches } from './patch-sets.ts';
import type { ViewPatches } from './scope-patches.ts';
import type { Namespaces } from './namespaces.ts';
import type { RouteHost, RouteHosts } from './route-hosts.ts';
import type { FoundRoutes, RouteBindings } from '../objects/route-bindings.ts';
import { type Rules, ruleFor } from '../objects/rules.ts';
import type { ScopeViews, View } from './scopes.ts';
import { SHARDS, type Services, numberOfShard } from '../objects/services.ts';
import { type Settings, settingOf } from '../settings.ts';
import type { Sidecars } from '../objects/sidecars.ts';

export interface ShardView {
  /** Key of the resource list. */
  readonly list: string;
  readonly view: View;
  readonly shard: string;
}

/** One service, as the clients of a view see it. */
export interface ServiceView {
  readonly list: string;
  readonly view: View;
  /** `namespace/host` */
  readonly service: string;
  /** Id of the rule that applies; empty: none. */
  readonly rule: string;
  /** See {@link candidatesFor}. */
  readonly routes: readonly FoundRoutes[];
  /** Ports that routes and listeners may use. */
  readonly ports: readonly number[];
  /** Ports that clusters are built for here: an earlier egress listener may already have the others. */
  readonly clusterPorts: readonly number[];
  /** No earlier egress listener imports it. */
  readonly isFirst: boolean;
  /** For servers with AUTO_PASSTHROUGH, which forward connections to it as they are. */
  readonly forwards?: boolean;
  /** Key of the {@link PatchSet} for its clusters; absent: nothing patches them. */
  readonly patches?: string;
}

/** A host that only routes name, as the clients of a view see it. */
export interface RouteHostView {
  readonly list: string;
  readonly view: View;
  readonly host: RouteHost;
  /** See {@link candidatesFor}. */
  readonly routes: readonly FoundRoutes[];
}

export interface Views {
  readonly scopesByView: Index<ScopeViews>;
  readonly shardViews: Collection<ShardView>;
  /** Lists of the shards of a view; by view key. */
  readonly viewLists: Collection<readonly string[]>;
  readonly serviceViews: Collection<ServiceView>;
  readonly routeHostViews: Collection<RouteHostView>;
  /** Views that are local to some scope; by view key. */
  readonly localViews: Collection<true>;
}

export interface ViewDeps {
  readonly inputs: Inputs;
  readonly settings: Settings;
  readonly services: Services;
  readonly rules: Rules;
  readonly bindings: RouteBindings;
  readonly routeHosts: RouteHosts;
  readonly sidecars: Sidecars;
  readonly namespaces: Namespaces;
  readonly scopes: Collection<ScopeViews>;
  readonly patches: Patches | undefined;
}

/** Services as clients see them, in views that scopes share. */
export function declareViews(graph: Graph, deps: ViewDeps): Views {
  const { scopes, namespaces } = deps;
  const scopesByView = graph.index('scopes by view', scopes, (_, value) => [
    ...new Set(value.outlets.flatMap((outlet) => outlet.views.map((view) => view.key))),
  ]);
  const shardViews = graph.derive('shardViews', scopesByView, (key, [first], read, emit: Emit<ShardView>) => {
    const view = viewsByKey(first.value.outlets).get(key)!;
    const made = read.get(deps.inputs.shardsMade, viewTraitsKey(view.traits)) ?? SHARDS;
    for (const shard of read.get(namespaces.shards, view.namespace) ?? []) {
      const number = numberOfShard(shard);
      const list = `${key}/${number}`;
      if (number < made) emit(list, { list, view, shard });
    }
  });
  const members = graph.derive(
    'serviceViews.members',
    shardViews,
    (list, { view, shard }, read, emit: Emit<Omit<ServiceView, 'rule' | 'routes'>>) => {
      for (const { key, value: service } of read.group(deps.services.byShard, shard)) {
        if (service.resolution === 'Alias' || !isServedTo(read, deps, view, service)) continue;
        const ports = portsOf(read, deps, view, service);
        if (ports !== undefined) emit(`${list}|${key}`, { list, view, service: key, ...ports });
      }
    },
  );
  const serviceViews = graph.derive('serviceViews', members, (key, member, read, emit: Emit<ServiceView>) => {
    const service = read.get(deps.services.services, member.service);
    if (service === undefined) return;
    const { rootNamespace } = settingOf(read, deps.settings.visibility);
    const rule = ruleFor(read, deps.rules, service, rootNamespace, ruleClientOf(member.view));
    emit(key, {
      ...member,
      rule: rule?.id ?? '',
      routes: routeKeys(candidatesFor(read, deps, member.view, service.host)),
      ...(member.view.patches && clusterPatches(read, deps.patches, member.view, service.host)),
    });
  });
  const routeHostViews = declareRouteHostViews(graph, deps, shardViews);
  const viewLists = graph.derive(
    'viewLists',
    graph.index('shards of view', shardViews, (_, value) => [value.view.key]),
    (key, shards, _, emit: Emit<readonly string[]>) =>
      emit(
        key,
        shards.map((shard) => shard.key),
      ),
  );
  const localViews = graph.derive(
    'localViews',
    graph.index('scopes by local view', scopes, (_, { local }) => (local === '' ? [] : [local])),
    (key, _, __, emit: Emit<true>) => emit(key, true),
  );
  return { scopesByView, shardViews, viewLists, serviceViews, routeHostViews, localViews };
}

/** Only what patches touch is not shared. */
export function clusterPatches(
  read: Reader,
  patches: Patches | undefined,
  { patches: own, traits }: { readonly patches?: ViewPatches; readonly traits: Traits },
  host: string,
): Pick<ServiceView, 'patches'> {
  const set = own?.clusters;
  const slot = { type: 'cluster' as const, direction: directionOf(traits), host };
  return set !== undefined && patches?.isPatched(read, set, slot) === true ? { patches: set } : {};
}

const viewsByKey = remembered(
  (outlets: ScopeViews['outlets']) =>
    new Map(outlets.flatMap(({ views }) => views.map((view): [string, View] => [view.key, view]))),
);

function declareRouteHostViews(
  graph: Graph,
  deps: ViewDeps,
  shardViews: Collection<ShardView>,
): Collection<RouteHostView> {
  const members = graph.derive(
    'routeHostViews.members',
    shardViews,
    (list, { view, shard }, read, emit: Emit<Omit<RouteHostView, 'routes'>>) => {
      if (view.traits.proxyType === 'router' || view.traits.family === 'grpc') return;
      for (const { key, value: host } of read.group(deps.routeHosts.byShard, shard))
        if (isVisibleTo(host, view.client)) emit(`${list}|${key}`, { list, view, host });
    },
  );
  return graph.derive('routeHostViews', members, (key, member, read, emit: Emit<RouteHostView>) =>
    emit(key, { ...member, routes: routeKeys(candidatesFor(read, deps, member.view, member.host.host)) }),
  );
}

export function routeKeys(candidates: readonly FoundBinding[]): readonly FoundRoutes[] {
  return candidates.map(({ matched, binding }) => ({ key: binding.key, matched }));
}

/** If services in several namespaces have the same host, a client gets one of them. */
function isServedTo(read: Reader, deps: ViewDeps, view: View, service: MeshService): boolean {
  const winner = serviceFor(read, deps, view, service.host);
  return winner !== undefined && serviceKey(winner) === serviceKey(service);
}

/** The service's ports in the view; undefined if its egress listener takes none. */
function portsOf(
  read: Reader,
  deps: ViewDeps,
  view: View,
  service: MeshService,
): Pick<ServiceView, 'ports' | 'clusterPorts' | 'isFirst'> | undefined {
  if (view.egress === undefined) {
    const ports = service.ports.map((port) => port.number);
    return { ports, clusterPorts: ports, isFirst: true };
  }
  const listeners = read.get(deps.sidecars.models, view.egress.sidecar)?.egress ?? everything;
  const own = listeners[view.egress.listener];
  const ports = own === undefined ? [] : importedPorts(own, view.client, service);
  if (ports.length === 0) return undefined;
  const earlier = listeners
    .slice(0, view.egress.listener)
    .filter((listener) => egressImports(listener.hosts, view.client, service));
  const isTaken = (port: number): boolean => earlier.some((listener) => takesPort(listener, port));
  return {
    ports,
    clusterPorts: ports.filter((port) => !isTaken(port)),
    isFirst: !service.ports.some(({ number }) => isTaken(number)),
  };
}
