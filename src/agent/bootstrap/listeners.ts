import type { AgentSettings } from '../settings.ts';

/** Ports that answer from outside the Pod: Envoy's figures, and the readiness that the kubelet asks for. */
export function agentListeners({ env }: AgentSettings, isV6: boolean): readonly object[] {
  const host = isV6 ? '::' : '0.0.0.0';
  const metricsHost = env['METRICS_LOCALHOST_ACCESS_ONLY'] === 'true' ? (isV6 ? '::1' : '127.0.0.1') : host;
  return [
    listener(
      metricsHost,
      Number(env['ENVOY_PROMETHEUS_PORT'] ?? 15_090),
      'stats',
      '/stats/prometheus',
      'prometheus_stats',
    ),
    listener(host, Number(env['ENVOY_STATUS_PORT'] ?? 15_021), 'agent', '/healthz/ready', 'agent'),
  ];
}

/** Other paths than this one do not exist. */
function listener(host: string, port: number, statPrefix: string, prefix: string, cluster: string): object {
  return {
    name: `${host}_${port}`,
    address: { socketAddress: { address: host, portValue: port } },
    // A probe must not fail because the workload is busy.
    ignoreGlobalConnLimit: true,
    bypassOverloadManager: true,
    filterChains: [
      {
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
              httpFilters: [
                {
                  name: 'envoy.filters.http.router',
                  typedConfig: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router' },
                },
              ],
            },
          },
        ],
      },
    ],
  };
}
