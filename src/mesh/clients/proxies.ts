import { clusterLabel, nodeLabel } from '../../model/locality.ts';
import { isDeepStrictEqual } from 'node:util';
import type { ConnectedProxy } from '../../ads/types.ts';
import { objectKey } from '../../api/object.ts';
import type { Collection, Emit, Graph, Index, Reader } from '../../cache/graph.ts';
import { contentHash } from '../../model/hash.ts';
import type { Workload } from '../../model/endpoint.ts';
import { type Labels, printSelector, selects } from '../../model/labels.ts';
import type { GatewayTopology } from '../../model/mesh-config.ts';
import {
  type Traits,
  gatewayTraits,
  inboundTraits,
  outboundTraits,
  traitsKey,
  viewTraitsKey,
} from '../../model/traits.ts';
import { type Topology, nowhere } from '../../model/topology.ts';
import { type NodeFacts, readNode } from '../../reconcilers/proxy-node.ts';
import { selectSidecar } from '../../reconcilers/sidecar/sidecar.ts';
import { augmentLabels, localityOfLabels } from '../../reconcilers/core/workload.ts';
import { type Inputs, type MeshOptions, optionsOf } from '../inputs.ts';
import type { PatchSets, PatchSources } from '../objects/patch-sources.ts';
import { type ScopePatches, patchesKey, scopePatches } from './scope-patches.ts';
import { Reads } from './reads.ts';
import { type SelectedNames, type WorkloadClass, workloadClass } from './workload-classes.ts';
import type { Workloads } from '../objects/workloads.ts';
import type { Selectors } from './selectors.ts';
import type { Sidecars } from '../objects/sidecars.ts';
import { type AccountKey, accountKey } from '../../model/credential.ts';
import { ownValue } from '../../model/own-value.ts';
import { allOf } from '../whole.ts';

/** A connected proxy, split into the parts that it shares with others. */
export type ResolvedProxy = AcceptedProxy | { readonly error: string };

export interface AcceptedProxy {
  /** The outbound world: the same scope means the same clusters, listeners and routes. */
  readonly scope: Scope;
  /** The place from which it sees endpoints. */
  readonly topology: Topology;
  readonly topologyKey: string;
  /** What only the proxy itself says about that place, or undefined if nothing of it matters. */
  readonly claimedPlace: string | undefined;
  /** What the workload serves is computed once per class. */
  readonly workload: WorkloadClass;
  /** Its workload is an object; otherwise, labels and ports are what the proxy reports itself. */
  readonly isKnown: boolean;
  /** Its own addresses: listeners of its scope at these addresses are not for it. */
  readonly addresses: readonly string[];
  /** The service account that it has proven to have; empty: none. */
  readonly account: AccountKey | '';
  /** Its node names another cluster than its credential is of. */
  readonly claimsOtherCluster: boolean;
  /** For routers: their labels, by which Gateways select them. */
  readonly router: RouterFacts | undefined;
  /** What patches it; absent: nothing. */
  readonly patches?: PatchSets;
}

export interface Scope {
  readonly key: string;
  readonly traits: Traits;
  readonly namespace: string;
  /** Selectors mentioned anywhere that match the proxy; sorted. */
  readonly matched: readonly string[];
  /** Key of the Sidecar in force; empty: everything visible. */
  readonly sidecar: string;
  /** Absent: nothing is patched. */
  readonly patches?: ScopePatches;
}

export interface RouterFacts {
  readonly key: string;
  readonly traits: Traits;
  readonly namespace: string;
  readonly labels: Labels;
  /** Key of its {@link WorkloadClass}: routers with the same key have the same target ports. */
  readonly workload: string;
  /** What its node says about it. */
  readonly gatewayTopology: Partial<GatewayTopology> | undefined;
  /** See {@link AcceptedProxy}. */
  readonly account: string;
  /** Key of the {@link PatchSet} for what Gateways ask of it; absent: none. */
  readonly patches?: string;
}

