import type { HasProblems } from './api/problem.ts';
import type { Collection, Draft, Graph } from './cache/graph.ts';
import type { Publication, World } from './ads/store/publication.ts';
import type { ConnectedProxy } from './ads/types.ts';
import type { Encoder } from './envoy/encode/encoder.ts';
import { declareApiListeners } from './mesh/resources/api-listeners.ts';
import { declareClusters } from './mesh/resources/clusters.ts';
import type { AddressClaim } from './model/address-claim.ts';
import type { CredentialKey } from './model/credential.ts';
import type { WantedKeySet } from './mesh/findings/key-sets.ts';
import type { Labels } from './model/labels.ts';
import type { NetworkGateways } from './model/network.ts';
import type { ProxyConfigsOfPod } from './model/proxy-config.ts';
import type { MeshService } from './model/service.ts';
import type { GatewayAccess } from './settle/access/gateway.ts';
import type { WorkloadAccess } from './settle/access/judge.ts';
import { mostInboundPorts } from './settle/inbound.ts';
import { viewTraitsKey } from './model/traits.ts';
import { type Verdict, declareConditions } from './mesh/findings/conditions.ts';
import { declarePolicyFindings } from './mesh/findings/policy-findings.ts';
import { declareConflicts } from './mesh/findings/conflicts.ts';
import type { EndpointList } from './mesh/objects/endpoint-list.ts';
import { declareEndpoints } from './mesh/objects/endpoints.ts';
import { declareGlobalServices, type GlobalServices } from './mesh/objects/global-services.ts';
import type { HeldEndpoints } from './mesh/objects/held-endpoints.ts';
import type { ExportVerdict } from './mesh/objects/exports.ts';
import { declareGateways } from './mesh/gateways/gateways.ts';
import { type Inputs, ONE, declareInputs, optionsOf } from './mesh/inputs.ts';
import { declareGrpcServers } from './mesh/resources/grpc-servers.ts';
import { declareInbounds } from './mesh/resources/inbounds.ts';
import { declareWantedKeySets } from './mesh/findings/key-sets.ts';
import { declareListenerConflicts } from './mesh/findings/listener-conflicts.ts';
import { declareOutboundListeners } from './mesh/resources/outbound-listeners.ts';
import type { Members } from './mesh/resources/members.ts';
import { declareNetworks } from './mesh/objects/networks.ts';
import { declarePeerModes } from './mesh/objects/peer-modes.ts';
import { declarePolicies } from './mesh/objects/policies.ts';
import { declareRules } from './mesh/objects/rules.ts';
import { type Problems, declareProblems, problemsKey } from './mesh/findings/problems.ts';
import { replicasOf } from './mesh/replicas.ts';
import { accessOf } from './mesh/resources/access.ts';
import { type ResolvedProxy, declareProxies } from './mesh/clients/proxies.ts';
import {
  type WorkloadClass,
  declareSelectedNames,
  declareWorkloadClasses,
  portsSelecting,
} from './mesh/clients/workload-classes.ts';
import { declareWorkloadPolicies, policySelectors } from './mesh/clients/workload-policies.ts';
import { declareWorlds } from './mesh/clients/worlds.ts';
import { type RolloutsOf, publicationOf } from './mesh/publication.ts';
import { declareReferences } from './mesh/findings/references.ts';
import { type WantedCredential, declareCredentials } from './mesh/resources/credentials.ts';
import { declareRuleFindings } from './mesh/findings/rule-findings.ts';
import { declareIdleSelectors } from './mesh/findings/idle-selectors.ts';
import { declarePortProtocols } from './mesh/findings/port-protocols.ts';
import { declareSelection } from './mesh/findings/selection.ts';
import { declareSharedHosts } from './mesh/findings/shared-hosts.ts';
import { declareWorkloadPortRemarks } from './mesh/findings/workload-ports.ts';
import { declareSecrets } from './mesh/resources/secrets.ts';
import { declareTrustBundle } from './mesh/resources/trust-bundle.ts';
import { declareScopes } from './mesh/clients/scopes.ts';
import { declareSecurityFilters } from './mesh/resources/security-filters.ts';
import { declareServices } from './mesh/objects/services.ts';
import { sharedClusters } from './mesh/objects/shared-endpoints.ts';
import { declareSettings } from './mesh/settings.ts';
import { declareSizeLimits } from './mesh/findings/size-limits.ts';
import { type ClusterNamespaces, clusterNamespaces } from './mesh/objects/cluster-namespaces.ts';
import { declareTrustDomains } from './mesh/objects/trust-domains.ts';
import { declareWorkloads } from './mesh/objects/workloads.ts';
import { type RouteFrontEnd, declareRouteBindings } from './mesh/objects/route-bindings.ts';
import { declareRouteHosts } from './mesh/clients/route-hosts.ts';
import { declareRouteTables } from './mesh/resources/route-tables.ts';
import { declareAudiences } from './mesh/clients/audiences.ts';
import { declareCoveredServices } from './mesh/clients/covered-services.ts';
import { declareDestinationViews } from './mesh/clients/destination-views.ts';
import { declareNameDemand } from './mesh/clients/name-demand.ts';
import { declareNames } from './mesh/resources/names.ts';
import { declareNamespaces } from './mesh/clients/namespaces.ts';
import { declarePriorityLabels } from './mesh/clients/priority-labels.ts';
import { declareSelectors } from './mesh/clients/selectors.ts';
import { declareProxyConfigs } from './mesh/objects/proxy-configs.ts';
import { declareSidecars } from './mesh/objects/sidecars.ts';
import { declarePortsByRoutes } from './mesh/clients/served-ports.ts';
import { declareRoutesOfView } from './mesh/clients/routes-of-view.ts';
import { declareViews } from './mesh/clients/views.ts';
import { declareVirtualServices } from './mesh/objects/virtual-services.ts';

