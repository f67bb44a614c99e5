import type { FixedCluster } from '../../model/cluster.ts';
import type { ClusterSettings } from '../../model/mesh-config.ts';
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
import { connectAddress, socketAddress } from '../encode/wrappers.ts';

/** A cluster that proxies have whatever the mesh contains. */
export function buildFixedCluster(settled: FixedCluster, traits: Traits, settings: ClusterSettings): Cluster {
  switch (settled.kind) {
    case 'grpcBlackHole':
      return grpcBlackHole;
    case 'blackHole':
      return {
        name: blackHoleCluster,
        altStatName: `${blackHoleCluster};`,
        type: 'STATIC',
        connectTimeout: duration(settings.connectTimeout),
      };
    case 'passthrough':
      return { ...originalDestination(settings), name: passthroughCluster };
    case 'inboundPassthrough': {
      const upstreamBindConfig = bindOriginalDestination(traits);
      return { ...originalDestination(settings), name: inboundPassthroughCluster, upstreamBindConfig };
    }
    case 'unknownHosts':
      return unknownHosts(settled, traits, settings);
    case 'secretProvider':
      return secretsOfSocket(settings);
  }
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
function unknownHosts(
  { sockets, bindsCertificate }: FixedCluster & { kind: 'unknownHosts' },
  traits: Traits,
  settings: ClusterSettings,
): Cluster {
  const { transportSocket, upstreamHttp } = upstreamTls(sockets, { protocol: 'downstream', traits, settings });
  const type = 'envoy.extensions.clusters.dynamic_forward_proxy.v3.ClusterConfig';
  return {
    name: dynamicDnsCluster,
    altStatName: `${dynamicDnsCluster};`,
    lbPolicy: 'CLUSTER_PROVIDED',
    clusterType: {
      name: 'envoy.clusters.dynamic_forward_proxy',
      typedConfig: any(type, {
        dnsCacheConfig: unknownHostsCache(traits),
        ...(bindsCertificate ? {} : { allowInsecureClusterOptions: true }),
      }),
    },
    ...poolFields(settings.defaultTrafficPolicy?.connectionPool, undefined, settings),
    typedExtensionProtocolOptions: downstreamProtocol(
      bindsCertificate ? { autoSni: true, autoSanValidation: true } : upstreamHttp,
    ),
    ...(transportSocket && { transportSocket }),
  };
}

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
