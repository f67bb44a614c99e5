/** Variables that a ProxyConfig may set, beside those that describe the proxy: they tune what the agent does in its Pod. */
const TUNING: ReadonlySet<string> = new Set([
  'ENVOY_PROMETHEUS_PORT',
  'ENVOY_SECURE_MERGED_METRICS_PORT',
  'ENVOY_SECURE_METRICS_PORT',
  'ENVOY_STATUS_PORT',
  'EXIT_ON_ZERO_ACTIVE_CONNECTIONS',
  'INVALID_DROP',
  'METRICS_LOCALHOST_ACCESS_ONLY',
  'MINIMUM_DRAIN_DURATION',
  'PILOT_AGENT_MERGE_ENVOY_STATS',
  'PROXY_CONFIG_XDS_AGENT',
  'REWRITE_PROBE_LEGACY_LOCALHOST_DESTINATION',
  'SECRET_GRACE_PERIOD_RATIO',
  'SECRET_TTL',
]);

/** Behind `ISTIO_META_`: who a proxy is, by which policies select it, how it gets its connections, and its files. */
const IDENTITY =
  /^(CLUSTER_ID|GENERATOR|INSTANCE_IPS|INTERCEPTION_MODE|LABELS|NAME|NAMESPACE|SERVICE_ACCOUNT|STATIC_LABELS|TLS_.*)$/;

/**
 * Whether a ProxyConfig may set it for proxies of Pods that others create. All else could send the Pod's token
 * elsewhere, take away its roots, run code, or take the proxy out of the policies that are for it. `ISTIO_METAJSON_` can
 * say all that a proxy says of itself, its labels among them.
 */
export function isForProxyConfigs(name: string): boolean {
  const [, described] = /^ISTIO_META_(.+)$/.exec(name) ?? [];
  return described === undefined ? TUNING.has(name) : !IDENTITY.test(described);
}

const OF_CODE = /^(NODE_|LD_|DYLD_|OPENSSL_|SSL_CERT_|GLIBC_|MALLOC_|BASH_|XTABLES_)/;
const OF_CODE_NAMES: ReadonlySet<string> = new Set([
  'BASHOPTS',
  'ENV',
  'GCONV_PATH',
  'IFS',
  'IPTABLES_LIB_DIR',
  'IP6TABLES_LIB_DIR',
  'LOCPATH',
  'PATH',
  'PS4',
  'SHELLOPTS',
  'SSLKEYLOGFILE',
]);

/**
 * Whether Node, OpenSSL, the loader, the C library, a shell or iptables reads from it which code or roots to load, or
 * where to write keys. No place that describes a proxy is meant for these: whoever may decide what code runs there
 * writes the container.
 */
export function choosesCode(name: string): boolean {
  return OF_CODE.test(name) || OF_CODE_NAMES.has(name);
}

/** What the owner of such a variable is told. */
export const codeNotChosen = 'is not set: proxies take no variable that chooses code; remove it.';
