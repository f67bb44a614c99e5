import type { ConnectedProxy } from '../ads/types.ts';
import { objectKey } from '../api/object.ts';
import type { Collection, Emit, Graph, Index, Reader } from '../cache/graph.ts';
import { compareAge } from '../model/age.ts';
import { contentHash } from '../model/hash.ts';
import type { Workload } from '../model/endpoint.ts';
import type { InboundTarget } from '../model/inbound.ts';
import { type Labels, printSelector, selects } from '../model/labels.ts';
import { listenerName } from '../model/listener.ts';
import type { GatewayTopology } from '../model/mesh-config.ts';
import { type MeshService, isHeadless, protocolClass } from '../model/service.ts';
import { type SidecarModel, egressImports } from '../model/sidecar.ts';
import { type Traits, gatewayTraits, inboundTraits, outboundTraits, traitsKey } from '../model/traits.ts';
import type { Topology } from '../model/topology.ts';
import { inboundTargets } from '../reconcilers/inbound.ts';
import { type NodeFacts, readNode } from '../reconcilers/proxy-node.ts';
import { selectSidecar } from '../reconcilers/sidecar.ts';
import { augmentLabels, localityOfLabels } from '../reconcilers/workload.ts';
import { type Inputs, optionsOf } from './inputs.ts';
import { type Rules, ruleFor } from './rules.ts';
import { labelKeys } from './label-keys.ts';
import { type Services, endpointKey } from './services.ts';
import { type Settings, settingOf } from './settings.ts';
import type { Workloads } from './workloads.ts';
import type { Selectors } from './selectors.ts';
import type { Sidecars } from './sidecars.ts';
import { ownValue } from '../model/own-value.ts';

/** What a connected proxy is, taken apart into what it shares with others. */
export type ProxyView = AcceptedProxy | { readonly error: string };

export interface AcceptedProxy {
  /** The outbound world: same scope, same clusters, listeners and routes. */
  readonly scope: Scope;
  /** From where it looks at endpoints. */
  readonly topology: Topology;
  readonly topologyKey: string;
  /** What it serves itself; undefined for routers. */
  readonly inbound: Inbound | undefined;
  /** Routers: their labels, by which Gateways select them, and the ports of Services that lead to them. */
  readonly router: RouterFacts | undefined;
  /** Names of listeners of its scope that it is not given. */
  readonly excluded: readonly string[];
}

export interface Scope {
  readonly key: string;
  readonly traits: Traits;
  readonly namespace: string;
  /** Selectors mentioned anywhere that match the proxy; sorted. */
  readonly matched: readonly string[];
  /** Key of the Sidecar in force; empty: everything that is visible. */
  readonly sidecar: string;
}

export interface Inbound {
  readonly key: string;
  readonly traits: Traits;
  readonly targets: readonly InboundTarget[];
  /** Only where a listener names them; else empty, so that all replicas share one inbound. */
  readonly addresses: readonly string[];
}

export interface RouterFacts {
  readonly key: string;
  readonly traits: Traits;
  readonly namespace: string;
  readonly labels: Labels;
  /** Where the Services that select it lead their ports, the oldest first. 0: a name that no container has. */
  readonly targetPorts: readonly Readonly<Record<number, number>>[];
  /** What its node says of it. */
  readonly gatewayTopology: Partial<GatewayTopology> | undefined;
}

export interface Proxies {
  readonly views: Collection<ProxyView>;
  /** What a proxy would be if it connected now. */
  readonly preview: (proxy: ConnectedProxy) => ProxyView;
  readonly byScope: Index<ProxyView>;
  /** By the key of the traits of their scopes. */
  readonly byTraits: Index<ProxyView>;
  readonly byInbound: Index<ProxyView>;
  readonly byRouter: Index<ProxyView>;
  /** By topology key. */
  readonly byTopology: Index<ProxyView>;
}

