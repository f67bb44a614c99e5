import { isObject } from '../../api/json.ts';
import { AgentConfigError } from './config-fields.ts';
import { type ProxyConfig, readProxyConfig } from './proxy-config.ts';
import { certificateSources } from './certificate-sources.ts';
import { parseDuration } from '../../reconcilers/durations.ts';
import { readDocument } from '../../yaml/document.ts';
import { readPodInfo } from './pod-info.ts';

export type ProxyType = 'sidecar' | 'router';

/** What the command line says. */
export interface AgentOptions {
  readonly type: ProxyType;
  /** DNS domain of the proxy's namespace: `shop.svc.cluster.local`. */
  readonly domain: string;
  /** Where paths begin: `/`, or elsewhere on a machine that is not a Pod. */
  readonly root: string;
  readonly meshConfigFile: string;
}

/** The process's surroundings. */
export interface AgentSurroundings {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Undefined if there is none. */
  readonly readFile: (path: string) => string | undefined;
  /** Whether there is a unix socket. */
  readonly isSocket: (path: string) => boolean;
  /** Addresses of this machine, without loopback: by interface. */
  readonly addresses: () => readonly { readonly interface: string; readonly address: string }[];
}

/** Everything that decides what an agent does, read once. */
export interface AgentSettings extends AgentOptions {
  readonly proxy: ProxyConfig;
  /** The process's, above those of `proxyMetadata`. */
  readonly env: Readonly<Record<string, string>>;
  /** A provider of secrets for Gateways and DestinationRules (`sds://`) listens in this Pod, where Istio's agent expects it. */
  readonly hasCredentialSocket: boolean;
  readonly pod: {
    readonly name: string;
    readonly namespace: string;
    readonly serviceAccount: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly annotations: Readonly<Record<string, string>>;
    /** The first is the one by which others reach it. */
    readonly addresses: readonly string[];
  };
  readonly trustDomain: string;
  readonly clusterId: string;
  readonly certificateAddress: string;
  readonly paths: AgentPaths;
  /** Milliseconds; undefined: the fixed time of `terminationDrainDuration`. */
  readonly exitOnZeroConnections: { readonly atLeast: number } | undefined;
  readonly dnsCapture: boolean;
  /** Where gRPC's libraries in other containers look for their bootstrap, or undefined if there are none. */
  readonly grpcBootstrapFile: string | undefined;
  /** Without one, gRPC's libraries are the only clients of this agent. */
  readonly hasEnvoy: boolean;
  readonly ports: EnvoyPorts;
  /** Seconds; 0: as the control plane does by default. */
  readonly certificateLife: number;
  readonly renewAfter: number;
  readonly unused: readonly string[];
}

/** On which Envoy answers whoever looks after the Pod. 0: it does not. */
export interface EnvoyPorts {
  readonly metrics: number;
  readonly ready: number;
  /** With mutual TLS: Envoy's figures alone, and all in the Pod. */
  readonly secureMetrics: number;
  readonly secureMergedMetrics: number;
}

/** All absolute. */
export interface AgentPaths {
  /** What the agent writes. */
  readonly state: string;
  readonly xdsSocket: string;
  readonly secretSocket: string;
  readonly token: string;
  readonly roots: string;
  /** The socket of whoever gives Envoy its certificates in place of this agent: SPIRE, for example. Never removed. */
  readonly secretProvider: string | undefined;
  /** A directory with the certificate of this workload, which somebody else renews, in place of ours. */
  readonly mountedCertificates: string | undefined;
  /** On a machine that is not a Pod: the certificate that proves who it is from the second time on. */
  readonly provenCertificates: string | undefined;
  readonly outputCertificates: string | undefined;
  readonly envoy: string;
}

