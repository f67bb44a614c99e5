import type { HasProblems } from './api/problem.ts';
import type { Collection, Draft, Graph } from './cache/graph.ts';
import type { Publication, World } from './ads/store/publication.ts';
import type { Encoder } from './envoy/encode/encoder.ts';
import { declareApiListeners } from './mesh/resources/api-listeners.ts';
import { declareClusters } from './mesh/resources/clusters.ts';
import type { AddressClaim } from './model/address-claim.ts';
import type { WantedKeySet } from './mesh/findings/key-sets.ts';
import type { Labels } from './model/labels.ts';
import type { ProxyConfigsOfPod } from './model/proxy-config.ts';
import type { MeshService } from './model/service.ts';
import type { GatewayAccess } from './judge/gateway.ts';
import type { WorkloadAccess } from './judge/judge.ts';
import { declareConditions } from './mesh/findings/conditions.ts';
import { declarePolicyFindings } from './mesh/findings/policy-findings.ts';
import { declareConflicts } from './mesh/findings/conflicts.ts';
import { type ServiceEndpoints, declareEndpoints } from './mesh/objects/endpoints.ts';
import { declareGlobalServices } from './mesh/objects/global-services.ts';
import { declareGateways } from './mesh/gateways/gateways.ts';
import { type Inputs, declareInputs } from './mesh/inputs.ts';
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
import { type Problems, declareProblems } from './mesh/findings/problems.ts';
import { accessOf } from './mesh/resources/access.ts';
import { type ResolvedProxy, declareProxies } from './mesh/clients/proxies.ts';
import { declareSelectedNames, declareWorkloadClasses } from './mesh/clients/workload-classes.ts';
import { declareWorkloadPolicies, policySelectors } from './mesh/clients/workload-policies.ts';
import { declareWorlds } from './mesh/clients/worlds.ts';
import { type RolloutsOf, publicationOf, trackPublished } from './mesh/publication.ts';
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
import { declareSettings } from './mesh/settings.ts';
import { declareSizeLimits } from './mesh/findings/size-limits.ts';
import { declareTrustDomains } from './mesh/objects/trust-domains.ts';
import { declareWorkloads } from './mesh/objects/workloads.ts';
import { type RouteFrontEnd, declareRouteBindings } from './mesh/objects/route-bindings.ts';
import { type PatchFrontEnd, declarePatchSources } from './mesh/objects/patch-sources.ts';
import { declarePatches } from './mesh/clients/patch-sets.ts';
import { declareRouteHosts } from './mesh/clients/route-hosts.ts';
import { failedPatches } from './mesh/resources/patching.ts';
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
import { declareVirtualServiceFindings } from './mesh/virtual-services/findings.ts';
import { declareVirtualServices } from './mesh/virtual-services/virtual-services.ts';
import { type MeshClusters, meshClusters } from './mesh/clusters.ts';
import { type ProxyClasses, proxyClasses } from './mesh/proxy-classes.ts';
import { type Verdicts, verdictsOf } from './mesh/verdicts.ts';

/** The map of the system: every collection and edge between objects and what proxies get. */
export interface Mesh {
  readonly graph: Graph;
  readonly inputs: Inputs;
  readonly wanted: Wanted;
  readonly services: Collection<MeshService>;
  readonly endpoints: Pick<ServiceEndpoints, 'lists' | 'held'>;
  readonly clusters: MeshClusters;
  readonly proxies: Collection<ResolvedProxy>;
  readonly classes: ProxyClasses;
  readonly access: RequestAccess;
  /** The ProxyConfigs for a Pod with these labels. */
  proxyConfigsOf(pod: { readonly namespace: string; readonly labels: Labels }): ProxyConfigsOfPod;
  readonly problems: MeshProblems;
  readonly verdicts: Verdicts;
  /** Every resource, once per list that contains it. */
  readonly members: readonly Members[];
  /** What a connected proxy can reach; empty if it is unknown or was not accepted. */
  worldOf(stream: string): World;
  /** What a commit changes in the ADS store. `of`: absent if nobody waits for acknowledgements. */
  publicationOf(draft: Draft, of?: RolloutsOf): Publication;
}