export interface ProxyDeps {
  readonly inputs: Inputs;
  readonly settings: Settings;
  readonly workloads: Workloads;
  readonly services: Services;
  readonly rules: Rules;
  readonly sidecars: Sidecars;
  readonly selectors: Selectors;
  readonly priorityLabels: Index<string>;
}

export function declareProxies(graph: Graph, deps: ProxyDeps): Proxies {
  const view = (proxy: ConnectedProxy, read: Reader): ProxyView => {
    const options = optionsOf(read, deps.inputs);
    const result = readNode(proxy, {
      namespace: options.defaultProxyNamespace,
      proxyType: options.defaultProxyType,
      domainSuffix: options.domainSuffix,
    });
    return 'error' in result ? result : viewOf(result.node, read, deps);
  };
  const views = graph.derive('proxyViews', deps.inputs.proxies, (key, proxy, read, emit: Emit<ProxyView>) => {
    emit(key, view(proxy, read));
  });
  const keyed = (name: string, keyOf: (view: AcceptedProxy) => string | undefined) =>
    graph.index(name, views, (_, view) => {
      const key = 'error' in view ? undefined : keyOf(view);
      return key === undefined ? [] : [key];
    });
  return {
    views,
    preview: (proxy) => view(proxy, graph.present),
    byScope: keyed('proxies by scope', (view) => view.scope.key),
    byTraits: keyed('proxies by traits', (view) => traitsKey(view.scope.traits)),
    byInbound: keyed('proxies by inbound', (view) => view.inbound?.key),
    byRouter: keyed('proxies by router', (view) => view.router?.key),
    byTopology: keyed('proxies by topology', (view) => view.topologyKey),
  };
}

function viewOf(node: NodeFacts, read: Reader, deps: ProxyDeps): AcceptedProxy {
  const { source, rootNamespace } = optionsOf(read, deps.inputs);
  const { traits, namespace } = node;
  const podKey = objectKey(source, namespace, node.workloadName);
  const pod = node.workloadName === '' ? undefined : read.get(deps.workloads.pods, podKey);
  const workload = pod ?? entryOf(node, read, deps);
  const labels: Labels = { ...(workload?.labels ?? node.labels), ...node.staticLabels };
  const locality = workload?.locality || localityOfLabels(labels) || node.locality;
  // Several namespaces may mention one selector.
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
  const scope = {
    traits: outboundTraits(traits),
    namespace,
    matched,
    sidecar: sidecar?.key ?? '',
  };
  const nodeName = node.nodeName || (workload?.nodeName ?? '');
  const topology: Topology = {
    locality,
    network: workload?.network || node.network,
    cluster: node.cluster,
    nodeName,
    labels: placeLabels(
      augmentLabels(labels, { locality, network: node.network, cluster: node.cluster, nodeName }),
      read.group(deps.priorityLabels, 'all').map((member) => member.value),
    ),
  };
  const selecting = servicesAt(read, deps.services, namespace, labels, node.addresses);
  return {
    scope: { ...scope, key: scopeKey(scope) },
    topology,
    topologyKey: JSON.stringify(topology),
    inbound:
      traits.proxyType === 'sidecar' ? inboundOf(node, workload, labels, sidecar, selecting, read, deps) : undefined,
    router: traits.proxyType === 'router' ? routerOf(node, workload?.ports, labels, selecting) : undefined,
    excluded: ownListeners(selecting, node.addresses),
  };
}

function scopeKey(scope: Omit<Scope, 'key'>): string {
  return [traitsKey(scope.traits), scope.namespace, scope.matched.join('&'), scope.sidecar].join('|');
}