/** Throws {@link AgentConfigError}. */
export function readSettings(options: AgentOptions, surroundings: AgentSurroundings): AgentSettings {
  const { readFile, isSocket, addresses } = surroundings;
  const given = defined(surroundings.env);
  const at = (path: string): string => (path.startsWith('/') ? path : `${options.root.replace(/\/$/, '')}/${path}`);
  const podInfo = (name: string) => readPodInfo(readFile(at(`etc/istio/pod/${name}`)) ?? '');
  const [labels, annotations] = [podInfo('labels'), podInfo('annotations')];
  /** A collector may be on the machine that the Pod runs on. */
  const withHost = (config: string): string => config.replaceAll('$(HOST_IP)', given['HOST_IP'] ?? '$(HOST_IP)');
  const meshText = readFile(at(options.meshConfigFile)) ?? '';
  const { config: proxy, unused } = readProxyConfig([
    { from: options.meshConfigFile, text: withHost(defaultConfigOf(meshText)) },
    { from: 'PROXY_CONFIG', text: withHost(given['PROXY_CONFIG'] ?? '') },
    { from: 'annotation proxy.istio.io/config', text: withHost(annotations['proxy.istio.io/config'] ?? '') },
    { from: 'annotations of the Pod', text: JSON.stringify(ofAnnotations(annotations)) },
  ]);
  const env = { ...proxy.proxyMetadata, ...given };
  const text = (name: string, fallback = ''): string => env[name] ?? fallback;
  const state = at(proxy.configPath ?? 'etc/istio/proxy');
  const skipped = list(annotations['traffic.sidecar.istio.io/excludeInterfaces'] ?? '');
  const own = addresses().flatMap((one) => (skipped.includes(one.interface) ? [] : [one.address]));
  const first = text('INSTANCE_IP');
  const path = (name: string): string | undefined => (text(name) === '' ? undefined : at(text(name)));
  const outputCertificates = path('OUTPUT_CERTS');
  const hasEnvoy = !flag(env, 'DISABLE_ENVOY');
  const sources = certificateSources({
    socketName: text('WORKLOAD_IDENTITY_SOCKET_FILE'),
    isExpected: flag(env, 'FILE_MOUNTED_CERTS'),
    written: outputCertificates,
    ...{ at, readFile, isSocket },
  });
  return {
    ...options,
    domain: options.domain || `${text('POD_NAMESPACE') || 'default'}.svc.cluster.local`,
    proxy,
    env,
    hasCredentialSocket: isSocket(at('var/run/secrets/credential-uds/socket')),
    pod: {
      name: text('POD_NAME'),
      namespace: text('POD_NAMESPACE', 'default'),
      serviceAccount: text('SERVICE_ACCOUNT', 'default'),
      labels,
      annotations,
      addresses: [...new Set([...(first === '' ? [] : [first]), ...own])],
    },
    trustDomain: text('TRUST_DOMAIN', 'cluster.local'),
    clusterId: text('ISTIO_META_CLUSTER_ID', 'Kubernetes'),
    certificateAddress: text('CA_ADDR') || proxy.discoveryAddress,
    paths: {
      state,
      xdsSocket: `${state}/XDS`,
      secretSocket: `${state}/SDS`,
      token: at('var/run/secrets/tokens/istio-token'),
      roots: at(text('XDS_ROOT_CA') || text('CA_ROOT_CA') || 'var/run/secrets/istio/root-cert.pem'),
      secretProvider: hasEnvoy ? sources.provider : undefined,
      mountedCertificates: sources.mounted,
      provenCertificates: path('PROV_CERT'),
      outputCertificates,
      envoy: proxy.binaryPath ?? '/usr/local/bin/envoy',
    },
    exitOnZeroConnections: flag(env, 'EXIT_ON_ZERO_ACTIVE_CONNECTIONS')
      ? { atLeast: milliseconds(env, 'MINIMUM_DRAIN_DURATION', 5_000) }
      : undefined,
    dnsCapture:
      (options.type === 'sidecar' && flag(env, 'ISTIO_META_DNS_CAPTURE')) || flag(env, 'ISTIO_META_ENABLE_DNS_SERVER'),
    grpcBootstrapFile: path('GRPC_XDS_BOOTSTRAP'),
    hasEnvoy,
    ports: {
      metrics: port(env, 'ENVOY_PROMETHEUS_PORT', 15_090),
      ready: port(env, 'ENVOY_STATUS_PORT', 15_021),
      secureMetrics: port(env, 'ENVOY_SECURE_METRICS_PORT', 0),
      secureMergedMetrics: port(env, 'ENVOY_SECURE_MERGED_METRICS_PORT', 0),
    },
    certificateLife: milliseconds(env, 'SECRET_TTL', 0) / 1000,
    renewAfter: ratio(env, 'SECRET_GRACE_PERIOD_RATIO', 0.5),
    unused: [...unused.map((name) => `ProxyConfig ${name}`), ...sources.unused],
  };
}

/** Fields that have an annotation of their own. */
function ofAnnotations(annotations: Readonly<Record<string, string>>): object {
  const discoveryAddress = annotations['sidecar.istio.io/discoveryAddress'];
  const port = annotations['status.sidecar.istio.io/port'];
  return {
    ...(discoveryAddress !== undefined && { discoveryAddress }),
    // 0 turns the status port of Istio's agent off; ours must have one.
    ...(port !== undefined && port !== '0' && { statusPort: Number(port) }),
  };
}

/** `defaultConfig` of a mesh config, as JSON. What is wrong with the file itself is found by who reads all of it. */
function defaultConfigOf(text: string): string {
  if (text.trim() === '') return '';
  const found = readDocumentOf(text);
  return JSON.stringify(found['defaultConfig'] ?? {});
}

function defined(env: AgentSurroundings['env']): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
}

const list = (text: string): readonly string[] =>
  text.split(',').flatMap((each) => (each.trim() === '' ? [] : [each.trim()]));

type Env = Readonly<Record<string, string>>;

function flag(env: Env, name: string): boolean {
  const text = (env[name] ?? '').toLowerCase();
  if (['1', 't', 'true'].includes(text)) return true;
  if (['', '0', 'f', 'false'].includes(text)) return false;
  throw new AgentConfigError(`${name} is ${JSON.stringify(env[name])}: use "true" or "false"`);
}

function milliseconds(env: Env, name: string, fallback: number): number {
  const text = env[name] ?? '';
  if (text === '') return fallback;
  return parseDuration(text) ?? wrongValue(name, text, 'a duration, such as 5s');
}

function port(env: Env, name: string, fallback: number): number {
  const text = env[name] ?? '';
  if (text === '') return fallback;
  const value = /^\d+$/.test(text) ? Number(text) : NaN;
  return value <= 65_535 ? value : wrongValue(name, text, `a port number, such as ${fallback || 15_091}`);
}

function ratio(env: Env, name: string, fallback: number): number {
  const text = env[name] ?? '';
  if (text === '') return fallback;
  const value = Number(text);
  return value > 0 && value < 1 ? value : wrongValue(name, text, 'a number between 0 and 1, such as 0.5');
}

function wrongValue(name: string, text: string, what: string): never {
  throw new AgentConfigError(`${name} is ${JSON.stringify(text)}: use ${what}`);
}

function readDocumentOf(text: string): Readonly<Record<string, unknown>> {
  const read = readDocument(text);
  if ('broken' in read) throw new AgentConfigError(`mesh config, line ${read.broken.line}: ${read.broken.message}`);
  return isObject(read.value) ? read.value : {};
}