/** The map of the system: every collection and edge between objects and what proxies get. */
export interface Mesh {
  readonly graph: Graph;
  readonly inputs: Inputs;
  /** What is wrong with each object, by object. */
  readonly problems: Problems;
  readonly services: Collection<MeshService>;
  readonly endpoints: readonly Collection<EndpointList>[];
  /** Listeners for which TCP services compete. */
  readonly listenerConflicts: Collection<HasProblems>;
  /** Endpoints that are served although no slice lists them. Changes to them can be observed. */
  readonly heldEndpoints: HeldEndpoints;
  readonly namespaces: ClusterNamespaces;
  /** Names (`namespace/name`) of the other Pods of the release of this one that are ready. */
  replicasOf(pod: string): readonly string[];
  /** Whether there is such a Pod, with an address, and it has not ended. */
  isRunning(pod: string): boolean;
  /** Calls back with what has changed of what ServiceEntries mean for automatic addresses; undefined: nothing any more. */
  onAddressClaims(changed: (claims: ReadonlyMap<string, AddressClaim | undefined>) => void): void;
  /** All of it, by object. */
  readonly addressClaims: Collection<AddressClaim>;
  /** See {@link sharedClusters}. */
  sharedBy(service: MeshService): readonly string[] | undefined;
  /** What ServiceExports mean, by object. */
  readonly exports: Collection<ExportVerdict>;
  /** Calls back with what the status of a ServiceExport should say from now on, by object; undefined: it is gone. */
  onExports(changed: (key: string, verdict: ExportVerdict | undefined) => void): void;
  /** What the other clusters of a ClusterMesh are to know of this one, by `namespace/name`. */
  readonly global: GlobalServices;
  /** Calls back with the keys of those that have come, gone or changed. */
  onGlobal(changed: (keys: Readonly<Record<keyof GlobalServices, readonly string[]>>) => void): void;
  /** Of the mesh config; `cluster.local` before the first commit. */
  trustDomain(): string;
  /** The same of the accounts of a cluster; undefined: it is not served. */
  trustDomainOf(cluster: string): string | undefined;
  /** By network. */
  readonly networkGateways: Collection<NetworkGateways>;
  /** Calls back with every name of a gateway that is to be looked up from now on, or no longer. */
  onWantedGatewayHosts(changed: (host: string, isWanted: boolean) => void): void;
  /** Calls back with every key set that is to be fetched from now on; undefined: it no longer is. */
  onWantedKeySets(changed: (key: string, wanted: WantedKeySet | undefined) => void): void;
  /** Calls back with every Secret or ConfigMap that is to be read from now on; undefined: it no longer is. */
  onWantedCredentials(changed: (key: CredentialKey, object: WantedCredential | undefined) => void): void;
  /** Calls back with every service account whose right to have Secrets must be known from now on, or no longer. */
  onWantedSecretAccess(changed: (account: string, isWanted: boolean) => void): void;
  /** By `originKey`; undefined: there is no such object. */
  verdictOf(key: string): Verdict | undefined;
  /** Calls back with every verdict that a commit changed, by `originKey`; undefined if the object is gone. */
  onConditions(changed: (key: string, verdict: Verdict | undefined) => void): void;
  readonly proxies: Collection<ResolvedProxy>;
  /** Whether anything is computed for proxies with these traits. */
  isMade(traits: string): boolean;
  /** Key of the views that the proxy has, or would have; undefined: it is not accepted. */
  viewsOf(proxy: ConnectedProxy): string | undefined;
  /** How many proxies have these views. */
  proxiesWith(views: string): number;
  /** What a proxy would be if it connected now. */
  preview(proxy: ConnectedProxy): ResolvedProxy;
  /** How many ports a workload of this class would serve for its Services, at least 1. */
  portsOf(workload: WorkloadClass): number;
  /** Every resource, once per list that contains it. */
  readonly members: readonly Members[];
  /** What decides about requests to the workload of a connected sidecar; undefined for others. */
  accessOf(stream: string): WorkloadAccess | undefined;
  /** The same for a connected router. */
  gatewayAccessOf(stream: string): GatewayAccess | undefined;
  /** The ProxyConfigs for a Pod with these labels. */
  proxyConfigsOf(pod: { readonly namespace: string; readonly labels: Labels }): ProxyConfigsOfPod;
  /** What a connected proxy can reach; empty if it is unknown or was not accepted. */
  worldOf(stream: string): World;
  /** What a commit changes in the ADS store. `of`: absent if nobody waits for acknowledgements. */
  publicationOf(draft: Draft, of?: RolloutsOf): Publication;
}