/** The labels that some failover priority names, and nothing else: it would split proxies without need. */
function placeLabels(labels: Labels, names: readonly string[]): Labels {
  return Object.fromEntries(
    names.flatMap((name): [string, string][] => {
      const value = ownValue(labels, name);
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

/**
 * The WorkloadEntry of a proxy without a Pod, which runs on a virtual machine: one that has an address of the proxy. Of
 * several the one with the name of the proxy, else the first by name.
 */
function entryOf(
  { namespace, workloadName, addresses }: NodeFacts,
  read: Reader,
  deps: ProxyDeps,
): Workload | undefined {
  const entries = addresses.flatMap((address) =>
    read.group(deps.workloads.entriesByAddress, `${namespace}/${address}`).map((member) => member.value),
  );
  return entries.find(({ name }) => name === workloadName) ?? entries[0];
}

function mentioned(read: Reader, selectors: Selectors, namespace: string): readonly Labels[] {
  const of = (target: string) => read.group(selectors.byClient, target).map((member) => member.value.selector);
  return [...of('*'), ...of(namespace)];
}

/** Services of the namespace that select these labels or have an endpoint at these addresses, oldest first. */
function servicesAt(
  read: Reader,
  services: Services,
  namespace: string,
  labels: Labels,
  addresses: readonly string[],
): readonly MeshService[] {
  const found = new Map<string, MeshService>();
  for (const key of labelKeys(namespace, labels))
    for (const { key: service, value } of read.group(services.bySelector, key))
      if (selects(value.selector!, labels)) found.set(service, value);
  for (const address of addresses)
    for (const { key: service, value } of read.group(services.byEndpoint, endpointKey(namespace, address)))
      found.set(service, value);
  return [...found.values()].sort((a, b) => compareAge(a, b) || (a.host < b.host ? -1 : 1));
}

/** Listeners of headless services have the addresses of pods. That of a pod itself would catch what it sends to itself. */
function ownListeners(services: readonly MeshService[], addresses: readonly string[]): readonly string[] {
  const ports = services
    .filter(isHeadless)
    .flatMap((service) => service.ports)
    .filter(({ protocol }) => protocolClass(protocol) !== 'http')
    .map(({ number }) => number);
  const names = addresses.flatMap((address) =>
    ports.map((port) => listenerName({ bind: { addresses: [address] }, port })),
  );
  return [...new Set(names)].sort();
}

function inboundOf(
  node: NodeFacts,
  workload: Workload | undefined,
  labels: Labels,
  sidecar: SidecarModel | undefined,
  services: readonly MeshService[],
  read: Reader,
  deps: ProxyDeps,
): Inbound {
  const { rootNamespace } = settingOf(read, deps.settings.visibility);
  const targets = inboundTargets({
    services,
    addresses: node.addresses,
    ports: workload?.ports ?? node.podPorts,
    isEntry: workload?.kind === 'WorkloadEntry',
    sidecar,
    interception: node.traits.interception,
    ruleOf: (service) =>
      // A workload whose Sidecar does not import its own service knows none of the rules for it.
      sidecar?.egress.some(({ hosts }) => egressImports(hosts, node.namespace, service)) === false
        ? undefined
        : ruleFor(read, deps.rules, service, rootNamespace, {
            namespace: node.namespace,
            matches: (selector) => selects(selector, labels),
          }),
  });
  const addresses = targets.some((target) => target.ingress !== undefined) ? node.addresses : [];
  const traits = inboundTraits(node.traits);
  const content = JSON.stringify([traitsKey(traits), targets, addresses]);
  return { key: contentHash(content), traits, targets, addresses };
}

function routerOf(
  node: NodeFacts,
  podPorts: Readonly<Record<string, number>> | undefined,
  labels: Labels,
  services: readonly MeshService[],
): RouterFacts {
  const ports = podPorts ?? node.podPorts ?? {};
  const targetPorts = services
    .filter((service) => service.translatesPorts)
    .map((service) =>
      Object.fromEntries(
        service.ports.map((port) => {
          const target = port.targetPort ?? port.number;
          return [port.number, typeof target === 'number' ? target : (ownValue(ports, target) ?? 0)];
        }),
      ),
    );
  const { namespace, gatewayTopology } = node;
  const facts = { traits: gatewayTraits(node.traits), namespace, labels, targetPorts, gatewayTopology };
  return { key: contentHash(JSON.stringify(facts)), ...facts };
}
