import type { AgentSettings } from '../settings/settings.ts';
import { fromAgent } from './clusters.ts';

/**
 * Ports that answer from outside the Pod: Envoy's figures, and the readiness that the kubelet asks for; where they are
 * asked for, also the figures with mutual TLS, of Envoy alone and of all in the Pod.
 */
export function agentListeners({ env, pod, ports }: AgentSettings, isV6: boolean): readonly object[] {
  const host = isV6 ? '::' : '0.0.0.0';
  const metricsHost = env['METRICS_LOCALHOST_ACCESS_ONLY'] === 'true' ? (isV6 ? '::1' : '127.0.0.1') : host;
  const figures = { statPrefix: 'stats', prefix: '/stats/prometheus' };
  const filters = pod.annotations['sidecar.istio.io/statsCompression'] === 'false' ? [] : compressors;
  const secure = (port: number, cluster: string): readonly object[] =>
    port === 0
      ? []
      : [listener(host, port, { ...figures, statPrefix: `secure-${cluster}`, cluster, filters, isMutual: true })];
  return [
    listener(metricsHost, ports.metrics, {
      ...figures,
      cluster: 'prometheus_stats',
      filters,
    }),
    listener(host, ports.ready, {
      statPrefix: 'agent',
      prefix: '/healthz/ready',
      cluster: 'agent',
    }),
    ...secure(ports.secureMetrics, 'prometheus_stats'),
    ...secure(ports.secureMergedMetrics, 'agent'),
  ];
}

interface Answers {
  readonly statPrefix: string;
  /** Of paths. Others do not exist. */
  readonly prefix: string;
  readonly cluster: string;
  /** Before the router. */
  readonly filters?: readonly object[];
  /** Only for workloads of the mesh. */
  readonly isMutual?: boolean;
}

function listener(host: string, port: number, answers: Answers): object {
  const { statPrefix, prefix, cluster, filters = [], isMutual = false } = answers;
  return {
    name: `${host}_${port}`,
    address: { socketAddress: { address: host, portValue: port } },
    // A probe must not fail because the workload is busy.
    ignoreGlobalConnLimit: true,
    bypassOverloadManager: true,
    filterChains: [
      {
        ...(isMutual && { transportSocket: mutualTls }),
        filters: [
          {
            name: 'envoy.filters.network.http_connection_manager',
            typedConfig: {
              '@type':
                'type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager',
              codecType: 'AUTO',
              statPrefix,
              routeConfig: {
                virtualHosts: [
                  { name: 'backend', domains: ['*'], routes: [{ match: { prefix }, route: { cluster } }] },
                ],
              },
              httpFilters: [...filters, router],
            },
          },
        ],
      },
    ],
  };
}

const httpFilter = (name: string, type: string, config: object = {}): object => ({
  name: `envoy.filters.http.${name}`,
  typedConfig: { '@type': `type.googleapis.com/envoy.extensions.filters.http.${type}`, ...config },
});

const router = httpFilter('router', 'router.v3.Router');

/** For whoever accepts it: the figures of a large mesh are megabytes. The last one is preferred. */
const compressors: readonly object[] = ['brotli', 'zstd', 'gzip'].map((library) =>
  httpFilter('compressor', 'compressor.v3.Compressor', {
    responseDirectionConfig: { commonConfig: {} },
    compressorLibrary: {
      name: library,
      typedConfig: {
        '@type': `type.googleapis.com/envoy.extensions.compression.${library}.compressor.v3.${library[0]?.toUpperCase()}${library.slice(1)}`,
      },
    },
  }),
);

const mutualTls = {
  name: 'envoy.transport_sockets.tls',
  typedConfig: {
    '@type': 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext',
    requireClientCertificate: true,
    commonTlsContext: {
      tlsCertificateSdsSecretConfigs: [fromAgent('default')],
      validationContextSdsSecretConfig: fromAgent('ROOTCA'),
    },
  },
};
