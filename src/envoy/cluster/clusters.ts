import type { EndpointSummary } from '../../model/endpoint.ts';
import type { ClusterSettings } from '../../model/mesh-config.ts';
import { mtlsUse, resolvePolicy } from '../../model/policy-resolution.ts';
import {
  isDns,
  isTls,
  type MeshService,
  outboundCluster,
  protocolClass,
  type ServicePort,
} from '../../model/service.ts';
import { sniCluster } from '../../model/service.ts';
import type { DestinationRuleModel, Subset, TrafficPolicy } from '../../model/traffic-policy.ts';
import type { ClusterTraits } from '../../model/traits.ts';
import type { Topology } from '../../model/topology.ts';
import { dnsEndpointsOf, withMtls } from '../../model/dns-endpoints.ts';
import { balancerFields, commonLbFields, outlierFields } from './balancer.ts';
import { dnsAssignment, dnsFields } from './dns.ts';
import { grpcCluster } from './grpc-clusters.ts';
import { poolFields } from './pool.ts';
import { portProtocol, protocolOptions, upstreamProtocol } from './protocol.ts';
import { dnsCacheOf } from '../dns-cache.ts';
import type { Cluster, Cluster_EdsClusterConfig } from '../gen/types.gen.ts';
import { configPath, istioMetadata } from '../istio-metadata.ts';
import { localityPlan } from '../../model/locality.ts';
import { any } from '../encode/proto.ts';
import { altStatName } from '../../model/stat-name.ts';
import { peerNames, type UpstreamTls, upstreamTls, withProxyProtocol } from '../tls/upstream.ts';
import { wrapped } from '../encode/values.ts';

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
export function buildClusters(input: ClustersInput): readonly Cluster[] {
  const { service, port, rule } = input;
  if (service.resolution === 'Alias' || protocolClass(port.protocol) === 'udp') return [];
  const subsets = service.resolution === 'DynamicDNS' ? [] : (rule?.subsets ?? []);
  return [undefined, ...subsets].flatMap((subset) => buildCluster(input, subset) ?? []);
}

/** What the parts of a cluster are made from. */
interface Parts extends ClustersInput {
  readonly name: string;
  readonly subset: Subset | undefined;
  readonly policy: TrafficPolicy;
  readonly passthrough: boolean;
}

function buildCluster(input: ClustersInput, subset: Subset | undefined): Cluster | undefined {
  const { service, port, rule, settings } = input;
  const subsetName = subset?.name ?? '';
  const { forwards = false } = input;
  const name = (forwards ? sniCluster : outboundCluster)(port.number, subsetName, service.host);
  const policy = resolvePolicy(rule, port.number, subset, settings);
  // The destination of a connection that is forwarded is the router itself.
  const passthrough = !forwards && isPassthrough(input, policy);
  const parts: Parts = { ...input, name, subset, policy, passthrough };
  if (input.traits.family === 'grpc') return grpcClusterOf(parts);
  return service.resolution === 'DynamicDNS' ? dynamicCluster(parts) : resolvedCluster(parts);
}

/** gRPC's own clients resolve a single name, and none of a request. */
function grpcClusterOf({ name, service, port, subset, policy, summary, settings }: Parts): Cluster | undefined {
  const shared = { name, policy, peerNames: peerNames(summary.identities, service.subjectAltNames, settings) };
  if (service.resolution === 'DynamicDNS')
    return canBeAnyHost(port) ? grpcCluster({ ...shared, endpoints: 'none' }) : undefined;
  if (!isDns(service)) return grpcCluster({ ...shared, endpoints: 'eds' });
  const [first, ...others] = dnsEndpointsOf(summary.dnsEndpoints, port, subset?.labels ?? {});
  return first && grpcCluster({ ...shared, endpoints: others.length > 0 ? 'none' : first });
}

function resolvedCluster(parts: Parts): Cluster | undefined {
  const { service, policy, settings } = parts;
  const plan = localityPlan(policy, service, settings);
  const discovery = discoveryFields(parts);
  if (discovery === undefined) return undefined;
  return {
    ...commonFields(parts, discovery.type === 'ORIGINAL_DST'),
    ...outlierFields(policy.outlierDetection),
    commonLbConfig: commonLbFields(policy, service, plan),
    ...(discovery.type === 'ORIGINAL_DST'
      ? { lbPolicy: 'CLUSTER_PROVIDED' }
      : balancerFields(policy.loadBalancer, plan)),
    ...discovery,
    metadata: metadataOf(parts, [service]),
  };
}

/** Envoy resolves the host of each request, so there are no endpoints to choose from. */
function dynamicCluster(parts: Parts): Cluster | undefined {
  const { service, port, traits, policy } = parts;
  if (!canBeAnyHost(port)) return undefined;
  const verifies = policy.tls?.insecureSkipVerify !== true;
  const type = 'envoy.extensions.clusters.dynamic_forward_proxy.v3.ClusterConfig';
  return {
    ...commonFields(parts, true),
    clusterType: {
      name: 'envoy.clusters.dynamic_forward_proxy',
      typedConfig: any(type, {
        dnsCacheConfig: dnsCacheOf(service.host, traits),
        ...(verifies ? {} : { allowInsecureClusterOptions: true }),
      }),
    },
    lbPolicy: 'CLUSTER_PROVIDED',
    metadata: metadataOf(parts, undefined),
  };
}

/** The request or connection says which host it is for. */
function canBeAnyHost({ protocol }: ServicePort): boolean {
  return protocolClass(protocol) === 'http' || isTls(protocol);
}

