import type { Discovery, GrpcCluster, OutboundCluster, SettledCluster } from '../model/cluster.ts';
import { dnsEndpointsOf, withMtls } from '../model/dns-endpoints.ts';
import type { EndpointSummary } from '../model/endpoint.ts';
import type { ClusterSettings } from '../model/mesh-config.ts';
import { mtlsUse, resolvePolicy, sendsUnhealthy } from '../model/policy-resolution.ts';
import {
  isDns,
  isTls,
  type MeshService,
  outboundCluster,
  protocolClass,
  type ServicePort,
  sniCluster,
} from '../model/service.ts';
import type { Topology } from '../model/topology.ts';
import type { DestinationRuleModel, Subset, TrafficPolicy } from '../model/traffic-policy.ts';
import type { ClusterTraits } from '../model/traits.ts';
import { resolvesOneName, settleDnsEndpoints } from './dns-assignment.ts';
import { localityPlan, weighsLocalities } from './locality-plan.ts';
import { speaksHttp1, upstreamProtocol } from './upstream-protocol.ts';
import { peerNames, upstreamSockets } from './upstream-sockets.ts';

export interface ClustersInput {
  readonly service: MeshService;
  /** One of the service's ports. */
  readonly port: ServicePort;
  /** The rule that the client uses for the service. */
  readonly rule?: DestinationRuleModel | undefined;
  readonly traits: ClusterTraits;
  readonly settings: ClusterSettings;
  readonly summary: EndpointSummary;
  /** PeerAuthentications let at least some of the workloads accept mutual TLS. */
  readonly peersAcceptMtls: boolean;
  /** Needed for DNS services if the policy considers locality: their endpoints are part of the cluster. */
  readonly topology?: Topology | undefined;
  /** For AUTO_PASSTHROUGH servers: named as their clients' SNI, and without TLS, because what is forwarded is TLS. */
  readonly forwards?: boolean;
}

/** The clusters for one port of a service: its own, and one per subset. */
export function settleClusters(input: ClustersInput): readonly SettledCluster[] {
  const { service, port, rule } = input;
  if (service.resolution === 'Alias' || protocolClass(port.protocol) === 'udp') return [];
  const subsets = service.resolution === 'DynamicDNS' ? [] : (rule?.subsets ?? []);
  return [undefined, ...subsets].flatMap((subset) => settleCluster(input, subset) ?? []);
}

/** A cluster, and what decides about it. */
interface Subject extends ClustersInput {
  readonly name: string;
  readonly subset: Subset | undefined;
  readonly policy: TrafficPolicy;
}

/** Undefined if it cannot have endpoints. */
function settleCluster(input: ClustersInput, subset: Subset | undefined): SettledCluster | undefined {
  const { service, port, rule, settings, forwards = false } = input;
  const name = (forwards ? sniCluster : outboundCluster)(port.number, subset?.name ?? '', service.host);
  const subject = { ...input, name, subset, policy: resolvePolicy(rule, port.number, subset, settings) };
  return input.traits.family === 'grpc' ? grpcCluster(subject) : outbound(subject);
}

/** gRPC's own clients resolve a single name, and none of a request. */
function grpcCluster({ name, service, port, subset, policy, summary, settings }: Subject): GrpcCluster | undefined {
  const { tls } = policy;
  const endpoints = (): GrpcCluster['endpoints'] | undefined => {
    if (service.resolution === 'DynamicDNS') return canBeAnyHost(port) ? 'none' : undefined;
    if (!isDns(service)) return 'assignment';
    const [first, ...others] = dnsEndpointsOf(summary.dnsEndpoints, port, subset?.labels ?? {});
    return others.length > 0 ? 'none' : first;
  };
  const found = endpoints();
  if (found === undefined) return undefined;
  // They have no certificates but those of the mesh, and only speak mutual TLS where a rule says so.
  if (tls === undefined || tls.mode === 'DISABLE') return { family: 'grpc', name, policy, endpoints: found };
  // Where TLS is asked for that they cannot speak, nothing is sent in plaintext.
  if (tls.mode !== 'ISTIO_MUTUAL') return { family: 'grpc', name, policy, endpoints: 'none' };
  const names =
    tls.subjectAltNames.length > 0
      ? tls.subjectAltNames
      : peerNames(summary.identities, service.subjectAltNames, settings);
  return { family: 'grpc', name, policy, endpoints: found, mtls: { sni: tls.sni, names } };
}

function outbound(subject: Subject): OutboundCluster | undefined {
  const { name, service, port, subset, rule, policy, settings, traits, forwards = false } = subject;
  const discovery = discoveryOf(subject);
  if (discovery === undefined) return undefined;
  const protocol = upstreamProtocol(port, policy.connectionPool, settings, traits);
  return {
    family: 'envoy',
    name,
    service,
    port,
    subset: subset?.name,
    rule,
    policy,
    protocol,
    preservesHeaderCase: traits.preserveHeaderCase && speaksHttp1(port, protocol),
    discovery,
    ...(discovery.kind !== 'dynamicDns' && {
      balancing: {
        // Envoy's panic mode sends requests to endpoints that are not ready, so it is off unless a rule asks for it.
        panicThreshold: sendsUnhealthy(policy, service) ? 0 : (policy.outlierDetection?.minHealthPercent ?? 0),
        weighsLocalities: weighsLocalities(localityPlan(policy, service, settings)),
      },
    }),
    ...(forwards ? asTheyCome : connectionsOf(subject, discovery)),
  };
}

