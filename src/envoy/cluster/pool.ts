import type { ClusterSettings } from '../../model/mesh-config.ts';
import type { ConnectionPool, RetryBudget } from '../../model/traffic-policy.ts';
import { duration } from '../duration.ts';
import type { Cluster, TcpKeepalive } from '../gen/types.gen.ts';
import { wrapped } from '../encode/wrappers.ts';

/** Practically none. Envoy's own limits (1024 requests, 3 retries) would surprise users who set no limit. */
export const unlimited = 4_294_967_295;

/** The limits of a connection pool, with the mesh's defaults for those that it leaves out. 0 means no limit. */
export function poolFields(
  pool: ConnectionPool | undefined,
  retryBudget: RetryBudget | undefined,
  settings: Pick<ClusterSettings, 'connectTimeout' | 'tcpKeepalive'>,
): Pick<Cluster, 'connectTimeout' | 'circuitBreakers' | 'upstreamConnectionOptions'> {
  const { tcp, http } = pool ?? { tcp: undefined, http: undefined };
  const tcpKeepalive = keepalive(settings.tcpKeepalive, tcp?.tcpKeepalive);
  return {
    connectTimeout: duration(tcp?.connectTimeout ?? settings.connectTimeout),
    circuitBreakers: {
      thresholds: [
        {
          maxConnections: wrapped(tcp?.maxConnections || unlimited),
          maxPendingRequests: wrapped(http?.http1MaxPendingRequests || unlimited),
          maxRequests: wrapped(http?.http2MaxRequests || unlimited),
          maxRetries: wrapped(http?.maxRetries || unlimited),
          retryBudget: retryBudget && {
            budgetPercent: { value: retryBudget.percent ?? 20 },
            minRetryConcurrency: wrapped(retryBudget.minRetryConcurrency ?? 3),
            budgetInterval: retryBudget.budgetInterval === undefined ? undefined : duration(retryBudget.budgetInterval),
          },
        },
      ],
    },
    upstreamConnectionOptions: tcpKeepalive && { tcpKeepalive },
  };
}

type Keepalive = ClusterSettings['tcpKeepalive'];

/** An empty message turns keepalive on, with the operating system's times. */
function keepalive(mesh: Keepalive, own: Keepalive): TcpKeepalive | undefined {
  if (mesh === undefined && own === undefined) return undefined;
  const { probes, time, interval } = { ...mesh, ...own };
  return {
    ...(probes ? { keepaliveProbes: wrapped(probes) } : {}),
    ...(time === undefined ? {} : { keepaliveTime: wrapped(Math.trunc(time / 1000)) }),
    ...(interval === undefined ? {} : { keepaliveInterval: wrapped(Math.trunc(interval / 1000)) }),
  };
}
