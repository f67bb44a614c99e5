import type { Discovery, OutboundCluster, SettledCluster } from '../../model/cluster.ts';
import type { ClusterSettings } from '../../model/mesh-config.ts';
import { altStatName } from '../../model/stat-name.ts';
import type { ClusterTraits } from '../../model/traits.ts';
import { dnsCacheOf } from '../dns-cache.ts';
import { any } from '../encode/proto.ts';
import { wrapped } from '../encode/wrappers.ts';
import type { Cluster } from '../gen/types.gen.ts';
import { configPath, istioMetadata } from '../istio-metadata.ts';
import { upstreamTls, withProxyProtocol } from '../tls/upstream.ts';
import { balancerFields, commonLbFields, outlierFields } from './balancer.ts';
import { dnsAssignment, dnsFields } from './dns.ts';
import { grpcCluster } from './grpc-clusters.ts';
import { poolFields } from './pool.ts';
import { protocolOptions } from './protocol.ts';

/** A cluster for a port of a service, or for a subset of its endpoints. */
export function buildCluster(settled: SettledCluster, traits: ClusterTraits, settings: ClusterSettings): Cluster {
  if (settled.family === 'grpc') return grpcCluster(settled);
  const { discovery, balancing, policy, service } = settled;
  return {
    ...commonFields(settled, traits, settings),
    ...(balancing && {
      ...outlierFields(policy.outlierDetection),
      commonLbConfig: commonLbFields(balancing, policy, service),
    }),
    ...(discovery.kind === 'assignment' || discovery.kind === 'dns'
      ? balancerFields(policy.loadBalancer, balancing?.weighsLocalities)
      : { lbPolicy: 'CLUSTER_PROVIDED' }),
    ...discoveryFields(settled, discovery, traits, settings),
    metadata: metadataOf(settled),
  };
}

/** What every outbound cluster has. */
function commonFields(settled: OutboundCluster, traits: ClusterTraits, settings: ClusterSettings): Cluster {
  const { name, service, port, subset = '', policy, protocol, preservesHeaderCase, discovery } = settled;
  const { connectionPool: pool, outlierDetection, retryBudget } = policy;
  const tls = upstreamTls(settled.sockets, { protocol, traits, settings });
  const { upstreamHttp, ...sockets } =
    settled.proxyProtocol === undefined ? tls : withProxyProtocol(tls, settled.proxyProtocol);
  return {
    name,
    altStatName: altStatName(name, settings.outboundClusterStatName, { service, port, subset }),
    ...poolFields(pool, retryBudget, settings),
    typedExtensionProtocolOptions: protocolOptions({
      protocol,
      pool,
      outlierDetection,
      upstreamHttp,
      anyHost: discovery.kind === 'dynamicDns' && discovery.bindsCertificate,
      preserveHeaderCase: preservesHeaderCase,
    }),
    ...sockets,
  };
}

/** How the cluster finds its endpoints. */
function discoveryFields(
  { name, service }: OutboundCluster,
  discovery: Discovery,
  traits: ClusterTraits,
  settings: ClusterSettings,
): Cluster {
  switch (discovery.kind) {
    case 'assignment':
      // Envoy waits for the endpoints indefinitely, so a proxy never starts half configured.
      return {
        type: 'EDS',
        edsClusterConfig: {
          serviceName: name,
          edsConfig: { ads: {}, resourceApiVersion: 'V3', initialFetchTimeout: { seconds: 0 } },
        },
      };
    case 'originalDestination': {
      const { port } = discovery;
      return {
        type: 'ORIGINAL_DST',
        ...(port !== undefined && { originalDstLbConfig: { upstreamPortOverride: wrapped(port) } }),
      };
    }
    case 'dns': {
      const { localities, oneName } = discovery;
      return { ...dnsFields(service, oneName, settings, traits), loadAssignment: dnsAssignment(name, localities) };
    }
    case 'dynamicDns': {
      const type = 'envoy.extensions.clusters.dynamic_forward_proxy.v3.ClusterConfig';
      const typedConfig = any(type, {
        dnsCacheConfig: dnsCacheOf(service.host, traits),
        ...(discovery.bindsCertificate ? {} : { allowInsecureClusterOptions: true }),
      });
      return { clusterType: { name: 'envoy.clusters.dynamic_forward_proxy', typedConfig } };
    }
  }
}

function metadataOf({ service, rule, subset, originatesTls, discovery }: OutboundCluster): Cluster['metadata'] {
  const { host, name, namespace } = service;
  return istioMetadata({
    ...(discovery.kind !== 'dynamicDns' && { services: [{ host, name, namespace }] }),
    config: rule && configPath({ ...rule, kind: 'DestinationRule' }),
    subset,
    external: service.meshExternal ? true : undefined,
    alpn_override: originatesTls ? 'false' : undefined,
  });
}
