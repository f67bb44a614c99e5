import type { AgentSettings } from '../settings/settings.ts';
import { BUFFER, fromAgent } from './clusters.ts';
import { REGEX_LIMIT, runtimeOf } from './runtime.ts';

/**
 * Ports that answer from outside the Pod: Envoy's figures, and the readiness that the kubelet asks for; where they are
 * asked for, also the figures with mutual TLS, of Envoy alone and of all in the Pod.
 */
export function agentListeners(settings: AgentSettings, isV6: boolean): readonly object[] {
  const { env, pod, ports } = settings;
  const queries = queriesOf(settings);
  const host = isV6 ? '::' : '0.0.0.0';
  const metricsHost = env['METRICS_LOCALHOST_ACCESS_ONLY'] === 'true' ? (isV6 ? '::1' : '127.0.0.1') : host;
  const path = '/stats/prometheus';
  const filters = pod.annotations['sidecar.istio.io/statsCompression'] === 'false' ? [] : compressors;
  // The agent knows who reads slowly, and asks here in turn.
  const ofEnvoy = { path, as: '/stats/envoy', cluster: 'agent', queries, filters };
  const secure = (port: number, statPrefix: string, answers: Omit<Answers, 'statPrefix'>): readonly object[] =>
    port === 0 ? [] : [listener(host, port, chain({ ...answers, statPrefix, isMutual: true }))];
  return [
    listener(
      metricsHost,
      ports.metrics,
      {
        filterChainMatch: { sourceType: 'SAME_IP_OR_LOOPBACK' },
        ...chain({ statPrefix: 'stats', path, cluster: 'prometheus_stats', queries, filters }),
      },
      chain({ ...ofEnvoy, statPrefix: 'stats-outside' }),
    ),
    listener(host, ports.ready, chain({ statPrefix: 'agent', path: '/healthz/ready', cluster: 'agent', queries })),
    ...secure(ports.secureMetrics, 'secure-prometheus_stats', ofEnvoy),
    ...secure(ports.secureMergedMetrics, 'secure-agent', { path, cluster: 'agent', queries, filters }),
  ];
}

interface Answers {
  readonly statPrefix: string;
  /** The only one; others do not exist. */
  readonly path: string;
  /** The path where it goes on; absent: the same. */
  readonly as?: string;
  readonly cluster: string;
  readonly queries: Queries;
  /** Before the router. */
  readonly filters?: readonly object[];
  /** Only for workloads of the mesh. */
  readonly isMutual?: boolean;
}

/** How long a caller may take, until it is connected and has sent what it asks for; and with its answer. */
const WITHIN = { connected: '5s', asked: '10s', answered: '60s', idle: '120s' } as const;

/** Bytes that a caller may send over HTTP/2 before anybody has read them: the least that there is. */
const WINDOW = 65_535;

function listener(host: string, port: number, ...filterChains: readonly object[]): object {
  return {
    name: `${host}_${port}`,
    address: { socketAddress: { address: host, portValue: port } },
    // A probe must not fail because the workload is busy.
    ignoreGlobalConnLimit: true,
    bypassOverloadManager: true,
    perConnectionBufferLimitBytes: BUFFER,
    filterChains,
  };
}

function chain(answers: Answers): object {
  const { statPrefix, filters = [], isMutual = false } = answers;
  return {
    ...(isMutual && { transportSocket: mutualTls, transportSocketConnectTimeout: WITHIN.connected }),
    filters: [
      {
        name: 'envoy.filters.network.http_connection_manager',
        typedConfig: {
          '@type':
            'type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager',
          codecType: 'AUTO',
          statPrefix,
          requestHeadersTimeout: WITHIN.connected,
          requestTimeout: WITHIN.asked,
          commonHttpProtocolOptions: { idleTimeout: WITHIN.idle, maxStreamDuration: WITHIN.answered },
          http2ProtocolOptions: {
            maxConcurrentStreams: 32,
            initialStreamWindowSize: WINDOW,
            initialConnectionWindowSize: WINDOW,
          },
          // The address of the caller is the last of those that the request goes on with.
          useRemoteAddress: true,
          // What is compared is what goes on: the admin interface resolves dots and escapes, too.
          normalizePath: true,
          mergeSlashes: true,
          pathWithEscapedSlashesAction: 'REJECT_REQUEST',
          routeConfig: { virtualHosts: [{ name: 'backend', domains: ['*'], routes: routesTo(answers) }] },
          httpFilters: [wholeRequest, ...filters, router],
        },
      },
    ],
  };
}

/** Behind them is more than anyone outside may ask: only this path, only to read it, and only so much of a query. */
function routesTo({ path, as, cluster, queries }: Answers): readonly object[] {
  const get = { name: ':method', stringMatch: { exact: 'GET' } };
  return [
    {
      match: { path, headers: [get, ...queries.matches] },
      route: { cluster, ...(as !== undefined && { prefixRewrite: as }) },
    },
    {
      match: { path, headers: [get] },
      directResponse: { status: 400, body: { inlineString: `${queries.refusal}\n` } },
    },
  ];
}

/** Which queries go on. */
interface Queries {
  /** Of `:path`. */
  readonly matches: readonly object[];
  /** What the others are answered. */
  readonly refusal: string;
}

/**
 * `filter` is a regular expression (RE2), with which Envoy's main thread searches the name of each of its figures. A few
 * characters make an expensive one with `{1000}` or a class like `\pL`; so there are no braces, and a backslash is only
 * before what is neither a letter nor a digit.
 */
const CHEAP = [
  '[!-$&-[\\]-z|~]',
  ...['%[0134689A-Fa-f][0-9A-Fa-f]', '%2[0-46-9A-Fa-f]', '%5[0-9ABDEFabdef]', '%7[0-9ACEFacef]'],
  '(\\\\|%5[Cc])([!-$&-/:-@^_`|~[\\]]|%2[0-9A-Fa-f]|%3[A-Fa-f]|%5[BDEFbdef]|%7[Cc])',
].join('|');

/** Characters of a query. Each takes Envoy two instructions of a regular expression, of which a user may allow fewer. */
const [LONGEST, INSTRUCTIONS] = [256, 1024];

function queriesOf({ proxy }: AgentSettings): Queries {
  const matches = (regex: string): object => ({
    name: ':path',
    stringMatch: { safeRegex: { regex: `[^?]*${regex}` } },
  });
  return Number(runtimeOf(proxy.runtimeValues)[REGEX_LIMIT]) >= INSTRUCTIONS
    ? {
        matches: [matches(`(\\?[!-~]{0,${LONGEST}})?`), matches(`(\\?(${CHEAP})*)?`)],
        refusal: `use a query of at most ${LONGEST} characters, without { } and classes such as \\d`,
      }
    : { matches: [matches('')], refusal: `use no query: ${REGEX_LIMIT} is too low to read it` };
}

const httpFilter = (name: string, type: string, config: object = {}): object => ({
  name: `envoy.filters.http.${name}`,
  typedConfig: { '@type': `type.googleapis.com/envoy.extensions.filters.http.${type}`, ...config },
});

/**
 * The admin interface keeps all of a request's body, and waits for its end: only a request that is whole goes on, and
 * nobody has anything to send. One byte is the least that this filter takes.
 */
const wholeRequest = httpFilter('buffer', 'buffer.v3.Buffer', { maxRequestBytes: 1 });

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
