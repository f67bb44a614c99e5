import { type Json, isObject } from '../api/json.ts';
import { parseDuration } from '../reconcilers/durations.ts';
import { readDocument } from '../yaml/document.ts';

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
  /** All of it, for the node's metadata. */
  readonly whole: Json;
}

export interface StatsMatcher {
  readonly prefixes: readonly string[];
  readonly suffixes: readonly string[];
  readonly regexps: readonly string[];
}

/** A mistake in what a user configured: where, and what to do about it. */
export class AgentConfigError extends Error {
  readonly code = 'CONFIG';
}

/** One place that sets fields; later ones win. */
export interface ProxyConfigLayer {
  /** For messages: `PROXY_CONFIG`, `annotation proxy.istio.io/config`. */
  readonly from: string;
  /** YAML or JSON; empty: nothing. */
  readonly text: string;
}

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
  const config: ProxyConfig = {
    discoveryAddress: field.text('discoveryAddress') || 'istiod.istio-system.svc:15012',
    controlPlaneTls: field.text('controlPlaneAuthPolicy') !== 'NONE',
    serviceCluster: field.text('serviceCluster'),
    drainDuration: field.duration('drainDuration') ?? 45_000,
    terminationDrainDuration: field.duration('terminationDrainDuration') ?? 5_000,
    adminPort: field.port('proxyAdminPort') ?? 15_000,
    statusPort: field.port('statusPort') ?? 15_020,
    concurrency: field.count('concurrency'),
    statNameLength: field.count('statNameLength') ?? 189,
    binaryPath: field.text('binaryPath') || undefined,
    configPath: field.text('configPath') || undefined,
    customConfigFile: field.text('customConfigFile'),
    proxyMetadata: field.texts('proxyMetadata'),
    runtimeValues: field.texts('runtimeValues'),
    statsMatcher: {
      prefixes: field.list('proxyStatsMatcher', 'inclusionPrefixes'),
      suffixes: field.list('proxyStatsMatcher', 'inclusionSuffixes'),
      regexps: field.list('proxyStatsMatcher', 'inclusionRegexps'),
    },
    extraStatTags: field.list('extraStatTags'),
    meshId: field.text('meshId'),
    whole,
  };
  return { config, unused: Object.keys(whole).filter((name) => UNUSED.includes(name)) };
}

/** The rest of a ProxyConfig is read by the injector or the control plane. */
const UNUSED: readonly string[] = [
  'tracing',
  'statsdUdpAddress',
  'envoyAccessLogService',
  'envoyMetricsService',
  'proxyBootstrapTemplatePath',
  'readinessProbe',
  'privateKeyProvider',
  'connectionSettings',
  'caCertificatesPem',
  'fileFlushInterval',
  'fileFlushMinSizeKb',
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

class Fields {
  readonly #values: Json;

  constructor(values: Json) {
    this.#values = values;
  }

  text(name: string): string {
    const value = this.#values[name] ?? '';
    return typeof value === 'string' ? value : wrong(name, 'must be a string');
  }

  count(name: string): number | undefined {
    const value = this.#values[name] ?? undefined;
    if (value === undefined) return undefined;
    return typeof value === 'number' && Number.isInteger(value) && value >= 0
      ? value
      : wrong(name, 'must be a whole number');
  }

  port(name: string): number | undefined {
    const port = this.count(name);
    return port === undefined || (port >= 1 && port <= 65_535) ? port : wrong(name, 'must be a port number');
  }

  duration(name: string): number | undefined {
    const text = this.text(name);
    return text === '' ? undefined : (parseDuration(text) ?? wrong(name, 'must be a duration, such as 5s'));
  }

  texts(name: string): Readonly<Record<string, string>> {
    const value = this.#values[name] ?? {};
    if (!isObject(value)) return wrong(name, 'must be a map of strings');
    const entries = Object.entries(value);
    // Istio takes what is written as a number or a boolean, too.
    return Object.fromEntries(
      entries.map(([key, each]) => [
        key,
        typeof each === 'object' ? wrong(`${name}.${key}`, 'must be a string') : String(each),
      ]),
    );
  }

  list(...path: readonly [string, ...string[]]): readonly string[] {
    let value: unknown = this.#values;
    for (const name of path) value = isObject(value) ? value[name] : undefined;
    if (value === undefined || value === null) return [];
    if (Array.isArray(value) && value.every((each) => typeof each === 'string')) return value;
    return wrong(path.join('.'), 'must be a list of strings');
  }
}

function wrong(field: string, what: string): never {
  throw new AgentConfigError(`ProxyConfig ${field} ${what}`);
}
