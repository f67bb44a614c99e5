import type { EncodedResource } from '../../ads/store/resource.ts';
import { type ObjectRef, distinctRefs } from '../../api/object.ts';
import type { Collection, Emit, Graph, Index, Reader } from '../../cache/graph.ts';
import { buildFixedCluster } from '../../envoy/cluster/fixed-clusters.ts';
import { emptyAssignment } from '../../envoy/endpoint/assignment.ts';
import {
  type BuiltListener,
  type OutboundListenerInput,
  buildOutboundListener,
} from '../../envoy/listener/outbound-listener.ts';
import { httpProxyListener, virtualOutbound } from '../../envoy/listener/virtual-outbound.ts';
import { blackHoleCluster } from '../../model/cluster-names.ts';
import { type AgedClaim, type OutboundChain, listenerName, sortClaims, summariseClaims } from '../../model/listener.ts';
import { type Slot, directionOf } from '../../model/patch.ts';
import { type From, fromNothing } from '../../envoy/encode/trace.ts';
import type { Cluster } from '../../envoy/gen/types.gen.ts';
import { listenerSlot, patchingAt } from './patching.ts';
import { type Source, wholeObjects } from '../../model/provenance.ts';
import { exportRank, isAtHomeIn, isHeadless } from '../../model/service.ts';
import { traitsKey, wildcardAddress } from '../../model/traits.ts';
import { settleFixedClusters } from '../../settle/fixed-clusters.ts';
import { l4Destinations } from '../../settle/outbound-chains.ts';
import { claimsOf, heardPort, isOfProxy } from '../../settle/outbound-claims.ts';
import { resolveClaims } from '../../settle/outbound-conflicts.ts';
import { connectionTargetsOf } from '../clients/destinations.ts';
import { clientOf, clientViewOf } from '../clients/lookups.ts';
import { NO_ENDPOINTS } from '../objects/endpoint-groups.ts';
import { optionsOf } from '../inputs.ts';
import { type Member, type Members, emitMember, sameMember } from './members.ts';
import type { Scope } from '../clients/proxies.ts';
import { ruleOf } from '../objects/rules.ts';
import { settingOf } from '../settings.ts';
import { egressOf } from '../objects/sidecars.ts';
import { type ScopeViews, type View, listenerList } from '../clients/scopes.ts';
import { unknownTraffic } from './unknown-traffic.ts';
import type { RouteDeps } from './virtual-hosts.ts';
import type { ServiceView } from '../clients/views.ts';

export interface ListenerDeps extends RouteDeps {
  readonly scopes: Collection<ScopeViews>;
}

/** What services claim at one address and port, with HTTP summed up. */
interface Claims {
  readonly view: View;
  readonly list: string;
  /** `0.0.0.0_80` */
  readonly name: string;
  readonly claims: readonly AgedClaim[];
}

interface ListenerPolicy {
  readonly list: string;
  /** One of the scopes that have it. */
  readonly scope: Scope;
}

/** Whether the listener is for a specific address. In mode NONE, all listeners have the loopback address. */
function isAddressed({ view, claims }: Claims): boolean {
  if (view.traits.interception === 'NONE') return false;
  return claims.every(({ claim }) => claim.bind.addresses[0] !== wildcardAddress(view.traits));
}

/**
 * Outbound listeners. Those for a specific address are claimed by few services, usually in one namespace: they are
 * built once for all scopes of the view. Those for a port on all addresses, or for an address that several namespaces
 * claim, combine the claims of all views of a scope.
 */
