import { type Json, isObject } from '../../api/json.ts';
import { readDocument } from '../../yaml/document.ts';
import { type Collectors, readCollectors, unusedOfTracing } from './collectors.ts';
import { AgentConfigError, Fields } from './config-fields.ts';

/**
 * What an agent takes from Istio's `ProxyConfig`, with Istio's defaults. Durations are in milliseconds. Source:
 * istio/api mesh/v1alpha1/proxy.proto.
 */
export interface ProxyConfig {
  /** Of the control plane: `host:port`. */
  readonly discoveryAddress: string;
  readonly controlPlaneTls: boolean;
  readonly serviceCluster: string;
  readonly drainDuration: number;
  readonly terminationDrainDuration: number;
  readonly adminPort: number;
  readonly statusPort: number;
  /** Threads of Envoy; undefined: as many as the CPU limit has, rounded up. 0: one for each CPU. */
  readonly concurrency: number | undefined;
  readonly statNameLength: number;
  readonly binaryPath: string | undefined;
  readonly configPath: string | undefined;
  /** A bootstrap that replaces ours. */
  readonly customConfigFile: string;
  readonly proxyMetadata: Readonly<Record<string, string>>;
  readonly runtimeValues: Readonly<Record<string, string>>;
  readonly statsMatcher: StatsMatcher;
  readonly extraStatTags: readonly string[];
  readonly meshId: string;
  readonly collectors: Collectors;
  /** Roots that the workload trusts besides those of the mesh: PEM. */
  readonly caCertificates: readonly string[];
  /** Of Envoy's access logs. */
  readonly fileFlush: { readonly interval: number; readonly minSizeKb: number | undefined };
  /** All of it, for the node's metadata. */
  readonly whole: Json;
}

export interface StatsMatcher {
  readonly prefixes: readonly string[];
  readonly suffixes: readonly string[];
  readonly regexps: readonly string[];
}

/** One place that sets fields; later ones win. */
export interface ProxyConfigLayer {
  /** For messages: `PROXY_CONFIG`, `annotation proxy.istio.io/config`. */
  readonly from: string;
  /** YAML or JSON; empty: nothing. */
  readonly text: string;
}

/** Of Envoy: more than machines have CPUs; one that cannot start its threads does not say why. */
const MOST_THREADS = 1_024;

/** Throws {@link AgentConfigError}. */
export function readProxyConfig(layers: readonly ProxyConfigLayer[]): {
  readonly config: ProxyConfig;
  /** Paths of fields that are set, and that the agent does not use. */
  readonly unused: readonly string[];
} {
  let whole: Json = {};
  for (const { from, text } of layers) {
    if (text.trim() === '') continue;
    const read = readDocument(text);
    if ('broken' in read) throw new AgentConfigError(`${from}, line ${read.broken.line}: ${read.broken.message}`);
    if (read.value === null) continue;
    if (!isObject(read.value)) throw new AgentConfigError(`${from} must be an object with the fields of a ProxyConfig`);
    whole = merge(whole, read.value);
  }
  const field = new Fields(whole);
  const statsMatcher = field.in('proxyStatsMatcher');
  const config: ProxyConfig = {
    discoveryAddress: field.text('discoveryAddress') || 'istiod.istio-system.svc:15012',
    controlPlaneTls: field.text('controlPlaneAuthPolicy') !== 'NONE',
    serviceCluster: field.text('serviceCluster'),
    drainDuration: field.duration('drainDuration') ?? 45_000,
    terminationDrainDuration: field.duration('terminationDrainDuration') ?? 5_000,
    adminPort: field.port('proxyAdminPort') ?? 15_000,
    statusPort: field.port('statusPort') ?? 15_020,
    concurrency: field.count('concurrency', MOST_THREADS),
    statNameLength: field.count('statNameLength') ?? 189,
    binaryPath: field.text('binaryPath') || undefined,
    configPath: field.text('configPath') || undefined,
    customConfigFile: field.text('customConfigFile'),
    proxyMetadata: field.texts('proxyMetadata'),
    runtimeValues: field.texts('runtimeValues'),
    statsMatcher: {
      prefixes: statsMatcher.list('inclusionPrefixes'),
      suffixes: statsMatcher.list('inclusionSuffixes'),
      regexps: statsMatcher.list('inclusionRegexps'),
    },
    extraStatTags: field.list('extraStatTags'),
    meshId: field.text('meshId'),
    collectors: readCollectors(field),
    caCertificates: field.list('caCertificatesPem'),
    fileFlush: { interval: field.duration('fileFlushInterval') ?? 1_000, minSizeKb: field.count('fileFlushMinSizeKb') },
    whole,
  };
  return { config, unused: [...field.names.filter((name) => UNUSED.includes(name)), ...unusedOfTracing(field)] };
}

/** The rest of a ProxyConfig is read by the injector or the control plane. */
const UNUSED: readonly string[] = [
  'proxyBootstrapTemplatePath',
  'readinessProbe',
  'privateKeyProvider',
  'connectionSettings',
];

/** Maps of texts are merged, other fields are replaced, as in Istio. */
function merge(below: Json, above: Json): Json {
  const merged: Record<string, unknown> = { ...below, ...above };
  for (const name of ['proxyMetadata', 'runtimeValues']) {
    const [lower, upper] = [below[name], above[name]];
    if (isObject(lower) && isObject(upper)) merged[name] = { ...lower, ...upper };
  }
  return merged as Json;
}
