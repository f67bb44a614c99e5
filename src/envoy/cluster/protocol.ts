import type { ConnectionPool, OutlierDetection } from '../../model/traffic-policy.ts';
import type { UpstreamProtocol } from '../../model/cluster.ts';
import { duration } from '../duration.ts';
import type {
  Any,
  CommonMatcherMatchPredicate,
  Http1ProtocolOptions,
  Http2ProtocolOptions,
  UpstreamHttpProtocolOptions,
  UpstreamsHttpProtocolOptions,
} from '../gen/types.gen.ts';
import { any } from '../encode/proto.ts';
import { types } from '../encode/proto-types.ts';
import { wrapped } from '../encode/wrappers.ts';

export interface ProtocolInput {
  readonly protocol: UpstreamProtocol;
  readonly pool: ConnectionPool | undefined;
  readonly outlierDetection?: OutlierDetection | undefined;
  /** The server name and accepted names come from the request. */
  readonly upstreamHttp?: UpstreamHttpProtocolOptions | undefined;
  /** The cluster serves any host: Envoy rejects options that do not bind the certificate to the host of the request. */
  readonly anyHost?: boolean;
  /** HTTP/1.1 headers keep the client's case. */
  readonly preserveHeaderCase: boolean;
}

/** The cluster's HTTP options by extension name; undefined if there is nothing to set. */
export function protocolOptions(input: ProtocolInput): { readonly [name: string]: Any } | undefined {
  const options = httpOptions(input);
  return options === undefined ? undefined : { [types.httpProtocolOptions]: any(types.httpProtocolOptions, options) };
}

function httpOptions(input: ProtocolInput): UpstreamsHttpProtocolOptions | undefined {
  const { protocol, pool, upstreamHttp, preserveHeaderCase } = input;
  const common = commonOptions(pool);
  const codes = input.outlierDetection?.httpErrorCodes;
  if (!protocol && !common && !upstreamHttp && !codes && !preserveHeaderCase) return undefined;
  const http1 = preserveHeaderCase ? keepCase() : {};
  return {
    commonHttpProtocolOptions: common,
    upstreamHttpProtocolOptions: input.anyHost === true ? { autoSni: true, autoSanValidation: true } : upstreamHttp,
    outlierDetection: codes && { errorMatcher: matchStatuses(codes) },
    ...(protocol === 'downstream'
      ? { useDownstreamProtocolConfig: { httpProtocolOptions: http1, http2ProtocolOptions: {} } }
      : {
          explicitHttpConfig:
            protocol === 'http2' ? { http2ProtocolOptions: http2Options(pool) } : { httpProtocolOptions: http1 },
        }),
  };
}

function commonOptions(pool: ConnectionPool | undefined): UpstreamsHttpProtocolOptions['commonHttpProtocolOptions'] {
  if (pool === undefined) return undefined;
  const idleTimeout = pool.http.idleTimeout ?? pool.tcp.idleTimeout;
  const { maxConnectionDuration } = pool.tcp;
  const maxRequests = pool.http.maxRequestsPerConnection ?? 0;
  // As in Istio, the options are present, though empty, if the pool sets anything for HTTP/2, whatever is spoken.
  const forHttp2 = (pool.http.maxConcurrentStreams ?? 0) > 0 || pool.http.http2KeepAlive !== undefined;
  if (idleTimeout === undefined && maxConnectionDuration === undefined && maxRequests === 0 && !forHttp2)
    return undefined;
  return {
    idleTimeout: idleTimeout === undefined ? undefined : duration(idleTimeout),
    maxConnectionDuration: maxConnectionDuration === undefined ? undefined : duration(maxConnectionDuration),
    maxRequestsPerConnection: maxRequests === 0 ? undefined : wrapped(maxRequests),
  };
}

function http2Options(pool: ConnectionPool | undefined): Http2ProtocolOptions {
  const streams = pool?.http.maxConcurrentStreams ?? 0;
  const keepAlive = pool?.http.http2KeepAlive;
  return {
    maxConcurrentStreams: streams === 0 ? undefined : wrapped(streams),
    connectionKeepalive: keepAlive && {
      interval: keepAlive.interval === undefined ? undefined : duration(keepAlive.interval),
      timeout: keepAlive.timeout === undefined ? undefined : duration(keepAlive.timeout),
    },
  };
}

function keepCase(): Http1ProtocolOptions {
  const typedConfig = any('envoy.extensions.http.header_formatters.preserve_case.v3.PreserveCaseFormatterConfig', {});
  return { headerKeyFormat: { statefulFormatter: { name: 'preserve_case', typedConfig } } };
}

/** A set needs two members, so a single status stands alone. */
function matchStatuses(codes: readonly number[]): CommonMatcherMatchPredicate {
  const rules = codes.map((code) => ({
    httpResponseHeadersMatch: { headers: [{ name: ':status', stringMatch: { exact: String(code) } }] },
  }));
  const [only, ...others] = rules;
  return only !== undefined && others.length === 0 ? only : { orMatch: { rules } };
}