/** @param others further kinds of objects with routes. Where these have a host, a VirtualService loses it. */
export function buildMesh(
  graph: Graph,
  encoder: Encoder,
  others: (graph: Graph) => readonly RouteFrontEnd[] = () => [],
): Mesh {
  // What users write, and what it means.
  const inputs = declareInputs(graph);
  const settings = declareSettings(graph, inputs);
  const networks = declareNetworks(graph, inputs);
  const trustDomains = declareTrustDomains(graph, inputs, settings);
  const workloads = declareWorkloads(graph, inputs, { settings, networks, trustDomains });
  const services = declareServices(graph, inputs, settings, trustDomains);
  const policies = declarePolicies(graph, inputs);
  const peerModes = declarePeerModes(graph, inputs, policies, settings);
  const endpoints = declareEndpoints(graph, inputs, { services, workloads, peerModes, networks });
  const global = declareGlobalServices(graph, inputs, endpoints.slicesByService);
  const rules = declareRules(graph, inputs, settings);
  const virtualServices = declareVirtualServices(graph, inputs, settings);
  const sidecars = declareSidecars(graph, inputs);
  const proxyConfigs = declareProxyConfigs(graph, inputs);

  // Who asks, and what they share.
  const bindings = declareRouteBindings(graph, [...others(graph), virtualServices.frontEnd]);
  const selectors = declareSelectors(graph, services, rules, bindings);
  const coveredServices = declareCoveredServices(graph, services);
  const audiences = declareAudiences(graph, inputs, services, rules, bindings, coveredServices);
  const priorityLabels = declarePriorityLabels(graph, settings, services, rules);
  const routeHosts = declareRouteHosts(graph, services, bindings);
  const objects = {
    inputs,
    settings,
    networks,
    workloads,
    services,
    endpoints,
    rules,
    virtualServices,
    bindings,
    sidecars,
    policies,
    peerModes,
    coveredServices,
    routeHosts,
  };
  const selectedNames = declareSelectedNames(graph, services, policySelectors(graph, objects));
  const proxies = declareProxies(graph, { ...objects, selectedNames, selectors, priorityLabels });
  const workloadClasses = declareWorkloadClasses(graph, services, proxies.byWorkload, (proxy) =>
    'error' in proxy ? undefined : proxy.workload,
  );
  const workloadPolicies = declareWorkloadPolicies(graph, workloadClasses, objects);
  const worlds = declareWorlds(graph, { inputs, proxies, workloadClasses });
  const namespaces = declareNamespaces(graph, { ...objects, selectors, audiences });
  const scopes = declareScopes(graph, { proxies, sidecars, namespaces });
  const views = declareViews(graph, { ...objects, namespaces, scopes });
  const portsByRoutes = declarePortsByRoutes(graph, views, objects);
  const routesOfView = declareRoutesOfView(graph, { ...objects, views, portsByRoutes });
  const destinationViews = declareDestinationViews(graph, { ...objects, scopes, views });

  // What they get.
  const securityFilters = declareSecurityFilters(graph, { ...objects, policySets: workloadPolicies.sets });
  const deps = {
    ...objects,
    proxies,
    workloadClasses,
    workloadPolicies,
    securityFilters,
    scopes,
    views,
    portsByRoutes,
    routesOfView,
    destinationViews,
    encoder,
  };
  const gateways = declareGateways(graph, deps);
  const credentials = declareCredentials(graph, { ...deps, gateways: gateways.models, routers: gateways.routers });
  const clusters = declareClusters(graph, deps, gateways.forwarded);
  const inbounds = declareInbounds(graph, deps);
  const members: readonly Members[] = [
    ...clusters.members,
    ...declareOutboundListeners(graph, deps),
    inbounds.members,
    ...declareGrpcServers(graph, inbounds.targets, { ...deps, policySets: workloadPolicies.sets }),
    ...declareRouteTables(graph, deps),
    declareApiListeners(graph, deps),
    ...gateways.members,
    declareSecrets(graph, credentials, deps),
    declareTrustBundle(graph, inputs),
  ];
  const nameDemand = declareNameDemand(graph, deps);
  const ownTrustDomain = (): string => settings.security.get(ONE)?.trustDomain ?? 'cluster.local';
  const names = declareNames(graph, nameDemand, deps);
  const listenerConflicts = declareListenerConflicts(graph, deps);
  const selectsNobody = declareSelection(graph, deps);
  const problems = declareProblems(graph, [
    inputs.failures,
    settings.parsed,
    networks.parsed,
    trustDomains.parsed,
    workloads.parsedEntries,
    services.parsedEntries,
    services.parsedImports,
    services.exports.verdicts,
    ...endpoints.lists,
    rules.parsed,
    rules.merged,
    rules.files,
    virtualServices.parsed,
    virtualServices.shadowed,
    virtualServices.delegated,
    sidecars.parsed,
    proxyConfigs.parsed,
    proxyConfigs.conflicts,
    policies.peers.parsed,
    policies.requests.parsed,
    policies.authorization.parsed,
    ...declareReferences(graph, { ...deps, gateways: gateways.models }),
    ...declareSizeLimits(graph, deps),
    ...declareConflicts(graph, inputs, services, bindings, sidecars),
    listenerConflicts,
    ...clusters.problems,
    ...inbounds.problems,
    ...declarePolicyFindings(graph, { ...deps, selectsNobody }, gateways.models),
    ...declareIdleSelectors(graph, { ...deps, selectsNobody }),
    ...gateways.problems,
    ...credentials.problems,
    ...declareRuleFindings(graph, deps, credentials),
    declareSharedHosts(graph, services),
    declarePortProtocols(graph, services),
    ...declareWorkloadPortRemarks(graph, deps),
  ]);

  const wantedKeySets = declareWantedKeySets(graph, policies);
  const conditions = declareConditions(graph, inputs, problems, {
    VirtualService: virtualServices.parsed,
    DestinationRule: rules.parsed,
    ServiceEntry: services.parsedEntries,
    Gateway: gateways.parsed,
    Sidecar: sidecars.parsed,
    ProxyConfig: proxyConfigs.parsed,
    WorkloadEntry: workloads.parsedEntries,
    PeerAuthentication: policies.peers.parsed,
    RequestAuthentication: policies.requests.parsed,
    AuthorizationPolicy: policies.authorization.parsed,
  });
  for (const collection of [
    ...members,
    ...names,
    ...nameDemand.lists,
    ...gateways.lists,
    ...conditions.map(({ verdicts }) => verdicts),
    scopes,
    views.viewLists,
    worlds,
    problems.byObject,
    wantedKeySets,
    networks.wantedHosts,
    credentials.wanted,
    credentials.wantedAccess,
    inputs.objects.Namespace,
    services.addressClaims,
    services.exports.verdicts,
    global.services,
    global.slices,
    endpoints.held.byService,
  ])
    collection.track();
  /** What calls back with every entry that a commit changes; undefined: it is gone. */
  const onEach =
    <T>(collection: Collection<T>, name: string) =>
    (changed: (key: string, after: T | undefined) => void): void =>
      graph.observe((draft) => {
        for (const { key, after } of draft.changes(collection)) changed(key, after);
      }, name);

  return {
    graph,
    inputs,
    problems,
    services: services.services,
    endpoints: endpoints.lists,
    listenerConflicts,
    heldEndpoints: endpoints.held,
    namespaces: clusterNamespaces(graph, inputs),
    replicasOf: (pod) => replicasOf(pod, workloads, inputs),
    isRunning: (pod) => workloads.pods.get(pod) !== undefined,
    onAddressClaims(changed) {
      graph.observe((draft) => {
        const claims = new Map(Array.from(draft.changes(services.addressClaims), ({ key, after }) => [key, after]));
        if (claims.size > 0) changed(claims);
      }, 'address claims');
    },
    addressClaims: services.addressClaims,
    sharedBy: (service) => sharedClusters(service, graph.present, objects),
    exports: services.exports.verdicts,
    onExports: onEach(services.exports.verdicts, 'exports'),
    global,
    onGlobal(changed) {
      graph.observe((draft) => {
        const services = Array.from(draft.changes(global.services), ({ key }) => key);
        const slices = Array.from(draft.changes(global.slices), ({ key }) => key);
        if (services.length + slices.length > 0) changed({ services, slices });
      }, 'global services');
    },
    trustDomain: ownTrustDomain,
    trustDomainOf(cluster) {
      if (cluster === optionsOf(graph.present, inputs).clusterId) return ownTrustDomain();
      return inputs.remoteClusters.get(cluster) && trustDomains.of(graph.present, cluster);
    },
    networkGateways: networks.gateways,
    onWantedGatewayHosts: (changed) =>
      onEach(networks.wantedHosts, 'wanted hosts of gateways')((host, wanted) => changed(host, wanted !== undefined)),
    onWantedKeySets: onEach(wantedKeySets, 'key sets'),
    onWantedCredentials: onEach(credentials.wanted, 'credentials'),
    onWantedSecretAccess: (changed) =>
      onEach(credentials.wantedAccess, 'secret access')((account, wanted) => changed(account, wanted === true)),
    verdictOf(key) {
      const found = conditions.find(({ kind }) => key.startsWith(problemsKey(kind, '')));
      return found?.verdicts.get(key.slice(problemsKey(found.kind, '').length));
    },
    onConditions(changed) {
      for (const { kind, verdicts } of conditions)
        onEach(verdicts, 'conditions')((key, after) => changed(problemsKey(kind, key), after));
    },
    proxies: proxies.resolved,
    isMade: (traits) => proxies.byTraits.get(traits) !== undefined,
    viewsOf(proxy) {
      const resolved = proxies.resolved.get(proxy.stream) ?? proxies.preview(proxy);
      return 'error' in resolved ? undefined : viewTraitsKey(resolved.scope.traits);
    },
    proxiesWith: (views) => proxies.byViewTraits.get(views)?.length ?? 0,
    preview: proxies.preview,
    portsOf(workload) {
      const ingress = sidecars.models.get(workload.sidecar)?.ingress.length ?? 0;
      const ports = Math.max(1, ingress, portsSelecting(workload, graph.present, services));
      return Math.min(ports, mostInboundPorts);
    },
    members: [...members, ...names],
    accessOf: (stream) => accessOf(stream, graph.present, { ...deps, targets: inbounds.targets }),
    gatewayAccessOf: (stream) => gateways.accessOf(stream, graph.present),
    proxyConfigsOf: (pod) => proxyConfigs.of(graph.present, pod),
    worldOf(stream) {
      const world = worlds.get(stream);
      return world === undefined || 'error' in world ? { roots: [], qualifiers: [] } : world;
    },
    publicationOf: (draft, of) =>
      publicationOf(
        draft,
        { members, scopes, views, lists: gateways.lists, worlds, names, nameLists: nameDemand.lists },
        of,
      ),
  };
}
