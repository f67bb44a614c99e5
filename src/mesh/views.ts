import type { Collection, Emit, Graph, Index, Reader } from '../cache/graph.ts';
import { compareSpecificity, hostsMatch, isWildcard, wildcardsOf } from '../model/host.ts';
import type { Client } from '../model/client.ts';
import { contentHash } from '../model/hash.ts';
import { type Labels, printSelector } from '../model/labels.ts';
import { type MeshService, isVisibleTo, serviceKey } from '../model/service.ts';
import { type EgressListener, type SidecarModel, egressImports, everything } from '../model/sidecar.ts';
import { type Traits, traitsKey } from '../model/traits.ts';
import type { Destination, VirtualServiceModel } from '../model/virtual-service.ts';
import { type Candidate, isVisible } from '../model/virtual-service-selection.ts';
import type { Inputs } from './inputs.ts';
import { type Rules, ruleFor } from './policies.ts';
import type { Proxies, Scope } from './proxies.ts';
import { type Services, type Settings, settingOf, shardOf } from './registry.ts';
import type { Audiences, Selectors } from './selectors.ts';
import type { Sidecars } from './sidecars.ts';
import { type VirtualServices, wildcardKey } from './virtual-services.ts';

/**
 * How the services of one namespace look to some clients: the unit that scopes share. Most clients of a namespace are of
 * its public audience; those that see it differently name themselves.
 */
export interface View {
  readonly key: string;
  /** Of the services. */
  readonly namespace: string;
  readonly traits: Traits;
  /** Namespace of the clients; empty for the public audience. */
  readonly client: string;
  /** Selectors that these clients match, of those that matter for this namespace. */
  readonly matched: readonly string[];
  /** Absent: all that is visible. Else only what this egress listener of the Sidecar imports. */
  readonly egress?: { readonly sidecar: string; readonly listener: number };
}

export interface ScopeViews {
  readonly scope: Scope;
  /** One for each egress listener; the last is the catch-all, if there is one. */
  readonly outlets: readonly { readonly listener: EgressListener; readonly views: readonly View[] }[];
  /**
   * Key of the view of the scope's own namespace where it is the public one: these clients see the same, and know the
   * services by their short names beside.
   */
  readonly local: string;
  /** What is done with unknown traffic, as a short text: listeners are shared by the scopes of a view that agree in it. */
  readonly policy: string;
}

export interface ShardView {
  /** Key of the list of resources. */
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
  /** The VirtualServices that its clients see for the host, and by which of their hosts. */
  readonly routes: readonly { readonly matched: string; readonly key: string }[];
  /** Ports that routes and listeners may use. */
  readonly ports: readonly number[];
  /** Ports that clusters are made for here: an earlier egress listener may have made the others. */
  readonly clusterPorts: readonly number[];
}

export interface Views {
  /** By scope key. */
  readonly scopes: Collection<ScopeViews>;
  readonly shardViews: Collection<ShardView>;
  /** Lists of the shards of a view; by view key. */
  readonly viewLists: Collection<readonly string[]>;
  readonly serviceViews: Collection<ServiceView>;
  /**
   * Services that a Sidecar does not import and that routes of imported services lead to. They have clusters, and no
   * routes or listeners of their own.
   */
  readonly destinationViews: Collection<ServiceView>;
  /** Views that are local to some scope; by view key. */
  readonly localViews: Collection<true>;
}

export interface ViewParts {
  readonly inputs: Inputs;
  readonly settings: Settings;
  readonly services: Services;
  readonly rules: Rules;
  readonly virtualServices: VirtualServices;
  readonly sidecars: Sidecars;
  readonly selectors: Selectors;
  readonly audiences: Audiences;
  readonly proxies: Proxies;
  /** Hosts of VirtualServices that are no services. */
  readonly routeHosts: { readonly hosts: Collection<{ readonly namespace: string; readonly host: string }> };
}

interface NamespaceInfo {
  readonly namespace: string;
  readonly shards: readonly string[];
  /** Client namespaces with a view of their own. */
  readonly audiences: readonly string[];
  readonly selectors: readonly string[];
}

