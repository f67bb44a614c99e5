import type { ClusterSettings, OutboundPolicy } from '../../model/mesh-config.ts';
import {
  blackHoleCluster,
  dynamicDnsCluster,
  inboundPassthroughCluster,
  passthroughCluster,
} from '../../model/cluster-names.ts';
import { socketProvider } from '../../model/credential.ts';
import type { Traits } from '../../model/traits.ts';
import { grpcBlackHole } from './grpc-clusters.ts';
import { poolFields } from './pool.ts';
import { unknownHostsCache } from '../dns-cache.ts';
import { duration } from '../duration.ts';
import { upstreamTls } from '../tls/upstream.ts';
import type { Any, BindConfig, Cluster, UpstreamHttpProtocolOptions } from '../gen/types.gen.ts';
import { any } from '../encode/proto.ts';
import { types } from '../encode/proto-types.ts';
import { connectAddress, socketAddress } from '../encode/values.ts';

export interface FixedClustersInput {
  readonly traits: Traits;
  readonly settings: ClusterSettings;
  /** From the Sidecar, or else from the mesh. */
  readonly outboundPolicy: OutboundPolicy;
}

/** The clusters that every proxy of a kind has, whatever the mesh contains. */
export function fixedClusters({ traits, settings, outboundPolicy }: FixedClustersInput): readonly Cluster[] {
  const blackHole = {
    name: blackHoleCluster,
    altStatName: `${blackHoleCluster};`,
    type: 'STATIC',
    connectTimeout: duration(settings.connectTimeout),
  } as const;
  if (traits.family === 'grpc') return [grpcBlackHole];
  const socket = traits.credentialSocket ? [secretsOfSocket(settings)] : [];
  if (traits.proxyType === 'router') return [blackHole, ...socket];
  const passthrough = originalDestination(settings);
  return [
    blackHole,
    { ...passthrough, name: passthroughCluster },
    ...(outboundPolicy === 'ALLOW_ANY_DYNAMIC_DNS' ? [unknownHosts(traits, settings)] : []),
    { ...passthrough, name: inboundPassthroughCluster, upstreamBindConfig: bindOriginalDestination(traits) },
    ...socket,
  ];
}

/** Where Istio's agent finds a provider of secrets, from where the proxy is started. */
const credentialSocketPath = './var/run/secrets/credential-uds/socket';

function secretsOfSocket({ connectTimeout }: ClusterSettings): Cluster {
  const name = socketProvider.cluster;
  const lbEndpoints = [{ endpoint: { address: connectAddress(credentialSocketPath, 0) } }];
  return {
    name,
    type: 'STATIC',
    connectTimeout: duration(connectTimeout),
    loadAssignment: { clusterName: name, endpoints: [{ lbEndpoints }] },
    typedExtensionProtocolOptions: {
      [types.httpProtocolOptions]: any(types.httpProtocolOptions, {
        explicitHttpConfig: { http2ProtocolOptions: {} },
      }),
    },
  };
}

/**
 * Connections from the proxy to the workload use a source address that the interception rules know. Otherwise they
 * would be sent back to the proxy.
 */
export function bindInbound({ ipFamily }: Pick<Traits, 'ipFamily'>): BindConfig {
  return { sourceAddress: socketAddress(ipFamily === 'v6' ? '::6' : '127.0.0.6', 0) };
}

/** For connections that go to wherever they were meant for, by either family. */
export function bindOriginalDestination(traits: Pick<Traits, 'ipFamily'>): BindConfig {
  const bind = bindInbound(traits);
  return traits.ipFamily === 'dual' ? { ...bind, extraSourceAddresses: [{ address: socketAddress('::6', 0) }] } : bind;
}

const passthroughIdleMs = 300_000;

/** Istio's statistics count both passthrough clusters under one name. */
function originalDestination(settings: ClusterSettings): Cluster {
  return {
    altStatName: `${passthroughCluster};`,
    type: 'ORIGINAL_DST',
    lbPolicy: 'CLUSTER_PROVIDED',
    ...poolFields(settings.defaultTrafficPolicy?.connectionPool, undefined, settings),
    typedExtensionProtocolOptions: downstreamProtocol(),
  };
}

/** Resolves the host of each request that no object names. Source: Istio's AllowAnyDynamicDNSCluster. */
function unknownHosts(traits: Traits, settings: ClusterSettings): Cluster {
  const { unknownHostsTls: tls } = settings;
  const sockets = upstreamTls({ tls, ...ofNobody, traits, settings });
  // Envoy wants to bind certificates to the host of the request, or to be told that nobody does.
  const verifies = sockets.transportSocket !== undefined && tls?.insecureSkipVerify === false;
  const type = 'envoy.extensions.clusters.dynamic_forward_proxy.v3.ClusterConfig';
  return {
    name: dynamicDnsCluster,
    altStatName: `${dynamicDnsCluster};`,
    lbPolicy: 'CLUSTER_PROVIDED',
    clusterType: {
      name: 'envoy.clusters.dynamic_forward_proxy',
      typedConfig: any(type, {
        dnsCacheConfig: unknownHostsCache(traits),
        ...(verifies ? {} : { allowInsecureClusterOptions: true }),
      }),
    },
    ...poolFields(settings.defaultTrafficPolicy?.connectionPool, undefined, settings),
    typedExtensionProtocolOptions: downstreamProtocol(
      verifies ? { autoSni: true, autoSanValidation: true } : sockets.upstreamHttp,
    ),
    ...(sockets.transportSocket && { transportSocket: sockets.transportSocket }),
  };
}

/** What services say of their peers. */
const ofNobody = {
  autoMtls: false,
  peerNames: [],
  meshSni: '',
  entryNames: [],
  originalDestination: true,
  protocol: 'downstream',
} as const;

function downstreamProtocol(upstreamHttpProtocolOptions?: UpstreamHttpProtocolOptions): {
  readonly [name: string]: Any;
} {
  return {
    [types.httpProtocolOptions]: any(types.httpProtocolOptions, {
      commonHttpProtocolOptions: { idleTimeout: duration(passthroughIdleMs) },
      upstreamHttpProtocolOptions,
      useDownstreamProtocolConfig: { httpProtocolOptions: {}, http2ProtocolOptions: {} },
    }),
  };
}
