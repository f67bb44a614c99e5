import type { ClusterSettings } from '../../model/mesh-config.ts';
import { blackHoleCluster, inboundPassthroughCluster, passthroughCluster } from '../../model/cluster-names.ts';
import type { Traits } from '../../model/traits.ts';
import { grpcBlackHole } from './grpc-clusters.ts';
import { poolFields } from './pool.ts';
import { duration } from '../duration.ts';
import type { BindConfig, Cluster } from '../gen/types.gen.ts';
import { any } from '../encode/proto.ts';
import { types } from '../encode/proto-types.ts';
import { socketAddress } from '../encode/values.ts';

export interface FixedClustersInput {
  readonly traits: Traits;
  readonly settings: ClusterSettings;
}

/** The clusters that every proxy of a kind has, whatever the mesh contains. */
export function fixedClusters({ traits, settings }: FixedClustersInput): readonly Cluster[] {
  const blackHole = {
    name: blackHoleCluster,
    altStatName: `${blackHoleCluster};`,
    type: 'STATIC',
    connectTimeout: duration(settings.connectTimeout),
  } as const;
  if (traits.family === 'grpc') return [grpcBlackHole];
  if (traits.proxyType === 'router') return [blackHole];
  const passthrough = originalDestination(settings);
  return [
    blackHole,
    { ...passthrough, name: passthroughCluster },
    { ...passthrough, name: inboundPassthroughCluster, upstreamBindConfig: bindOriginalDestination(traits) },
  ];
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
    typedExtensionProtocolOptions: {
      [types.httpProtocolOptions]: any(types.httpProtocolOptions, {
        commonHttpProtocolOptions: { idleTimeout: duration(passthroughIdleMs) },
        useDownstreamProtocolConfig: { httpProtocolOptions: {}, http2ProtocolOptions: {} },
      }),
    },
  };
}