export function declareViews(graph: Graph, parts: ViewParts): Views {
  const namespaces = declareNamespaces(graph, parts);

  const scopes = graph.derive('scopes', parts.proxies.byScope, (key, members, read, emit: Emit<ScopeViews>) => {
    const first = (members as readonly { value: { scope: Scope } }[])[0]!.value;
    emit(key, scopeViews(first.scope, read, parts, namespaces));
  });
  const byView = graph.index('scopes by view', scopes, (_, value) => [
    ...new Set(value.outlets.flatMap((outlet) => outlet.views.map((view) => view.key))),
  ]);
  const shardViews = graph.derive('shardViews', byView, (key, members, read, emit: Emit<ShardView>) => {
    const { value } = (members as readonly { value: ScopeViews }[])[0]!;
    const view = value.outlets.flatMap((outlet) => outlet.views).find((candidate) => candidate.key === key)!;
    for (const shard of read.get(namespaces.info, view.namespace)?.shards ?? []) {
      const list = `${key}/${shard.slice(shard.lastIndexOf('/') + 1)}`;
      emit(list, { list, view, shard });
    }
  });
  const members = graph.derive(
    'serviceViews.members',
    shardViews,
    (list, { view, shard }, read, emit: Emit<Omit<ServiceView, 'rule' | 'routes'>>) => {
      for (const { key, value: service } of read.group(parts.services.byShard, shard)) {
        if (service.resolution === 'Alias' || !isServedTo(read, parts, view, service)) continue;
        const ports = portsOf(read, parts, view, service);
        if (ports !== undefined) emit(`${list}|${key}`, { list, view, service: key, ...ports });
      }
    },
  );
  const serviceViews = graph.derive('serviceViews', members, (key, member, read, emit: Emit<ServiceView>) => {
    const service = read.get(parts.services.services, member.service);
    if (service === undefined) return;
    const { rootNamespace } = settingOf(read, parts.settings.visibility);
    const rule = ruleFor(read, parts.rules, service, rootNamespace, clientOf(member.view));
    emit(key, {
      ...member,
      rule: rule?.id ?? '',
      routes: candidatesFor(read, parts.virtualServices, member.view.client, service.host).map(
        ({ matched, model }) => ({
          matched,
          key: model.key,
        }),
      ),
    });
  });
  const viewLists = graph.derive(
    'viewLists',
    graph.index('shards of view', shardViews, (_, value) => [value.view.key]),
    (key, shards, _, emit: Emit<readonly string[]>) =>
      emit(
        key,
        (shards as readonly { key: string }[]).map((shard) => shard.key),
      ),
  );
  const localViews = graph.derive(
    'localViews',
    graph.index('scopes by local view', scopes, (_, { local }) => (local === '' ? [] : [local])),
    (key, _, __, emit: Emit<true>) => emit(key, true),
  );
  const destinationViews = declareDestinationViews(graph, parts, scopes, serviceViews);
  return { scopes, shardViews, viewLists, serviceViews, destinationViews, localViews };
}

/** Where the routes of a service lead, outside its namespace. */
interface ForeignDestination {
  readonly view: string;
  readonly host: string;
  /** Absent: every port. */
  readonly port: number | undefined;
}

function declareDestinationViews(
  graph: Graph,
  parts: ViewParts,
  scopes: Collection<ScopeViews>,
  serviceViews: Collection<ServiceView>,
): Collection<ServiceView> {
  const foreign = graph.derive(
    'foreignDestinations',
    serviceViews,
    (key, { view, routes }, read, emit: Emit<ForeignDestination>) => {
      const found = new Map<string, ForeignDestination>();
      for (const route of routes)
        for (const { host, port } of destinationsOf(read.get(parts.virtualServices.routes, route.key)))
          if (serviceFor(read, parts.services, view, host)?.namespace !== view.namespace)
            found.set(`${host}|${port ?? ''}`, { view: view.key, host, port });
      for (const [id, destination] of found) emit(`${key}|${id}`, destination);
    },
  );
  const byView = graph.index('foreign destinations by view', foreign, (_, { view }) => [view]);
  return graph.derive('destinationViews', scopes, (list, { scope, outlets }, read, emit: Emit<ServiceView>) => {
    if (scope.sidecar === '') return;
    const { rootNamespace } = settingOf(read, parts.settings.visibility);
    const client = { client: scope.namespace, matched: scope.matched };
    const ports = new Map<MeshService, Set<number>>();
    for (const { key } of outlets.flatMap((outlet) => outlet.views))
      for (const { value } of read.group(byView, key)) {
        const service = serviceFor(read, parts.services, client, value.host);
        if (service === undefined || outlets.some((o) => egressImports(o.listener.hosts, scope.namespace, service)))
          continue;
        const numbers = ports.get(service) ?? new Set();
        for (const port of service.ports)
          if (value.port === undefined || value.port === port.number) numbers.add(port.number);
        ports.set(service, numbers);
      }
    for (const [service, numbers] of ports) {
      const key = serviceKey(service);
      const rule = ruleFor(read, parts.rules, service, rootNamespace, clientOf(client))?.id ?? '';
      const view = { key: list, namespace: service.namespace, traits: scope.traits, ...client };
      const clusterPorts = [...numbers].sort((x, y) => x - y);
      emit(`${list}|${key}`, { list, view, service: key, rule, routes: [], ports: [], clusterPorts });
    }
  });
}