/** What the graph asks the world for; each is answered into an input. */
export interface Wanted {
  /** Public keys of token issuers, by `keySetKey`: `keySets`. */
  readonly keySets: Collection<WantedKeySet>;
  /** Names of gateways between networks: `gatewayAddresses`. */
  readonly gatewayHosts: Collection<true>;
  /** Secrets and ConfigMaps, by `CredentialKey`: `credentials`. */
  readonly credentials: Collection<WantedCredential>;
  /** Service accounts whose right to have Secrets must be known, by `AccountKey`: `secretAccess`. */
  readonly secretAccess: Collection<true>;
  /** Automatic addresses of ServiceEntries, by object: their status, or `allocated` for files. */
  readonly addresses: Collection<AddressClaim>;
}

export interface MeshProblems extends Problems {
  /** Listeners for which TCP services compete. */
  readonly listenerConflicts: Collection<HasProblems>;
}

/** What decides about requests to a connected proxy; undefined for others. */
export interface RequestAccess {
  atSidecar(stream: string): WorkloadAccess | undefined;
  atGateway(stream: string): GatewayAccess | undefined;
}

/** What kinds of objects besides Istio's mean. */
export interface FrontEnds {
  /** With routes: for the same host, these win over VirtualServices. */
  readonly routes?: (graph: Graph) => readonly RouteFrontEnd[];
  /** That change what is generated, the first before the others. */
  readonly patches?: (graph: Graph) => readonly PatchFrontEnd[];
}

export function buildMesh(graph: Graph, encoder: Encoder, others: FrontEnds = {}): Mesh {
  const objects = declareObjects(graph);
  const clients = declareClients(graph, objects, others);
  const resources = declareResources(graph, { ...clients, encoder });
  const { problems, verdicts } = declareFindings(graph, resources);
  const { inputs, services, credentials, inbounds, gateways, proxies } = resources;
  const published = publish(resources);
  return {
    graph,
    inputs,
    wanted: {
      keySets: resources.wantedKeySets,
      gatewayHosts: objects.networks.wantedHosts,
      credentials: credentials.wanted,
      secretAccess: credentials.wantedAccess,
      addresses: services.addressClaims,
    },
    services: services.services,
    endpoints: objects.endpoints,
    clusters: meshClusters(graph, resources),
    proxies: proxies.resolved,
    classes: proxyClasses(graph, resources),
    access: {
      atSidecar: (stream) => accessOf(stream, graph.present, { ...resources, targets: inbounds.targets }),
      atGateway: (stream) => gateways.accessOf(stream, graph.present),
    },
    proxyConfigsOf: (pod) => objects.proxyConfigs.of(graph.present, pod),
    problems,
    verdicts,
    ...published,
  };
}

/** What users write, and what it means. */
function declareObjects(graph: Graph) {
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
  return {
    inputs,
    settings,
    networks,
    trustDomains,
    workloads,
    services,
    policies,
    peerModes,
    endpoints,
    global,
    rules,
    virtualServices,
    sidecars,
    proxyConfigs,
  };
}

type MeshObjects = ReturnType<typeof declareObjects>;

/** Who asks, and what they share. */
function declareClients(graph: Graph, meant: MeshObjects, others: FrontEnds) {
  const { inputs, settings, services, rules, virtualServices, sidecars } = meant;
  const bindings = declareRouteBindings(graph, [...(others.routes?.(graph) ?? []), virtualServices.frontEnd]);
  const patchSources = declarePatchSources(graph, others.patches?.(graph) ?? []);
  const selectors = declareSelectors(graph, services, rules, bindings);
  const coveredServices = declareCoveredServices(graph, services);
  const audiences = declareAudiences(graph, inputs, services, rules, bindings, coveredServices);
  const priorityLabels = declarePriorityLabels(graph, settings, services, rules);
  const routeHosts = declareRouteHosts(graph, services, bindings);
  const objects = { ...meant, bindings, coveredServices, routeHosts };
  const selectedNames = declareSelectedNames(graph, services, policySelectors(graph, objects));
  const proxies = declareProxies(graph, { ...objects, selectedNames, selectors, priorityLabels, patchSources });
  const patches = declarePatches(graph, patchSources, services, proxies.byPatches);
  const workloadClasses = declareWorkloadClasses(graph, services, proxies.byWorkload, (proxy) =>
    'error' in proxy ? undefined : proxy.workload,
  );
  const workloadPolicies = declareWorkloadPolicies(graph, workloadClasses, objects);
  const worlds = declareWorlds(graph, { inputs, proxies, workloadClasses });
  const namespaces = declareNamespaces(graph, { ...objects, selectors, audiences });
  const scopes = declareScopes(graph, { proxies, sidecars, namespaces, patches });
  const views = declareViews(graph, { ...objects, namespaces, scopes, patches });
  const portsByRoutes = declarePortsByRoutes(graph, views, objects);
  const routesOfView = declareRoutesOfView(graph, { ...objects, views, portsByRoutes, patches });
  const destinationViews = declareDestinationViews(graph, { ...objects, scopes, views, patches });
  return {
    ...objects,
    patches,
    proxies,
    workloadClasses,
    workloadPolicies,
    worlds,
    scopes,
    views,
    portsByRoutes,
    routesOfView,
    destinationViews,
  };
}

