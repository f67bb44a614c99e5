import { parseNameKey } from '../../api/keys.ts';
import type { Part } from '../../ads/store/resource.ts';
import type { Collection, Emit, Graph, Index, Reader } from '../../cache/graph.ts';
import { node, samePart } from '../../envoy/encode/resource.ts';
import { sniFilterChain } from '../../envoy/listener/gateway-listener.ts';
import type { MergedListener } from '../../model/gateway.ts';
import { coverOf } from '../../model/host-set.ts';
import { wholeObjects } from '../../model/provenance.ts';
import { anyTraits } from '../../model/traits.ts';
import { isForwarded, sniChains } from '../../settle/auto-passthrough.ts';
import type { ScopeViews } from '../clients/scopes.ts';
import type { ServiceView } from '../clients/views.ts';
import { gatewayList, sniList } from '../lists.ts';
import { NO_ENDPOINTS } from '../objects/endpoint-groups.ts';
import { portsOf, ruledPortOf } from '../resources/resource-sets.ts';
import { settingOf } from '../settings.ts';
import { patchingAt } from '../resources/patching.ts';
import type { GatewayDeps, RouterClass, Routers } from './routers.ts';

/** A listener of the routers in a class. Its key is `class|listener`. */
export interface RouterListener {
  readonly router: RouterClass;
  readonly listener: MergedListener;
}

/** Servers with AUTO_PASSTHROUGH on one listener of a router class. Its key is `class|listener`. */
interface Passage {
  /** Key of the class. */
  readonly router: string;
  /** Of the services that it forwards to. */
  readonly hosts: readonly string[];
  /** Of the router, in milliseconds; 0: none. */
  readonly idleTimeout: number;
  /** Absent: nothing patches its chains. */
  readonly patched?: PatchedChains;
  /** Keys of the views whose services it forwards to. */
  readonly views: readonly string[];
}

interface PatchedChains {
  /** Key of the {@link PatchSet}. */
  readonly set: string;
  /** Its name. */
  readonly listener: string;
}

/** The chains for one port of a service, in a shard of a passage. */
interface ChainUse {
  /** `passage|list` */
  readonly shard: string;
  /** The chains are the same wherever these are. */
  readonly chains: string;
  readonly view: ServiceView;
  readonly port: string;
  readonly idleTimeout: number;
  readonly patched?: PatchedChains;
}

interface ChainPiece {
  /** Key of what it is a piece of. */
  readonly of: string;
  readonly part: Part;
}

export interface AutoPassthrough {
  /** The services that routers forward to, in lists for these routers alone. */
  readonly services: Collection<ServiceView>;
  /** These lists and their children. */
  readonly lists: readonly Collection<readonly string[]>[];
  /** The filter chains for a listener, by `class|listener`. */
  chainsOf(read: Reader, listener: string): readonly Part[];
}

export interface AutoPassthroughDeps extends GatewayDeps {
  readonly scopes: Collection<ScopeViews>;
}

/**
 * What servers with AUTO_PASSTHROUGH need: a chain for each port of each service and subset that the router sees, and a
 * cluster for each chain. Only routers with such a server have them. Chains are encoded once and put together in a tree.
 */
export function declareAutoPassthrough(
  graph: Graph,
  deps: AutoPassthroughDeps,
  routers: Routers,
  listeners: Collection<RouterListener>,
): AutoPassthrough {
  const passages = graph.derive('passages', listeners, (key, { router, listener }, read, emit: Emit<Passage>) => {
    const servers = listener.servers.filter(({ server }) => server.serves.kind === 'autoPassthrough');
    if (servers.length === 0) return;
    const hosts = [...new Set(servers.flatMap(({ server }) => server.hosts.map(({ host }) => host)))].sort();
    const views = viewsOf(router.key, read, deps, routers);
    const set = router.patches;
    const patched = set !== undefined && { patched: { set, listener: listener.name } };
    emit(key, { router: router.key, hosts, idleTimeout: router.traits.idleTimeout, views, ...patched });
  });
  const byView = graph.index('passages by view', passages, (_, { views }) => views);
  const views = graph.derive('forwarding views', byView, (key, _, __, emit: Emit<true>) => emit(key, true));
  const services = graph.derive(
    'forwarded services',
    deps.views.serviceViews,
    (key, view, read, emit: Emit<ServiceView>) => {
      if (view.view.traits.proxyType !== 'router' || read.get(views, view.view.key) === undefined) return;
      const service = read.get(deps.services.services, view.service);
      if (service !== undefined && isForwarded(service))
        emit(key, { ...view, list: sniList(view.list), forwards: true });
    },
  );
  return {
    services,
    lists: declareLists(graph, deps, routers, passages, views),
    chainsOf: declareChains(graph, deps, passages, services),
  };
}

/** All routers of a class see the same services. */
function viewsOf(
  routerClass: string,
  read: Reader,
  { proxies, scopes }: AutoPassthroughDeps,
  { byClass }: Routers,
): readonly string[] {
  const [router] = read.group(byClass, routerClass);
  const [first] = router === undefined ? [] : read.group(proxies.byRouter, router.key);
  if (first === undefined || 'error' in first.value) return [];
  const outlets = read.get(scopes, first.value.scope.key)?.outlets ?? [];
  return [...new Set(outlets.flatMap((outlet) => outlet.views.map((view) => view.key)))];
}