function destinationsOf(model: VirtualServiceModel | undefined): readonly Destination[] {
  if (model === undefined) return [];
  const http = model.http.flatMap(({ action }) =>
    action.kind === 'forward'
      ? [...action.destinations, ...(action.mirrors ?? []).map((mirror) => mirror.destination)]
      : [],
  );
  return [
    ...http,
    ...model.tcp.flatMap((route) => route.destinations),
    ...model.tls.flatMap((route) => route.destinations),
  ];
}

/** The lists that a scope is made of: what its views hold, and their listeners under its policy. */
export function listsOf({ outlets, policy }: ScopeViews): readonly string[] {
  const views = outlets.flatMap((outlet) => outlet.views);
  return [...new Set(views.flatMap((view) => [view.key, listenerList(view.key, policy)]))];
}

/** List of the listeners of a view that are the same for all its scopes of one policy. */
export const listenerList = (view: string, policy: string): string => `${view}!${policy}`;

/** What a client of the view can be asked by rules; undefined for the public audience, which has no namespace. */
export function clientOf(
  view: Pick<View, 'client' | 'matched'>,
): { readonly namespace: string; matches(selector: Labels): boolean } | undefined {
  if (view.client === '') return undefined;
  return { namespace: view.client, matches: (selector) => matches(view, selector) };
}

/** The client that builders see. */
export function builderClient(view: Pick<View, 'client' | 'traits' | 'matched'>, domainSuffix: string): Client {
  return {
    namespace: view.client,
    domainSuffix,
    traits: view.traits,
    matches: (selector) => matches(view, selector),
  };
}

function matches(view: Pick<View, 'matched'>, selector: Labels): boolean {
  return Object.keys(selector).length === 0 || view.matched.includes(printSelector(selector));
}

/** VirtualServices of the mesh that a view's clients see for a host: those for the most specific host first, then the oldest. */
export function candidatesFor(
  read: Reader,
  virtualServices: VirtualServices,
  client: string,
  host: string,
): readonly Candidate[] {
  const exact = read.group(virtualServices.byHost, host).map(({ value }) => ({ matched: host, model: value }));
  const wild: Candidate[] = [];
  for (const wildcard of wildcardsOf(host))
    for (const { value } of read.group(virtualServices.byWildcard, wildcard))
      for (const matched of value.hosts)
        if (isWildcard(matched) && wildcardKey(matched) === wildcard && hostsMatch(matched, host))
          wild.push({ matched, model: value });
  wild.sort((a, b) => compareSpecificity(a.matched, b.matched));
  return [...exact, ...wild].filter(({ model }) => isVisible(model, client));
}

/** The service that a host name means to the clients of a view. */
export function serviceFor(
  read: Reader,
  services: Services,
  view: Pick<View, 'client'>,
  host: string,
): MeshService | undefined {
  const visible = read
    .group(services.byHost, host)
    .flatMap((m) => (isVisibleTo(m.value, view.client) ? [m.value] : []));
  return visible.find((service) => service.namespace === view.client) ?? visible[0];
}

/** Of the services of one host in several namespaces a client has one. */
function isServedTo(read: Reader, parts: ViewParts, view: View, service: MeshService): boolean {
  const winner = serviceFor(read, parts.services, view, service.host);
  return winner !== undefined && serviceKey(winner) === serviceKey(service);
}

function declareNamespaces(graph: Graph, parts: ViewParts) {
  const shards = graph.derive(
    'shards',
    graph.index<{ namespace: string; host: string }>(
      'hosts by shard',
      [parts.services.services, parts.routeHosts.hosts],
      (_, value) => [shardOf(value)],
    ),
    (shard, _, __, emit: Emit<{ namespace: string; shard: string }>) =>
      emit(shard, { namespace: shard.slice(0, shard.lastIndexOf('/')), shard }),
  );
  const info = graph.derive(
    'namespaces',
    graph.index('shards by namespace', shards, (_, value) => [value.namespace]),
    (namespace, members, read, emit: Emit<NamespaceInfo>) => {
      const of = <T>(index: Index<T>) =>
        [...read.group(index, namespace), ...read.group(index, '*')].map((m) => m.value);
      emit(namespace, {
        namespace,
        shards: (members as readonly { value: { shard: string } }[]).map((member) => member.value.shard),
        audiences: [...new Set(of(parts.audiences.byTarget).map((claim) => claim.client))].sort(),
        selectors: [...new Set(of(parts.selectors.byTarget).map((mention) => printSelector(mention.selector)))].sort(),
      });
    },
  );
  // Scopes look at who has a view of their own, not at shards: these come and go with services.
  const splits = graph.derive(
    'namespace audiences',
    info,
    (key, { namespace, audiences, selectors }, _, emit: Emit<Omit<NamespaceInfo, 'shards'>>) =>
      emit(key, { namespace, audiences, selectors }),
  );
  return { info, all: graph.index('all namespaces', splits, () => ['all']) };
}

