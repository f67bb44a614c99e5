import type { GrpcCluster } from '../../model/cluster.ts';
import { blackHoleCluster } from '../../model/cluster-names.ts';
import type { LoadBalancer } from '../../model/traffic-policy.ts';
import type { Cluster } from '../gen/types.gen.ts';
import { connectAddress, wrapped } from '../encode/wrappers.ts';
import { grpcUpstreamTls } from '../tls/grpc.ts';
import { unlimited } from './pool.ts';

/** For gRPC's own clients: only what these read. They refuse a cluster that is of a kind, or balances, as they do not. */
export function grpcCluster({ name, policy, endpoints, mtls }: GrpcCluster): Cluster {
  return {
    name,
    ...discovery(name, endpoints),
    ...(mtls && { transportSocket: grpcUpstreamTls(mtls) }),
    ...balancer(policy.loadBalancer),
    // Without a limit of ours, gRPC has one of 1,024.
    circuitBreakers: {
      thresholds: [{ maxRequests: wrapped(policy.connectionPool?.http.http2MaxRequests || unlimited) }],
    },
  };
}

/** The cluster that requests without a valid destination fail in. */
export const grpcBlackHole: Cluster = {
  name: blackHoleCluster,
  ...withEndpointsOf(blackHoleCluster),
  lbPolicy: 'ROUND_ROBIN',
};

function discovery(name: string, endpoints: GrpcCluster['endpoints']): Cluster {
  if (endpoints === 'assignment') return withEndpointsOf(name);
  if (endpoints === 'none') return withEndpointsOf(blackHoleCluster);
  const { addresses, port } = endpoints;
  const lbEndpoints = [{ endpoint: { address: connectAddress(addresses[0] ?? '', port) } }];
  return { type: 'LOGICAL_DNS', loadAssignment: { clusterName: name, endpoints: [{ lbEndpoints }] } };
}

function withEndpointsOf(serviceName: string): Cluster {
  return { type: 'EDS', edsClusterConfig: { serviceName, edsConfig: { ads: {}, resourceApiVersion: 'V3' } } };
}

/** All of gRPC's libraries have these two. */
function balancer(policy: LoadBalancer | undefined): Cluster {
  const hash = policy?.consistentHash;
  if (hash === undefined) return { lbPolicy: 'ROUND_ROBIN' };
  const size = hash.ring?.kind === 'ringHash' ? hash.ring.minimumRingSize : hash.minimumRingSize;
  return {
    lbPolicy: 'RING_HASH',
    ringHashLbConfig: { minimumRingSize: size === undefined ? undefined : wrapped(size) },
  };
}