export interface Proxies {
  readonly resolved: Collection<ResolvedProxy>;
  /** What a proxy would be if it connected now. */
  readonly preview: (proxy: ConnectedProxy) => ResolvedProxy;
  readonly byScope: Index<ResolvedProxy>;
  /** By the key of their scope traits. */
  readonly byTraits: Index<ResolvedProxy>;
  /** By the key of their view traits. */
  readonly byViewTraits: Index<ResolvedProxy>;
  /** By the key of their workload class. */
  readonly byWorkload: Index<ResolvedProxy>;
  readonly byRouter: Index<ResolvedProxy>;
  readonly byAccount: Index<ResolvedProxy>;
  /** By topology key. */
  readonly byTopology: Index<ResolvedProxy>;
  /** By the keys of the {@link PatchSet}s; absent if nothing patches. */
  readonly byPatches: Index<ResolvedProxy> | undefined;
}

export interface ProxyDeps {
  readonly inputs: Inputs;
  readonly workloads: Workloads;
  readonly selectedNames: SelectedNames;
  readonly sidecars: Sidecars;
  readonly selectors: Selectors;
  readonly priorityLabels: Index<string>;
  readonly patchSources: PatchSources | undefined;
}

export function declareProxies(graph: Graph, deps: ProxyDeps): Proxies {
  const view = (proxy: ConnectedProxy, read: Reader): ResolvedProxy => {
    const options = optionsOf(read, deps.inputs);
    const result = nodeOf(proxy, options);
    if ('error' in result) return result;
    const { cluster } = result.node;
    return viewOf(
      { ...result.node, cluster: ownValue(options.clusterAliases ?? {}, cluster) ?? cluster },
      proxy,
      read,
      deps,
    );
  };
  /** Views of proxies that are about to be admitted: nearly all are still the same by then. */
  const previewed = new WeakMap<ConnectedProxy, { readonly reads: Reads; readonly result: ResolvedProxy }>();
  const known = (proxy: ConnectedProxy, read: Reader): ResolvedProxy | undefined => {
    const found = previewed.get(proxy);
    return found?.reads.again(read) === true ? found.result : undefined;
  };
  const preview = (proxy: ConnectedProxy): ResolvedProxy => {
    const present = known(proxy, graph.present);
    if (present !== undefined) return present;
    const reads = new Reads(graph.present);
    const result = view(proxy, reads);
    previewed.set(proxy, { reads, result });
    return result;
  };
  const admitted = (proxy: ConnectedProxy, read: Reader): ResolvedProxy => {
    const result = known(proxy, read) ?? view(proxy, read);
    previewed.delete(proxy);
    return result;
  };
  const resolved = graph.derive(
    'resolvedProxies',
    deps.inputs.proxies,
    (key, proxy, read, emit: Emit<ResolvedProxy>) => {
      emit(key, admitted(proxy, read));
    },
  );
  const keyed = (name: string, keyOf: (view: AcceptedProxy) => string | undefined) =>
    graph.index(name, resolved, (_, view) => {
      const key = 'error' in view ? undefined : keyOf(view);
      return key === undefined ? [] : [key];
    });
  return {
    resolved,
    preview,
    byScope: keyed('proxies by scope', (view) => view.scope.key),
    byTraits: keyed('proxies by traits', (view) => traitsKey(view.scope.traits)),
    byViewTraits: keyed('proxies by traits of views', (view) => viewTraitsKey(view.scope.traits)),
    byWorkload: keyed('proxies by workload', (view) => view.workload.key),
    byRouter: keyed('proxies by router', (view) => view.router?.key),
    byAccount: keyed('proxies by account', (view) => view.account || undefined),
    byTopology: keyed('proxies by topology', (view) => view.topologyKey),
    byPatches:
      deps.patchSources &&
      graph.index('proxies by patches', resolved, (_, view) =>
        'error' in view ? [] : [...new Set(Object.values(view.patches ?? {}).map(({ key }) => key))],
      ),
  };
}