/** What every outbound cluster has. */
function commonFields(parts: Parts, originalDestination: boolean): Cluster {
  const { name, service, port, subset, policy, settings, traits } = parts;
  const { connectionPool: pool, outlierDetection, retryBudget } = policy;
  const protocol = upstreamProtocol(port, pool, settings, traits);
  const tls = parts.forwards === true ? {} : tlsOf(parts, protocol, originalDestination);
  const preserveHeaderCase =
    traits.preserveHeaderCase && (protocolClass(port.protocol) === 'http' || protocol === 'downstream');
  const { upstreamHttp, ...sockets } = tls;
  return {
    name,
    altStatName: altStatName(name, settings.outboundClusterStatName, { service, port, subset: subset?.name ?? '' }),
    ...poolFields(pool, retryBudget, settings),
    typedExtensionProtocolOptions: protocolOptions({
      protocol,
      pool,
      outlierDetection,
      upstreamHttp,
      anyHost: service.resolution === 'DynamicDNS' && policy.tls?.insecureSkipVerify !== true,
      preserveHeaderCase,
    }),
    ...sockets,
  };
}

function tlsOf(parts: Parts, protocol: ReturnType<typeof portProtocol>, originalDestination: boolean): UpstreamTls {
  const { service, port, subset, policy, settings, summary, traits } = parts;
  const tls = upstreamTls({
    tls: policy.tls,
    autoMtls: settings.enableAutoMtls && parts.peersAcceptMtls && !service.meshExternal && !sendsPlainText(parts),
    peerNames: peerNames(summary.identities, service.subjectAltNames, settings),
    meshSni: sniCluster(port.number, subset?.name ?? '', service.host),
    entryNames: service.registry === 'External' ? service.subjectAltNames : [],
    originalDestination,
    protocol,
    traits,
    settings,
  });
  return policy.proxyProtocol === undefined ? tls : withProxyProtocol(tls, policy.proxyProtocol);
}

/**
 * If the client chooses the endpoint, all endpoints must speak mutual TLS, because the cluster cannot treat any of
 * them differently. This depends on the policy written for the host or the subset, not on what that inherits.
 */
function sendsPlainText({ service, rule, subset, summary }: Parts): boolean {
  const written = (subset ?? rule)?.policy.loadBalancer?.simple;
  return (service.resolution === 'Passthrough' || written === 'PASSTHROUGH') && summary.plaintext;
}

/** PASSTHROUGH on the host also applies to its subsets. */
function isPassthrough({ rule, port, settings }: ClustersInput, policy: TrafficPolicy): boolean {
  const host = resolvePolicy(rule, port.number, undefined, settings);
  return [host, policy].some(
    (level) => level.loadBalancer?.simple === 'PASSTHROUGH' && !level.loadBalancer.consistentHash,
  );
}

/** How the cluster finds its endpoints; undefined if it cannot have any. */
function discoveryFields(parts: Parts): Pick<Cluster, 'type' | 'edsClusterConfig' | 'loadAssignment'> | undefined {
  const { name, service, port, traits, settings, passthrough } = parts;
  if (isDns(service)) {
    const use = mtlsUse(parts.rule, port.number, parts.subset);
    const { dnsEndpoints } = parts.summary;
    const loadAssignment = dnsAssignment({
      clusterName: name,
      service,
      endpoints: parts.forwards === true ? withMtls(dnsEndpoints, use) : dnsEndpoints,
      port,
      subsetLabels: parts.subset?.labels ?? {},
      plan: localityPlan(parts.policy, service, settings),
      mtls: traits.agent ? use : 'never',
      topology: parts.topology,
    });
    if (loadAssignment === undefined) return undefined;
    if (!passthrough) return { ...dnsFields(service, settings, traits), loadAssignment };
  }
  // Connections that are not redirected have no destination but the proxy.
  const isRedirected = traits.interception !== 'NONE' || service.registry === 'External';
  const chosenByClient = service.resolution === 'Passthrough' && traits.proxyType === 'sidecar' && isRedirected;
  if (!passthrough && !chosenByClient) return { type: 'EDS', edsClusterConfig: edsConfig(name) };
  // If only a rule asks for this, the client's destination is used as it is.
  return { type: 'ORIGINAL_DST', ...(chosenByClient ? portOverride(service, port) : {}) };
}

/** Envoy waits for the endpoints indefinitely, so a proxy never starts half configured. */
function edsConfig(serviceName: string): Cluster_EdsClusterConfig {
  return {
    serviceName,
    edsConfig: { ads: {}, resourceApiVersion: 'V3', initialFetchTimeout: { seconds: 0 } },
  };
}

/** A ServiceEntry without endpoints may say that its hosts listen on a different port from the one that clients use. */
function portOverride(service: MeshService, port: ServicePort): Pick<Cluster, 'originalDstLbConfig'> {
  const { targetPort } = port;
  if (service.registry !== 'External' || typeof targetPort !== 'number' || targetPort === port.number) return {};
  return { originalDstLbConfig: { upstreamPortOverride: wrapped(targetPort) } };
}

function metadataOf(parts: Parts, services: readonly MeshService[] | undefined): Cluster['metadata'] {
  const { service, rule, subset, policy } = parts;
  const originates = parts.forwards !== true && (policy.tls?.mode === 'SIMPLE' || policy.tls?.mode === 'MUTUAL');
  return istioMetadata({
    ...(services && { services: services.map(({ host, name, namespace }) => ({ host, name, namespace })) }),
    config: rule && configPath({ ...rule, kind: 'DestinationRule' }),
    subset: subset?.name,
    external: service.meshExternal ? true : undefined,
    alpn_override: originates ? 'false' : undefined,
  });
}
