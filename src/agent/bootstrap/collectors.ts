import { isIP } from 'node:net';
import type { CollectorTls, Collectors, RemoteService, Tracing } from '../settings/collectors.ts';
import type { Address } from '../settings/config-fields.ts';
import { fromAgent, http2 } from './clusters.ts';

/** Parts of a bootstrap that make Envoy report to services outside the Pod. */
export interface CollectorParts {
  readonly clusters: readonly object[];
  readonly tracing?: object;
  readonly statsSinks?: readonly object[];
}

/** `serviceName` is what traces call this proxy. The address of statsd is an IP address: Envoy takes no name there. */
export function collectorParts(collectors: Collectors, serviceName: string, isV6: boolean): CollectorParts {
  const { tracing, statsd, accessLogs, metrics } = collectors;
  const sinks = [
    ...(statsd === undefined
      ? []
      : [extension('envoy.stat_sinks.statsd', 'metrics.v3.StatsdSink', statsdSink(statsd))]),
    ...(metrics === undefined
      ? []
      : [extension('envoy.stat_sinks.metrics_service', 'metrics.v3.MetricsServiceConfig', metricsService)]),
  ];
  return {
    clusters: [
      ...(tracing === undefined ? [] : [collector(CLUSTER_OF[tracing.kind], tracing, isV6)]),
      ...(accessLogs === undefined ? [] : [{ ...collector('envoy_accesslog_service', accessLogs, isV6), ...http2 }]),
      ...(metrics === undefined ? [] : [{ ...collector('envoy_metrics_service', metrics, isV6), ...http2 }]),
    ],
    ...(tracing && { tracing: { http: tracerOf(tracing, serviceName) } }),
    ...(sinks.length > 0 && { statsSinks: sinks }),
  };
}

const CLUSTER_OF = { zipkin: 'zipkin', datadog: 'datadog_agent' } as const;

const metricsService = {
  transportApiVersion: 'V3',
  grpcService: { envoyGrpc: { clusterName: 'envoy_metrics_service' } },
};

const statsdSink = ({ host, port }: Address): object => ({
  address: { socketAddress: { protocol: 'UDP', address: host, portValue: port } },
});

function tracerOf({ kind }: Tracing, serviceName: string): object {
  const collectorCluster = CLUSTER_OF[kind];
  return kind === 'zipkin'
    ? extension('envoy.tracers.zipkin', 'trace.v3.ZipkinConfig', {
        collectorCluster,
        collectorEndpoint: '/api/v2/spans',
        collectorEndpointVersion: 'HTTP_JSON',
        traceId128bit: true,
        sharedSpanContext: false,
      })
    : extension('envoy.tracers.datadog', 'trace.v3.DatadogConfig', { collectorCluster, serviceName });
}

const extension = (name: string, type: string, config: object): object => ({
  name,
  typedConfig: { '@type': `type.googleapis.com/envoy.config.${type}`, ...config },
});

/** A service that is found by DNS. */
function collector(name: string, { address, tls, keepalive }: RemoteService, isV6: boolean): object {
  const { host, port } = address;
  const endpoint = { address: { socketAddress: { address: host, portValue: port } } };
  const connection = keepalive && {
    tcpKeepalive: {
      ...(keepalive.probes !== undefined && { keepaliveProbes: keepalive.probes }),
      ...(keepalive.time !== undefined && { keepaliveTime: keepalive.time }),
      ...(keepalive.interval !== undefined && { keepaliveInterval: keepalive.interval }),
    },
  };
  return {
    name,
    ...(isIP(host) === 0
      ? {
          type: 'STRICT_DNS',
          respectDnsTtl: true,
          dnsRefreshRate: '30s',
          dnsLookupFamily: isV6 ? 'V6_PREFERRED' : 'V4_PREFERRED',
        }
      : { type: 'STATIC' }),
    connectTimeout: '1s',
    loadAssignment: { clusterName: name, endpoints: [{ lbEndpoints: [{ endpoint }] }] },
    ...(connection && { upstreamConnectionOptions: connection }),
    ...(tls && { transportSocket: transportSocket(tls, host) }),
  };
}

function transportSocket({ certificate, roots, sni, subjectAltNames }: CollectorTls, host: string): object {
  return {
    name: 'envoy.transport_sockets.tls',
    typedConfig: {
      '@type': 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext',
      sni: sni || (isIP(host) === 0 ? host : ''),
      commonTlsContext: {
        ...(certificate !== undefined && { tlsCertificateSdsSecretConfigs: [fromAgent(certificate)] }),
        ...(roots !== undefined && {
          combinedValidationContext: {
            defaultValidationContext: {
              matchTypedSubjectAltNames: subjectAltNames.flatMap((exact) =>
                ['DNS', 'URI'].map((sanType) => ({ sanType, matcher: { exact } })),
              ),
            },
            validationContextSdsSecretConfig: fromAgent(roots),
          },
        }),
      },
    },
  };
}