/** What proxies get. */
function declareResources(graph: Graph, clients: ReturnType<typeof declareClients> & { readonly encoder: Encoder }) {
  const { inputs, workloadPolicies } = clients;
  const securityFilters = declareSecurityFilters(graph, { ...clients, policySets: workloadPolicies.sets });
  const deps = { ...clients, securityFilters };
  const gateways = declareGateways(graph, deps);
  const credentials = declareCredentials(graph, { ...deps, gateways: gateways.models, routers: gateways.routers });
  const clusters = declareClusters(graph, deps, gateways.forwarded);
  const inbounds = declareInbounds(graph, deps);
  const routeTables = declareRouteTables(graph, deps);
  const members: readonly Members[] = [
    ...clusters.members,
    ...declareOutboundListeners(graph, deps),
    inbounds.members,
    ...declareGrpcServers(graph, inbounds.targets, { ...deps, policySets: workloadPolicies.sets }),
    ...routeTables.members,
    declareApiListeners(graph, deps),
    ...gateways.members,
    declareSecrets(graph, credentials, deps),
    declareTrustBundle(graph, inputs),
  ];
  const nameDemand = declareNameDemand(graph, deps);
  const names = declareNames(graph, nameDemand, deps);
  const wantedKeySets = declareWantedKeySets(graph, clients.policies);
  return { ...deps, gateways, credentials, clusters, inbounds, routeTables, members, nameDemand, names, wantedKeySets };
}

type MeshResources = ReturnType<typeof declareResources>;

/** What is put into the ADS store. */
function publish(deps: MeshResources): Pick<Mesh, 'members' | 'worldOf' | 'publicationOf'> {
  const { members, scopes, views, gateways, worlds, names, nameDemand } = deps;
  const published = { members, scopes, views, lists: gateways.lists, worlds, names, nameLists: nameDemand.lists };
  trackPublished(published);
  return {
    members: [...members, ...names],
    worldOf(stream) {
      const world = worlds.get(stream);
      return world === undefined || 'error' in world ? { roots: [], qualifiers: [] } : world;
    },
    publicationOf: (draft, of) => publicationOf(draft, published, of),
  };
}

/** What owners of objects are told. */
function declareFindings(graph: Graph, deps: MeshResources): Pick<Mesh, 'problems' | 'verdicts'> {
  const { inputs, settings, networks, trustDomains, workloads, services, endpoints, rules } = deps;
  const { virtualServices, sidecars, proxyConfigs, policies, bindings } = deps;
  const { gateways, credentials, clusters, inbounds, routeTables } = deps;
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
    ...bindings.problems,
    ...(deps.patches?.sources.problems ?? []),
    ...routeTables.problems,
    ...(deps.patches === undefined ? [] : deps.members.map((members) => failedPatches(graph, members))),
    sidecars.parsed,
    proxyConfigs.parsed,
    proxyConfigs.conflicts,
    policies.peers.parsed,
    policies.requests.parsed,
    policies.authorization.parsed,
    ...declareVirtualServiceFindings(graph, virtualServices, gateways.models, deps),
    ...declareReferences(graph, deps),
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

  const verdicts = declareConditions(graph, inputs, problems, {
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
  return { problems: { ...problems, listenerConflicts }, verdicts: verdictsOf(graph, verdicts) };
}