export function declareOutboundListeners(graph: Graph, deps: ListenerDeps): readonly Members[] {
  const { views } = deps;
  const claims = graph.derive('listenerClaims', views.serviceViews, (key, view, read, emit: Emit<Claims>) => {
    if (!hasListeners(view.view)) return;
    for (const [name, claims] of claimsOfService(view, read, deps))
      emit(`${key}|${name}`, { view: view.view, list: view.list, name, claims });
  });
  const merge = (name: string, source: Collection<Claims>, keyOf: (claims: Claims) => string) =>
    graph.derive(
      name,
      graph.index(`${name} by key`, source, (_, value) => [keyOf(value)]),
      (key, members, _, emit: Emit<Claims>) => {
        const all = members.map((member) => member.value);
        const merged = summariseClaims(sortClaims(all.flatMap((value) => value.claims)));
        emit(key, { ...all[0]!, claims: merged });
      },
    );
  // HTTP services claim the same thing for a port: thousands of claims sum up to something small, and equal, at each
  // level of the tree.
  const byShard = merge('shardClaims', claims, (value) => `${value.list}|${value.name}`);
  const byView = merge('viewClaims', byShard, (value) => `${value.view.key}|${value.name}`);
  const addresses = graph.derive(
    'addresses of namespaces',
    graph.index('claims of address', byView, (_, value) =>
      isAddressed(value) ? [`${addressKey(value)}|${value.view.namespace}`] : [],
    ),
    (key, [first], _, emit: Emit<string>) => emit(key, addressKey(first.value)),
  );
  const contested = graph.derive(
    'contestedListeners',
    graph.index('namespaces at address', addresses, (_, address) => [address]),
    (key, namespaces, _, emit: Emit<true>) => {
      if (namespaces.length > 1) emit(key, true);
    },
  );
  const isShared = (value: Claims, read: Reader): boolean =>
    value.view.egress === undefined && isAddressed(value) && read.get(contested, addressKey(value)) === undefined;
  const gathered = graph.derive('gatheredClaims', byView, (key, value, read, emit: Emit<Claims>) => {
    if (!isShared(value, read)) emit(key, value);
  });
  const ofView: Index<Claims> = graph.index('claims of view', gathered, (_, value) => [value.view.key]);
  const policies = graph.derive(
    'listenerPolicies',
    graph.index('scopes by policy of view', deps.scopes, (_, { outlets, policy, scope }) =>
      !hasListeners(scope)
        ? []
        : [...new Set(outlets.flatMap((outlet) => outlet.views.map((view) => listenerList(view.key, policy))))],
    ),
    (list, members, _, emit: Emit<ListenerPolicy>) => {
      emit(list, { list, scope: members[0].value.scope });
    },
  );
  const policiesOfView = graph.index('listener policies of view', policies, (list) => [
    list.slice(0, list.indexOf('!')),
  ]);
  const addressed = graph.derive(
    'addressedListeners',
    byView,
    (_, value, read, emit: Emit<Member>) => {
      if (!isShared(value, read)) return;
      for (const { value: policy } of read.group(policiesOfView, value.view.key))
        emitListener(emit, policy.list, value.claims, policy.scope, read, deps);
    },
    sameMember,
  );

  const scopeClaims = graph.derive(
    'scopeClaims',
    deps.scopes,
    (
      key,
      { scope, outlets },
      read,
      emit: Emit<{ scope: Scope; list: string; name: string; claims: readonly AgedClaim[] }>,
    ) => {
      if (!hasListeners(scope)) return;
      const settings = settingOf(read, deps.settings.listeners);
      const byName = new Map<string, AgedClaim[]>();
      const locked = new Set<string>();
      for (const outlet of outlets) {
        const own = new Set<string>();
        for (const view of outlet.views)
          for (const { value } of read.group(ofView, view.key)) {
            if (locked.has(value.name) || value.claims.some(({ claim }) => isOfProxy(claim, scope.traits, settings)))
              continue;
            own.add(value.name);
            const list = byName.get(value.name);
            if (list === undefined) byName.set(value.name, [...value.claims]);
            else list.push(...value.claims);
          }
        // A listener with an explicit port takes nothing from later egress listeners.
        if (outlet.listener.port !== undefined) for (const name of own) locked.add(name);
      }
      for (const [name, list] of byName)
        emit(`${key}|${name}`, { scope, list: key, name, claims: summariseClaims(sortClaims(list)) });
    },
  );
  const outbound = graph.derive(
    'outboundListeners',
    scopeClaims,
    (_, { scope, list, claims }, read, emit: Emit<Member>) => {
      emitListener(emit, list, claims, scope, read, deps);
    },
    sameMember,
  );
  const fixed = graph.derive(
    'scopeResources',
    deps.scopes,
    (key, { scope }, read, emit: Emit<Member>) => {
      const settings = settingOf(read, deps.settings.clusters);
      const { policy } = unknownTraffic(scope, read, deps);
      for (const fixed of settleFixedClusters({ traits: scope.traits, settings, outboundPolicy: policy }))
        emitFixed(emit, key, buildFixedCluster(fixed, scope.traits, settings), scope, read, deps);
      if (scope.traits.family === 'grpc') emitMember(emit, key, noEndpoints(deps));
      if (!hasListeners(scope)) return;
      const options = outboundInput(scope, read, deps);
      for (const built of [virtualOutbound(options), httpProxyListener(options)])
        if (built !== undefined) emitBuilt(emit, key, built, fromNothing, scope, read, deps);
    },
    sameMember,
  );
  return [addressed, outbound, fixed];
}

/** Whether clients connect through listeners of the proxy: those of sidecars. */
function hasListeners({ traits: { proxyType, family } }: Pick<Scope, 'traits'>): boolean {
  return proxyType === 'sidecar' && family === 'envoy';
}

/** Of the cluster for requests without a valid destination, where no cluster is without endpoints of its own. */
function noEndpoints({ encoder }: ListenerDeps): EncodedResource {
  return encoder.assignment(blackHoleCluster, { bytes: emptyAssignment(blackHoleCluster), ready: false });
}