function scopeViews(
  scope: Scope,
  read: Reader,
  parts: ViewParts,
  namespaces: { readonly all: Index<Omit<NamespaceInfo, 'shards'>> },
): ScopeViews {
  const sidecar = scope.sidecar === '' ? undefined : read.get(parts.sidecars.models, scope.sidecar);
  const listeners = sidecar?.egress ?? everything;
  const all = read.group(namespaces.all, 'all').map((member) => member.value);
  const outlets = listeners.map((listener, i) => ({
    listener,
    views: all.flatMap((info) => {
      const reach = reachOf(listener, scope.namespace, info.namespace);
      if (reach === 'nothing') return [];
      const whole = reach === 'everything' && listener.port === undefined && listeners.length === 1;
      return [viewOf(scope, info, whole || sidecar === undefined ? undefined : { sidecar: sidecar.key, listener: i })];
    }),
  }));
  const own = outlets.flatMap((outlet) => outlet.views).find((view) => view.namespace === scope.namespace);
  const local = own?.client === '' && scope.traits.proxyType === 'sidecar' ? own.key : '';
  return { scope, outlets, local, policy: policyKey(scope, sidecar?.outboundTrafficPolicy) };
}

/** Empty: the mesh's own policy. An egress proxy is looked up by the client. */
function policyKey(scope: Scope, policy: SidecarModel['outboundTrafficPolicy']): string {
  if (policy === undefined) return '';
  return policy.egressProxy === undefined ? policy.mode : contentHash(JSON.stringify([policy, scope.key])).slice(0, 12);
}

/** How much of a namespace an egress listener can import. */
function reachOf(listener: EgressListener, client: string, namespace: string): 'nothing' | 'something' | 'everything' {
  const covering = listener.hosts.filter((entry) => {
    const target = entry.namespace === '.' ? client : entry.namespace;
    return target === '*' || target === namespace;
  });
  if (!covering.some((entry) => !entry.excluded)) return 'nothing';
  const whole = covering.some((entry) => entry.host === '*' && !entry.excluded);
  return whole && covering.every((entry) => !entry.excluded) ? 'everything' : 'something';
}

function viewOf(scope: Scope, info: Omit<NamespaceInfo, 'shards'>, egress: View['egress']): View {
  const matched = scope.matched.filter((selector) => info.selectors.includes(selector));
  const own = egress !== undefined || matched.length > 0 || info.audiences.includes(scope.namespace);
  const client = own ? scope.namespace : '';
  // The key is part of many others: short, and told apart by a hash of all that makes the view.
  const facts = [
    traitsKey(scope.traits),
    client,
    matched.join('&'),
    egress === undefined ? '' : `${egress.sidecar}#${egress.listener}`,
  ].join('|');
  const key = `${info.namespace}@${contentHash(facts).slice(0, 12)}`;
  return { key, namespace: info.namespace, traits: scope.traits, client, matched, ...(egress ? { egress } : {}) };
}

/** The ports of a service that the view has; undefined when its egress listener does not import it. */
function portsOf(
  read: Reader,
  parts: ViewParts,
  view: View,
  service: MeshService,
): Pick<ServiceView, 'ports' | 'clusterPorts'> | undefined {
  const all = service.ports.map((port) => port.number);
  if (view.egress === undefined) return { ports: all, clusterPorts: all };
  const egress = read.get(parts.sidecars.models, view.egress.sidecar)?.egress ?? everything;
  const listener = egress[view.egress.listener];
  if (listener === undefined || !egressImports(listener.hosts, view.client, service)) return undefined;
  const ports = all.filter((port) => takesPort(listener, port));
  if (ports.length === 0) return undefined;
  const earlier = egress
    .slice(0, view.egress.listener)
    .filter((other) => egressImports(other.hosts, view.client, service));
  return { ports, clusterPorts: ports.filter((port) => !earlier.some((other) => takesPort(other, port))) };
}

/** A listener of a port takes that port only, except an HTTP proxy and a unix socket, through which any can be reached. */
function takesPort(listener: EgressListener, port: number): boolean {
  const own = listener.port;
  return own === undefined || own.number === 0 || own.protocol === 'HTTP_PROXY' || own.number === port;
}
