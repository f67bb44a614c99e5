import { isEnvironmentName } from '../api/environment-name.ts';
import { isObject, type Json } from '../api/json.ts';
import { choosesCode } from '../api/proxy-variables.ts';
import { quote } from '../api/quote.ts';
import { printPath } from '../api/schema-path.ts';
import type { Read } from '../interception/option-values.ts';
import type { ProxyConfigModel, ProxyConfigsOfPod } from '../model/proxy-config.ts';
import { ineffectiveInProxyConfig } from '../reconcilers/ineffective-fields.ts';
import { readDocument } from '../yaml/document.ts';
import { mismatchOf, type Shape } from './shape.ts';

/** Fields of Istio's ProxyConfig whose wrong type keeps a proxy from starting; others are the agent's to read. */
const shape: Shape = {
  members: {
    concurrency: 'whole',
    discoveryAddress: 'text',
    proxyMetadata: { map: 'text' },
    statusPort: 'port',
    proxyAdminPort: 'port',
    holdApplicationUntilProxyStarts: 'boolean',
    interceptionMode: { oneOf: ['REDIRECT', 'NONE'] },
    configPath: 'text',
    binaryPath: 'text',
    customConfigFile: 'text',
    proxyBootstrapTemplatePath: 'text',
    meshId: 'text',
    serviceCluster: 'text',
    statNameLength: 'whole',
    runtimeValues: { map: 'text' },
    extraStatTags: { list: 'text' },
    image: { members: { imageType: 'text' } },
    drainDuration: 'text',
    terminationDrainDuration: 'text',
  },
};

const DURATIONS = ['drainDuration', 'terminationDrainDuration'] as const;

/** The annotation `proxy.istio.io/config`. */
export function readProxyConfig(text: string): Read<Json> {
  const read = readDocument(text);
  const example = 'write for example "terminationDrainDuration: 10s"';
  if ('broken' in read) return { wrong: `${read.broken.message} (line ${read.broken.line}); ${example}` };
  const value = read.value ?? {};
  if (!isObject(value)) return { wrong: `must be a map of fields; ${example}` };
  const wrong = wrongIn(value);
  return wrong === undefined ? { value } : { wrong };
}

/** As Go reads it. */
export function isDuration(text: string): boolean {
  return /^(\d+(\.\d+)?(h|m|s|ms|us|µs|ns))+$/.test(text);
}

/** What is wrong with a ProxyConfig, as the end of a sentence that begins with where it is written. */
export function wrongIn(config: Json): string | undefined {
  const mismatch = mismatchOf(config, shape);
  if (mismatch !== undefined) return `${printPath(mismatch.path)} ${mismatch.message}`;
  for (const name of DURATIONS) {
    const text = config[name];
    if (typeof text === 'string' && !isDuration(text))
      return `${name} ${quote(text)} is not a duration; write for example "45s"`;
  }
  const name = Object.keys(metadataOfProxy(config)).find((each) => !isEnvironmentName(each));
  if (name !== undefined) return `proxyMetadata has ${quote(name)}, which is not the name of an environment variable`;
  return undefined;
}

/** From general to special. Maps of `proxyMetadata` are merged, other fields replace each other. */
export function mergeProxyConfigs(configs: readonly Json[]): Json {
  let merged: Json = {};
  for (const config of configs) {
    const proxyMetadata = { ...metadataOfProxy(merged), ...metadataOfProxy(config) };
    merged = { ...merged, ...config, ...(Object.keys(proxyMetadata).length > 0 && { proxyMetadata }) };
  }
  return merged;
}

/** What a ProxyConfig of the cluster sets, with the names that fields have in the mesh config and in the annotation. */
export function settingsOf(model: ProxyConfigModel | undefined): Json {
  if (model === undefined) return {};
  const { concurrency, environmentVariables, imageType } = model;
  return {
    ...(concurrency !== undefined && { concurrency }),
    ...(Object.keys(environmentVariables).length > 0 && { proxyMetadata: environmentVariables }),
    ...(imageType !== undefined && { image: { imageType } }),
  };
}

/** Without variables that choose code, and warnings about these. `given`: from the URL of the webhook. */
export function variablesOf(
  config: Json,
  given: Readonly<Record<string, string>>,
): {
  readonly proxyMetadata: Readonly<Record<string, string>>;
  readonly given: Readonly<Record<string, string>>;
  readonly warnings: readonly string[];
} {
  const written = metadataOfProxy(config);
  const refused = Object.keys({ ...written, ...given }).filter(choosesCode);
  const harmless = (texts: Readonly<Record<string, string>>): Readonly<Record<string, string>> =>
    Object.fromEntries(Object.entries(texts).filter(([name]) => !choosesCode(name)));
  const more = refused.length > 3 ? ` and ${refused.length - 3} more` : '';
  const said = `variables ${refused.slice(0, 3).map(quote).join(', ')}${more} are not set`;
  return {
    proxyMetadata: harmless(written),
    given: harmless(given),
    warnings:
      refused.length === 0 ? [] : [`${said}: proxies take none that chooses code; remove them from proxyMetadata`],
  };
}

/** Warnings about fields of the annotation `proxy.istio.io/config` that nothing acts on. */
export function remarksOnFields(config: Json): string[] {
  return ineffectiveInProxyConfig(config).map(
    ({ field, message }) => `annotation proxy.istio.io/config: ${field}: ${message}`,
  );
}

/** Warnings about ProxyConfigs that do not count. */
export function remarksOnShadowed({ workload, shadowed }: ProxyConfigsOfPod): string[] {
  if (workload === undefined || shadowed.length === 0) return [];
  const names = shadowed.slice(0, 3).map(({ name }) => name);
  const more = shadowed.length > names.length ? ` and ${shadowed.length - names.length} more` : '';
  return [
    `several ProxyConfigs select it, and the oldest, ${workload.name}, is used; ${names.join(', ')}${more} ${shadowed.length === 1 ? 'is' : 'are'} not`,
  ];
}

export function metadataOfProxy(config: Json): Readonly<Record<string, string>> {
  const { proxyMetadata } = config;
  return isObject(proxyMetadata) ? (proxyMetadata as Record<string, string>) : {};
}