function declareLists(
  graph: Graph,
  { views }: AutoPassthroughDeps,
  routers: Routers,
  passages: Collection<Passage>,
  forwarding: Collection<true>,
): AutoPassthrough['lists'] {
  const byClass = graph.index('passages by class', passages, (_, { router }) => [router]);
  return [
    graph.derive(
      'lists of forwarding routers',
      routers.ofRouter,
      (router, { key }, read, emit: Emit<readonly string[]>) => {
        const [passage] = read.group(byClass, key);
        if (passage !== undefined) emit(gatewayList(router), passage.value.views.map(sniList));
      },
    ),
    graph.derive('lists of forwarding views', forwarding, (view, _, read, emit: Emit<readonly string[]>) =>
      emit(sniList(view), (read.get(views.viewLists, view) ?? []).map(sniList)),
    ),
  ];
}

function declareChains(
  graph: Graph,
  deps: AutoPassthroughDeps,
  passages: Collection<Passage>,
  services: Collection<ServiceView>,
): AutoPassthrough['chainsOf'] {
  const byList = graph.index('forwarded services by list', services, (_, { list }) => [list]);
  const passageViews = graph.derive('views of passages', passages, (key, passage, _, emit: Emit<PassageOf>) => {
    const { hosts, idleTimeout, patched } = passage;
    const shared = { passage: key, hosts, idleTimeout, ...(patched && { patched }) };
    for (const view of passage.views) emit(`${key}|${view}`, { ...shared, of: view });
  });
  const passageShards = graph.derive('shards of passages', passageViews, (key, ofView, read, emit: Emit<PassageOf>) => {
    for (const list of read.get(deps.views.viewLists, ofView.of) ?? [])
      emit(`${ofView.passage}|${list}`, { ...ofView, passage: key, of: list });
  });
  const uses = graph.derive(
    'chains in use',
    passageShards,
    (shard, { of, hosts, idleTimeout, patched }, read, emit: Emit<ChainUse>) => {
      const isCovered = coverOf(hosts);
      for (const { key, value: view } of read.group(byList, sniList(of))) {
        if (!isCovered(hostOf(view))) continue;
        for (const port of portsOf(view)) {
          const own = patched === undefined ? [] : [patched.set, patched.listener];
          const chains = [view.service, view.rule, idleTimeout, port, ...own].join('|');
          emit(`${shard}|${key}|${port}`, { shard, chains, view, port, idleTimeout, ...(patched && { patched }) });
        }
      }
    },
  );
  const chains = graph.derive(
    'SNI chains',
    graph.index('uses of SNI chains', uses, (_, use) => [use.chains]),
    (key, [first], read, emit: Emit<Part>) => {
      const part = chainsFor(first.value, read, deps);
      if (part !== undefined) emit(key, part);
    },
    samePart,
  );
  const ofShards = graph.derive(
    'SNI chains of shards',
    graph.index('chains in use by shard', uses, (_, { shard }) => [shard]),
    (shard, members, read, emit: Emit<ChainPiece>) => {
      const parts = members.flatMap(({ value }) => read.get(chains, value.chains) ?? []);
      const passage = read.get(passageShards, shard)?.passage;
      if (parts.length > 0 && passage !== undefined) emit(shard, { of: passage, part: node(parts) });
    },
    samePiece,
  );
  const ofViews = graph.derive(
    'SNI chains of views',
    graph.index('SNI chains by view', ofShards, (_, { of }) => [of]),
    (key, members, read, emit: Emit<ChainPiece>) => {
      const passage = read.get(passageViews, key)?.passage;
      if (passage !== undefined) emit(key, { of: passage, part: node(members.map(({ value }) => value.part)) });
    },
    samePiece,
  );
  const byPassage: Index<ChainPiece> = graph.index('SNI chains by passage', ofViews, (_, { of }) => [of]);
  return (read, listener) => read.group(byPassage, listener).map(({ value }) => value.part);
}

/** A part of what a passage forwards to. */
interface PassageOf extends Pick<Passage, 'hosts' | 'idleTimeout' | 'patched'> {
  /** Key of what this is a part of. */
  readonly passage: string;
  /** Key of the view or of its list. */
  readonly of: string;
}

const hostOf = ({ service }: ServiceView): string => parseNameKey(service).name;

function chainsFor(
  { view, port, idleTimeout, patched }: ChainUse,
  read: Reader,
  deps: AutoPassthroughDeps,
): Part | undefined {
  const found = ruledPortOf({ service: view.service, rule: view.rule, port, client: undefined }, read, deps);
  if (found === undefined) return undefined;
  const settings = settingOf(read, deps.settings.listeners);
  const summary = read.get(deps.endpoints.summaries, view.service) ?? NO_ENDPOINTS;
  const made = sniChains({ ...found, summary, settings });
  if (made.length === 0) return undefined;
  const traits = { ...anyTraits, idleTimeout };
  const { host } = found.service;
  const patching =
    patched &&
    patchingAt(read, deps.patches, patched.set, {
      ...{ type: 'filterChain', direction: 'gateway', listener: patched.listener, host, port: found.port.number },
    });
  return deps.encoder.filterChains(
    made.map((chain) => sniFilterChain(chain, { traits, settings })),
    made.flatMap(({ target }) => target.clusters.map(({ name }) => name)),
    () => wholeObjects([...found.service.origins, ...(found.rule?.origins ?? [])]),
    patching,
  );
}

const samePiece = (a: ChainPiece, b: ChainPiece): boolean => a.of === b.of && samePart(a.part, b.part);