type Node = ReturnType<typeof readNode>;

function nodeOf(proxy: ConnectedProxy, options: MeshOptions): Node {
  const { defaultProxyNamespace: namespace, defaultProxyType: proxyType, domainSuffix } = options;
  return readNode(proxy, { namespace, proxyType, domainSuffix });
}

function accountOf({ identity }: ConnectedProxy, clusterId: string): AccountKey | '' {
  if (identity === undefined) return '';
  const { namespace, serviceAccount: name, cluster } = identity;
  return accountKey({ namespace, name, ...(cluster !== clusterId && { cluster }) });
}

function namesCluster({ metadata }: ConnectedProxy): boolean {
  return (metadata['CLUSTER_ID'] ?? '') !== '';
}

function viewOf(node: NodeFacts, proxy: ConnectedProxy, read: Reader, deps: ProxyDeps): AcceptedProxy {
  const { rootNamespace, clusterId } = optionsOf(read, deps.inputs);
  const account = accountOf(proxy, clusterId);
  const { namespace } = node;
  // A name that is not known means nothing: there are proxies that have never been told that of their cluster.
  const named = read.get(deps.inputs.remoteClusters, node.cluster)?.id ?? '';
  const proven = proxy.identity?.cluster;
  const remote = proven === undefined ? named : (read.get(deps.inputs.remoteClusters, proven)?.id ?? '');
  const traits = { ...node.traits, cluster: remote };
  const podKey = objectKey(remote || clusterId, namespace, node.workloadName);
  const pod = node.workloadName === '' ? undefined : read.get(deps.workloads.pods, podKey);
  const workload = pod ?? entryOf(node, remote || clusterId, read, deps);
  const labels: Labels = { ...(workload?.labels ?? node.labels), ...node.staticLabels };
  const locality = workload?.locality || localityOfLabels(labels) || node.locality;
  // Several namespaces may mention the same selector.
  const matching = mentioned(read, deps.selectors, namespace).filter((selector) => selects(selector, labels));
  const matched = [...new Set(matching.map(printSelector))].sort();
  const sidecar =
    traits.proxyType === 'sidecar'
      ? selectSidecar(
          {
            own: read.group(deps.sidecars.byNamespace, namespace).map((member) => member.value),
            root: read.group(deps.sidecars.byNamespace, rootNamespace).map((member) => member.value),
          },
          labels,
        )
      : undefined;
  const { proxyType, family } = traits;
  // Libraries are not Envoys: as in Istio, nothing patches what they get.
  const patches =
    deps.patchSources === undefined || family === 'grpc'
      ? undefined
      : deps.patchSources.select(read, { rootNamespace, namespace, labels, proxyType });
  const ofScope = patches && scopePatches(patches);
  const scope = {
    traits: outboundTraits(traits),
    namespace,
    matched,
    sidecar: sidecar?.key ?? '',
    ...(ofScope && { patches: ofScope }),
  };
  const nodeName = workload?.nodeName || node.nodeName;
  const cluster = workload?.cluster ?? (remote || clusterId);
  const priorityLabels = allOf(read, deps.priorityLabels);
  const topology: Topology = {
    locality,
    network: workload?.inheritsNetwork === true ? node.network || workload.network : workload?.network || node.network,
    ...reachOf(node),
    cluster,
    nodeName,
    labels: placeLabels(augmentLabels(labels, { locality, network: node.network, cluster, nodeName }), priorityLabels),
  };
  const claimed: Topology = {
    locality: workload?.locality ? '' : locality,
    network: workload?.network && workload.inheritsNetwork !== true ? '' : node.network,
    ...(node.requestedNetworks.length > 0 && { requestedNetworks: node.requestedNetworks }),
    cluster: workload === undefined && priorityLabels.includes(clusterLabel) ? cluster : '',
    nodeName: !workload?.nodeName && priorityLabels.includes(nodeLabel) ? nodeName : '',
    labels: workload === undefined ? topology.labels : placeLabels(node.staticLabels, priorityLabels),
  };
  const ofProxy = traits.proxyType === 'sidecar' ? inboundTraits(traits) : gatewayTraits(traits);
  const facts = {
    traits: ofProxy,
    namespace,
    labels,
    matched,
    sidecar: sidecar?.key ?? '',
    ports: workload?.ports ?? node.podPorts,
    isEntry: workload?.kind === 'WorkloadEntry',
    addresses: node.addresses,
    hasIngress: sidecar !== undefined && sidecar.ingress.length > 0,
    ...(patches?.inbound && { patches: patches.inbound.key }),
  };
  const classOfIt = workloadClass(facts, read, deps.selectedNames);
  return {
    scope: { ...scope, key: scopeKey(scope) },
    topology,
    topologyKey: JSON.stringify(topology),
    claimedPlace: isDeepStrictEqual(claimed, nowhere) ? undefined : JSON.stringify(claimed),
    workload: classOfIt,
    isKnown: workload !== undefined,
    addresses: node.addresses,
    account,
    claimsOtherCluster: proven !== undefined && namesCluster(proxy) && (named || clusterId) !== proven,
    router: proxyType === 'router' ? routerOf(node, account, labels, classOfIt, patches?.gateway?.key) : undefined,
    ...(patches && { patches }),
  };
}