function discoveryOf(subject: Subject): Discovery | undefined {
  const { service, port, traits, policy } = subject;
  if (service.resolution === 'DynamicDNS') {
    // Envoy resolves the host of each request, so there are no endpoints to choose from.
    if (!canBeAnyHost(port)) return undefined;
    return { kind: 'dynamicDns', bindsCertificate: policy.tls?.insecureSkipVerify !== true };
  }
  const passthrough = isPassthrough(subject);
  if (isDns(service)) {
    const localities = dnsLocalities(subject);
    // Envoy rejects a cluster without any.
    if (localities.length === 0) return undefined;
    if (!passthrough) return { kind: 'dns', localities, oneName: resolvesOneName(service) };
  }
  // Connections that are not redirected have no destination but the proxy.
  const isRedirected = traits.interception !== 'NONE' || service.registry === 'External';
  const chosenByClient = service.resolution === 'Passthrough' && traits.proxyType === 'sidecar' && isRedirected;
  // If only a rule asks for this, the client's destination is used as it is.
  if (chosenByClient) return { kind: 'originalDestination', port: overridingPort(service, port) };
  return passthrough ? { kind: 'originalDestination' } : { kind: 'assignment' };
}

function dnsLocalities(subject: Subject): ReturnType<typeof settleDnsEndpoints> {
  const { service, port, rule, subset, policy, settings, traits, topology } = subject;
  const use = mtlsUse(rule, port.number, subset);
  const { dnsEndpoints } = subject.summary;
  return settleDnsEndpoints({
    service,
    endpoints: subject.forwards === true ? withMtls(dnsEndpoints, use) : dnsEndpoints,
    port,
    subsetLabels: subset?.labels ?? {},
    plan: localityPlan(policy, service, settings),
    mtls: traits.agent ? use : 'never',
    topology,
  });
}

/** A ServiceEntry without endpoints may say that its hosts listen on a different port from the one that clients use. */
function overridingPort({ registry }: MeshService, { targetPort, number }: ServicePort): number | undefined {
  return registry === 'External' && typeof targetPort === 'number' && targetPort !== number ? targetPort : undefined;
}

/** The request or connection says which host it is for. */
function canBeAnyHost({ protocol }: ServicePort): boolean {
  return protocolClass(protocol) === 'http' || isTls(protocol);
}

/** PASSTHROUGH on the host also applies to its subsets. */
function isPassthrough({ rule, port, subset, settings, policy, forwards }: Subject): boolean {
  // The destination of a connection that is forwarded is the router itself.
  if (forwards === true) return false;
  if (asksForPassthrough(policy)) return true;
  return subset !== undefined && asksForPassthrough(resolvePolicy(rule, port.number, undefined, settings));
}

function asksForPassthrough({ loadBalancer }: TrafficPolicy): boolean {
  return loadBalancer?.simple === 'PASSTHROUGH' && !loadBalancer.consistentHash;
}

type Connections = Pick<OutboundCluster, 'sockets' | 'proxyProtocol' | 'originatesTls'>;

/** What is forwarded is TLS already. */
const asTheyCome: Connections = { sockets: { kind: 'plaintext' }, originatesTls: false };

function connectionsOf(subject: Subject, { kind }: Discovery): Connections {
  const { service, port, subset, policy, settings, summary, traits } = subject;
  const { tls, proxyProtocol } = policy;
  const sockets = upstreamSockets({
    tls,
    autoMtls: settings.enableAutoMtls && subject.peersAcceptMtls && !service.meshExternal && !sendsPlainText(subject),
    peerNames: peerNames(summary.identities, service.subjectAltNames, settings),
    meshSni: sniCluster(port.number, subset?.name ?? '', service.host),
    entryNames: service.registry === 'External' ? service.subjectAltNames : [],
    hasMarks: kind === 'assignment' || kind === 'dns',
    traits,
  });
  return { sockets, proxyProtocol, originatesTls: tls?.mode === 'SIMPLE' || tls?.mode === 'MUTUAL' };
}

/**
 * If the client chooses the endpoint, all endpoints must speak mutual TLS, because the cluster cannot treat any of
 * them differently. This depends on the policy written for the host or the subset, not on what that inherits.
 */
function sendsPlainText({ service, rule, subset, summary }: Subject): boolean {
  const written = (subset ?? rule)?.policy.loadBalancer?.simple;
  return (service.resolution === 'Passthrough' || written === 'PASSTHROUGH') && summary.plaintext;
}