/** Views with the same traits can meet in a proxy; views of the same namespace never do. */
function addressKey({ view, name }: Claims): string {
  return `${traitsKey(view.traits)}|${name}`;
}

/** The listener of one address and port, if any of its claims are left. Claims are oldest first. */
function emitListener(
  emit: Emit<Member>,
  list: string,
  claims: readonly AgedClaim[],
  scope: Scope,
  read: Reader,
  deps: ListenerDeps,
): void {
  const resolved = resolveClaims(claims, wildcardAddress(scope.traits));
  if (resolved === undefined || resolved.chains.length === 0) return;
  const built = buildOutboundListener(resolved, outboundInput(scope, read, deps));
  const from = (): readonly Source[] => wholeObjects(distinctRefs(resolved.chains.flatMap(originsOf)));
  emitBuilt(emit, list, built, from, scope, read, deps);
}

function emitBuilt(
  emit: Emit<Member>,
  list: string,
  { listener, clusters }: BuiltListener,
  from: From,
  { patches }: Scope,
  read: Reader,
  deps: ListenerDeps,
): void {
  const patching =
    patches === undefined
      ? undefined
      : patchingAt(read, deps.patches, patches.listeners, listenerSlot('outbound', listener));
  emitMember(emit, list, deps.encoder.listener(listener, clusters, from, patching), '', patching);
}

function emitFixed(
  emit: Emit<Member>,
  list: string,
  cluster: Cluster,
  { patches, traits }: Scope,
  read: Reader,
  deps: ListenerDeps,
): void {
  const slot: Slot = { type: 'cluster', direction: directionOf(traits) };
  const patching = patches === undefined ? undefined : patchingAt(read, deps.patches, patches.clusters, slot);
  emitMember(emit, list, deps.encoder.cluster(cluster, fromNothing, patching), '', patching);
}

/** The objects that decide where connections go, except for HTTP services: these all share one chain. */
function originsOf({ serves }: OutboundChain): readonly ObjectRef[] {
  if (serves.kind === 'http') return [];
  const { route, target } = serves.chain;
  return route === undefined ? target.origins : [route.ref, ...target.origins];
}

function outboundInput(scope: Scope, read: Reader, deps: ListenerDeps): OutboundListenerInput {
  const { policy, egressProxy } = unknownTraffic(scope, read, deps);
  return {
    client: clientOf(clientViewOf(scope), optionsOf(read, deps.inputs).domainSuffix),
    outboundPolicy: policy,
    egressProxy,
    settings: settingOf(read, deps.settings.listeners),
  };
}

/**
 * Rank of a public ServiceEntry: pods of headless Services listen at their addresses, which an older entry may name.
 */
export const rankOfPublicAddress = 3;

/** Added at addresses of Pods, which slices may name as they like: the Service that has such an address comes first. */
const rankOfPods = 0.5;

/** Rank of a Service at an address that it has in another cluster only. */
const rankOfForeignAddress = 4;

/** By listener name. */
export function claimsOfService(view: ServiceView, read: Reader, deps: ListenerDeps): Map<string, AgedClaim[]> {
  const byName = new Map<string, AgedClaim[]>();
  const service = read.get(deps.services.services, view.service);
  if (service === undefined) return byName;
  const client = clientOf(view.view, optionsOf(read, deps.inputs).domainSuffix);
  const rule = ruleOf(read, deps.rules, view.rule, service);
  const summary = read.get(deps.endpoints.summaries, view.service) ?? NO_ENDPOINTS;
  const settings = settingOf(read, deps.settings.listeners);
  const routes = view.routes.flatMap(({ key }) => deps.bindings.connections(read, key) ?? []);
  const egress = egressOf(read, deps.sidecars, view.view);
  const exported = exportRank(service, view.view.client);
  const ownAddress = exported === 2 && service.registry === 'External' ? rankOfPublicAddress : exported;
  const atAddress = isAtHomeIn(service, client.traits.cluster) ? ownAddress : rankOfForeignAddress;
  const age = { createdAt: service.createdAt, name: service.name, namespace: service.namespace };
  const ports = new Set(view.ports);
  for (const port of service.ports) {
    if (!ports.has(port.number)) continue;
    const heard = heardPort({ port, egress });
    const targets = connectionTargetsOf(l4Destinations(heard, routes), heard.number, view.view, read, deps);
    for (const claim of claimsOf({ service, port, client, summary, routes, targets, rule, settings, egress })) {
      const name = listenerName(claim);
      const list = byName.get(name) ?? [];
      const isAnywhere = ['0.0.0.0', '::'].includes(claim.bind.addresses[0]);
      const isPod = isHeadless(service) && service.registry === 'Kubernetes' && !claim.bind.toPort;
      list.push({ rank: isAnywhere ? exported : atAddress + (isPod ? rankOfPods : 0), age, claim });
      byName.set(name, list);
    }
  }
  return byName;
}
