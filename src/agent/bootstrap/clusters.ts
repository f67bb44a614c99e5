import type { AgentSettings } from '../settings/settings.ts';

/** What Envoy reaches in the same Pod: its own admin interface, and the agent. */
export function agentClusters({ proxy, paths }: AgentSettings, isV6: boolean): readonly object[] {
  const loopback = isV6 ? '::1' : '127.0.0.1';
  const port = (portValue: number): object => ({ socketAddress: { address: loopback, portValue } });
  return [
    // Scrapers are few; the figures of a large mesh are megabytes. The agent asks for those outside, who may be slow.
    { ...cluster('prometheus_stats', port(proxy.adminPort)), perConnectionBufferLimitBytes: BUFFER, ...limits(16) },
    { ...cluster('agent', port(proxy.statusPort)), perConnectionBufferLimitBytes: BUFFER },
    { ...cluster('sds-grpc', { pipe: { path: paths.secretSocket } }), ...http2 },
    {
      ...cluster('xds-grpc', { pipe: { path: paths.xdsSocket } }),
      ...http2,
      // As large as it takes: the control plane decides how much it sends.
      ...limits(100_000),
    },
  ];
}

/** At most so many connections, and calls, at a time. */
const limits = (most: number): object => ({
  circuitBreakers: {
    thresholds: ['DEFAULT', 'HIGH'].map((priority) => ({
      priority,
      maxConnections: most,
      maxPendingRequests: most,
      maxRequests: most,
    })),
  },
});

/** Bytes of an answer that wait for whoever reads slowly. */
export const BUFFER = 32 * 1024;

function cluster(name: string, address: object): object {
  return {
    name,
    type: 'STATIC',
    connectTimeout: '1s',
    loadAssignment: { clusterName: name, endpoints: [{ lbEndpoints: [{ endpoint: { address } }] }] },
  };
}

/** What it speaks. */
export const http2 = {
  typedExtensionProtocolOptions: {
    'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
      '@type': 'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
      explicitHttpConfig: { http2ProtocolOptions: {} },
    },
  },
};

/** The secret of this name, which the agent has. */
export const fromAgent = (name: string): object => ({
  name,
  sdsConfig: {
    resourceApiVersion: 'V3',
    initialFetchTimeout: '0s',
    apiConfigSource: {
      apiType: 'GRPC',
      transportApiVersion: 'V3',
      setNodeOnFirstMessageOnly: true,
      grpcServices: [{ envoyGrpc: { clusterName: 'sds-grpc' } }],
    },
  },
});
