import type { ListenerSettings } from '../../model/mesh-config.ts';
import type { Traits } from '../../model/traits.ts';
import { accessLogs } from './access-log.ts';
import { duration } from '../duration.ts';
import { httpFilters, networkFilter } from './filters.ts';
import type {
  Filter,
  Http1ProtocolOptions,
  HttpConnectionManager,
  HttpFilter,
  RouteConfiguration,
} from '../gen/types.gen.ts';
import { any, constantAny } from '../encode/proto.ts';
import { types } from '../encode/proto-types.ts';

/** What one connection manager serves. The rest follows from the direction, the proxy and the mesh config. */
export interface ConnectionManagerOptions {
  readonly direction: 'outbound' | 'inbound' | 'gateway';
  readonly traits: Traits;
  readonly settings: ListenerSettings;
  /** Without the final `;`. */
  readonly statPrefix: string;
  /** The owner's own name for the statistics, used verbatim instead. */
  readonly statName?: string;
  /** The name of a route table, or the table itself. */
  readonly routes: string | RouteConfiguration;
  readonly grpcWeb?: boolean;
  /** The port's protocol is HTTP/2. */
  readonly http2?: boolean;
  /** Clients use the listener as an HTTP proxy. */
  readonly absoluteUrls?: boolean;
  /** In addition to those of every connection manager. */
  readonly filters?: Partial<Record<HttpFilterPhase, readonly HttpFilter[]>>;
}

/** What HTTP filters are for, in the order in which requests pass them. This is Istio's order. */
const phases = [
  'external',
  'authentication',
  'authorization',
  'bridge',
  'statistics',
  'fault',
  'cors',
  'destination',
  'router',
] as const;

export type HttpFilterPhase = (typeof phases)[number];

/** The network filter. */
export function httpConnectionManager(options: ConnectionManagerOptions): Filter {
  const { direction, traits, settings, routes } = options;
  const http1 = http1Options(options);
  const logs = accessLogs(settings);
  const message: HttpConnectionManager = {
    statPrefix: options.statName ?? `${options.statPrefix};`,
    ...(typeof routes === 'string' ? { rds: routeSource(routes) } : { routeConfig: routes }),
    httpFilters: filtersOf(options),
    useRemoteAddress: { value: direction === 'gateway' },
    ...clientIdentity(options),
    proxy100Continue: true,
    streamIdleTimeout: { seconds: 0 },
    upgradeConfigs: [{ upgradeType: 'websocket' }],
    requestIdExtension: { typedConfig: requestId },
    ...pathNormalization(settings),
    ...tracing(settings),
    ...(http1 === undefined ? {} : { httpProtocolOptions: http1 }),
    ...(direction === 'inbound' && options.http2 === true ? { http2ProtocolOptions: {} } : {}),
    ...(traits.idleTimeout === 0 ? {} : { commonHttpProtocolOptions: { idleTimeout: duration(traits.idleTimeout) } }),
    ...(direction === 'gateway' && settings.gatewayTopology.numTrustedProxies > 0
      ? { xffNumTrustedHops: settings.gatewayTopology.numTrustedProxies }
      : {}),
    ...(logs.length === 0 ? {} : { accessLog: logs }),
  };
  return networkFilter('http_connection_manager', any(types.httpConnectionManager, message));
}

const requestId = constantAny(types.uuidRequestId, { useRequestIdForTraceSampling: { value: true } });

function filtersOf({ grpcWeb = false, filters }: ConnectionManagerOptions): HttpFilter[] {
  const always: ConnectionManagerOptions['filters'] = {
    bridge: grpcWeb ? [httpFilters.grpcWeb] : [],
    statistics: [httpFilters.grpcStats],
    fault: [httpFilters.fault],
    cors: [httpFilters.cors],
    router: [httpFilters.router],
  };
  return phases.flatMap((phase) => [...(always[phase] ?? []), ...(filters?.[phase] ?? [])]);
}

/** Routes come over the same stream. Envoy waits for them indefinitely: every name is promised an answer. */
export function routeSource(name: string): HttpConnectionManager['rds'] {
  return {
    configSource: { ads: {}, initialFetchTimeout: { seconds: 0 }, resourceApiVersion: 'V3' },
    routeConfigName: name,
  };
}

function clientIdentity({ direction, settings }: ConnectionManagerOptions): HttpConnectionManager {
  const serverName = 'istio-envoy';
  const { forwardClientCertDetails } = settings.gatewayTopology;
  const adds = forwardClientCertDetails === 'APPEND_FORWARD' || forwardClientCertDetails === 'SANITIZE_SET';
  switch (direction) {
    case 'outbound':
      return {};
    case 'inbound':
      return {
        serverName,
        forwardClientCertDetails: 'APPEND_FORWARD',
        setCurrentClientCertDetails: { subject: { value: true }, uri: true, dns: true },
      };
    case 'gateway':
      return {
        serverName,
        forwardClientCertDetails,
        ...(adds
          ? { setCurrentClientCertDetails: { subject: { value: true }, cert: true, dns: true, uri: true } }
          : {}),
      };
  }
}

function http1Options({ direction, traits, absoluteUrls }: ConnectionManagerOptions): Http1ProtocolOptions | undefined {
  if (direction !== 'gateway' && !traits.http10 && !traits.preserveHeaderCase && absoluteUrls !== true)
    return undefined;
  return {
    ...(absoluteUrls === true ? { allowAbsoluteUrl: { value: true } } : {}),
    ...(traits.http10 ? { acceptHttp10: true } : {}),
    ...(traits.preserveHeaderCase
      ? {
          headerKeyFormat: {
            statefulFormatter: {
              name: 'preserve_case',
              typedConfig: any(
                'envoy.extensions.http.header_formatters.preserve_case.v3.PreserveCaseFormatterConfig',
                {},
              ),
            },
          },
        }
      : {}),
  };
}

function pathNormalization({ pathNormalization: mode }: ListenerSettings): HttpConnectionManager {
  const merge = mode === 'MERGE_SLASHES' || mode === 'DECODE_AND_MERGE_SLASHES';
  return {
    normalizePath: { value: mode !== 'NONE' },
    ...(merge ? { mergeSlashes: true } : {}),
    pathWithEscapedSlashesAction: mode === 'DECODE_AND_MERGE_SLASHES' ? 'UNESCAPE_AND_FORWARD' : 'KEEP_UNCHANGED',
  };
}

/** Takes effect if the proxy's bootstrap names a tracer. */
function tracing({ tracingSampling }: ListenerSettings): HttpConnectionManager {
  if (tracingSampling === undefined) return {};
  return {
    tracing: {
      clientSampling: { value: 100 },
      randomSampling: { value: tracingSampling },
      overallSampling: { value: 100 },
    },
  };
}