function reachOf({ traits, requestedNetworks }: NodeFacts): Pick<Topology, 'ipFamily' | 'requestedNetworks'> {
  return {
    ...(traits.ipFamily !== 'v4' && { ipFamily: traits.ipFamily }),
    ...(requestedNetworks.length > 0 && { requestedNetworks }),
  };
}

function scopeKey(scope: Omit<Scope, 'key'>): string {
  const key = [traitsKey(scope.traits), scope.namespace, scope.matched.join('&'), scope.sidecar].join('|');
  return scope.patches === undefined ? key : `${key}|${patchesKey(scope.patches)}`;
}

/** Only the labels that some failover priority names: any others would split proxies needlessly. */
function placeLabels(labels: Labels, names: readonly string[]): Labels {
  return Object.fromEntries(
    names.flatMap((name): [string, string][] => {
      const value = ownValue(labels, name);
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

/**
 * The WorkloadEntry of a proxy without a Pod, that is, on a virtual machine: one in its cluster with an address of the
 * proxy. If there are several, the one with the proxy's name, or else the first by name.
 */
function entryOf(
  { namespace, workloadName, addresses }: NodeFacts,
  cluster: string,
  read: Reader,
  deps: ProxyDeps,
): Workload | undefined {
  const entries = addresses
    .flatMap((address) => read.group(deps.workloads.entriesByAddress, `${namespace}/${address}`))
    .map((member) => member.value)
    .filter((entry) => entry.cluster === cluster);
  return entries.find(({ name }) => name === workloadName) ?? entries[0];
}

function mentioned(read: Reader, selectors: Selectors, namespace: string): readonly Labels[] {
  const of = (target: string) => read.group(selectors.byClient, target).map((member) => member.value.selector);
  return [...of('*'), ...of(namespace)];
}

function routerOf(
  { traits, namespace, gatewayTopology }: NodeFacts,
  account: string,
  labels: Labels,
  workload: WorkloadClass,
  patches: string | undefined,
): RouterFacts {
  const facts = {
    traits: gatewayTraits(traits),
    namespace,
    labels,
    workload: workload.key,
    gatewayTopology,
    ...(account !== '' && { account }),
    ...(patches !== undefined && { patches }),
  };
  return { key: contentHash(JSON.stringify(facts)), ...facts, account };
}
