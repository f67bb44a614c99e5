import { isObject, type Json } from '../api/json.ts';
import { quote } from '../api/quote.ts';
import {
  type Read,
  readInterfaces,
  readPort,
  readPorts,
  readPortsOrAll,
  readRanges,
  readRangesOrAll,
} from '../interception/option-values.ts';
import { parseJson } from '../api/annotation-json.ts';
import { readHistogramBuckets } from '../api/histogram-buckets.ts';
import { isDuration, readProxyConfig } from './proxy-config.ts';
import { mismatchOf } from './shape.ts';
import type { Texts } from './pod.ts';

const LOG_LEVELS = ['trace', 'debug', 'info', 'warning', 'warn', 'error', 'critical', 'off'];

/** What users may say about one Pod. A value that cannot be meant is refused: the Pod would not start, or not as meant. */
const readers = {
  'proxy.istio.io/config': readProxyConfig,
  'inject.istio.io/templates': readNames,
  'sidecar.istio.io/interceptionMode': readMode,
  'sidecar.istio.io/proxyImage': readText(
    'the name of an image',
    /^[^\s]{1,500}$/,
    'registry.example.com/fairlead-proxy:1.0',
  ),
  'sidecar.istio.io/proxyImageType': readText('a type of image', /^[A-Za-z0-9][\w.-]{0,99}$/, 'debug'),
  'sidecar.istio.io/proxyCPU': readQuantity('100m'),
  'sidecar.istio.io/proxyCPULimit': readQuantity('2'),
  'sidecar.istio.io/proxyMemory': readQuantity('128Mi'),
  'sidecar.istio.io/proxyMemoryLimit': readQuantity('1Gi'),
  'sidecar.istio.io/logLevel': readOneOf(LOG_LEVELS),
  'sidecar.istio.io/componentLogLevel': readText(
    'levels by component',
    /^[a-z0-9_]+:[a-z]+(,[a-z0-9_]+:[a-z]+)*$/,
    'http:debug,router:info',
  ),
  'sidecar.istio.io/agentLogLevel': readAgentLevel,
  'sidecar.istio.io/rewriteAppHTTPProbers': readBoolean,
  'sidecar.istio.io/nativeSidecar': readBoolean,
  'sidecar.istio.io/capNetBindService': readBoolean,
  'sidecar.istio.io/discoveryAddress': readAddress,
  'sidecar.istio.io/bootstrapOverride': readText(
    'the name of a ConfigMap',
    /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/,
    'my-bootstrap',
  ),
  'sidecar.istio.io/statsFlushInterval': readDuration,
  'sidecar.istio.io/statsHistogramBuckets': readBuckets,
  'sidecar.istio.io/userVolume': readVolumes,
  'sidecar.istio.io/userVolumeMount': readMounts,
  'status.sidecar.istio.io/port': (text: string) => (text === '0' ? { value: 0 } : readPort(text)),
  'readiness.status.sidecar.istio.io/initialDelaySeconds': readSeconds,
  'readiness.status.sidecar.istio.io/periodSeconds': readAtLeastOne,
  'readiness.status.sidecar.istio.io/failureThreshold': readAtLeastOne,
  'prometheus.istio.io/merge-metrics': readBoolean,
  'traffic.sidecar.istio.io/includeInboundPorts': readPortsOrAll,
  'traffic.sidecar.istio.io/excludeInboundPorts': readPorts,
  'traffic.sidecar.istio.io/includeOutboundPorts': readPorts,
  'traffic.sidecar.istio.io/excludeOutboundPorts': readPorts,
  'traffic.sidecar.istio.io/includeOutboundIPRanges': readRangesOrAll,
  'traffic.sidecar.istio.io/excludeOutboundIPRanges': readRanges,
  'traffic.sidecar.istio.io/excludeInterfaces': readInterfaces,
  'traffic.sidecar.istio.io/kubevirtInterfaces': readInterfaces,
  'istio.io/reroute-virtual-interfaces': readInterfaces,
} as const satisfies Record<string, (text: string) => Read<unknown>>;

type Readers = typeof readers;
type ValueOf<R> = R extends (text: string) => Read<infer T> ? T : never;

/** Values by the name of the annotation; absent ones are not set. */
export type Annotations = { readonly [K in keyof Readers]?: ValueOf<Readers[K]> };

/** The value, or the annotation with what is wrong with it, as a sentence. */
export function readAnnotations(annotations: Texts): Read<Annotations> {
  const found: Record<string, unknown> = {};
  for (const [name, text] of Object.entries(annotations)) {
    if (!Object.hasOwn(readers, name)) continue;
    const read: Read<unknown> = readers[name as keyof Readers](text);
    if ('wrong' in read) return { wrong: `annotation ${name}: ${read.wrong}` };
    found[name] = read.value;
  }
  return { value: found as Annotations };
}

/** Domains of annotations that say something to an injector or to the agent. */
const DOMAINS: ReadonlySet<string> = new Set([
  'sidecar.istio.io',
  'traffic.sidecar.istio.io',
  'status.sidecar.istio.io',
  'readiness.status.sidecar.istio.io',
  'proxy.istio.io',
  'inject.istio.io',
  'prometheus.istio.io',
]);

/** Read by others than {@link readers}: the decision, the record of an injection, the agent. */
const READ_ELSEWHERE: ReadonlySet<string> = new Set([
  'sidecar.istio.io/inject',
  'sidecar.istio.io/status',
  'proxy.istio.io/overrides',
  'prometheus.istio.io/scrape-targets',
  ...[
    'statsInclusionPrefixes',
    'statsInclusionSuffixes',
    'statsInclusionRegexps',
    'statsCompression',
    'extraStatTags',
  ].map((name) => `sidecar.istio.io/${name}`),
]);

/** Of Istio's, what is not supported, and what to do instead. */
const UNSUPPORTED: Readonly<Record<string, string>> = {
  'prometheus.istio.io/secure-port': 'set ENVOY_SECURE_METRICS_PORT in proxyMetadata',
  'readiness.status.sidecar.istio.io/applicationPorts': 'give the containers a readinessProbe',
  'sidecar.istio.io/statsHistogramBins':
    'set bins of histogram_bucket_settings in a ConfigMap named by sidecar.istio.io/bootstrapOverride',
  'sidecar.istio.io/statsEvictionInterval': 'set it in a ConfigMap named by sidecar.istio.io/bootstrapOverride',
};

/** Annotations of Pods. */
export const annotationNames: readonly string[] = [...Object.keys(readers), ...READ_ELSEWHERE];

/** Whether somebody who creates Pods, or runs in them, knows the annotation. */
export function isOfPods(name: string): boolean {
  return Object.hasOwn(readers, name) || READ_ELSEWHERE.has(name) || Object.hasOwn(UNSUPPORTED, name);
}

/** Warnings about annotations that have no effect, misspelt ones included. */
export function remarksOn(annotations: Texts): string[] {
  return Object.keys(annotations).flatMap((name) => {
    if (!DOMAINS.has(name.slice(0, name.indexOf('/')))) return [];
    if (Object.hasOwn(readers, name) || READ_ELSEWHERE.has(name)) return [];
    const instead = Object.hasOwn(UNSUPPORTED, name)
      ? `not supported: ${UNSUPPORTED[name]}`
      : 'not known: check its name';
    return [`annotation ${name} has no effect; it is ${instead}`];
  });
}

function readMode(text: string): Read<'REDIRECT' | 'NONE'> {
  if (text === 'REDIRECT' || text === 'NONE') return { value: text };
  if (text === 'TPROXY') return { wrong: 'TPROXY is not supported; use "REDIRECT"' };
  return { wrong: `${quote(text)} is not an interception mode; use "REDIRECT" or "NONE"` };
}

function readBoolean(text: string): Read<boolean> {
  if (text === 'true' || text === 'false') return { value: text === 'true' };
  return { wrong: `${quote(text)} is neither "true" nor "false"` };
}

/** Read by the agent, which does not start with anything else. */
function readDuration(text: string): Read<string> {
  return isDuration(text) ? { value: text } : { wrong: `${quote(text)} is not a duration; write for example "5s"` };
}

/** Upper bounds of buckets, by a prefix of the names of statistics. Read by the agent, too. */
function readBuckets(text: string): Read<Json> {
  const value = readHistogramBuckets(text);
  return value !== undefined
    ? { value }
    : { wrong: `${quote(text)} is not JSON with rising numbers; write for example '{"istiocustom":[1,5,10]}'` };
}

function readSeconds(text: string): Read<number> {
  return /^\d{1,6}$/.test(text)
    ? { value: Number(text) }
    : { wrong: `${quote(text)} is not a whole number; write for example "15"` };
}

function readAtLeastOne(text: string): Read<number> {
  const read = readSeconds(text);
  return 'value' in read && read.value === 0 ? { wrong: 'must be at least 1; write for example "15"' } : read;
}

function readAddress(text: string): Read<string> {
  const port = Number(/^[^\s/:]+:(\d{1,5})$|^\[[0-9a-fA-F:.]+\]:(\d{1,5})$/.exec(text)?.slice(1).find(Boolean) ?? 0);
  return port >= 1 && port <= 65535
    ? { value: text }
    : { wrong: `${quote(text)} is not an address; write for example "fairlead.istio-system.svc:15012"` };
}

function readNames(text: string): Read<readonly string[]> {
  const names = text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
  return names.length === 0 || names.length > 10
    ? { wrong: 'must have between 1 and 10 names of templates; write for example "sidecar,my-template"' }
    : { value: names };
}

/** As Kubernetes reads them. The API server would refuse anything else without naming the annotation. */
function readQuantity(example: string): (text: string) => Read<string> {
  return (text) =>
    /^(\d+(\.\d*)?|\.\d+)(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][-+]?\d{1,2})?$/.test(text) && text.length <= 30
      ? { value: text }
      : { wrong: `${quote(text)} is not a quantity; write for example "${example}"` };
}

function readOneOf(known: readonly string[]): (text: string) => Read<string> {
  return (text) =>
    known.includes(text) ? { value: text } : { wrong: `${quote(text)} is unknown; use one of ${known.join(', ')}` };
}

function readText(what: string, pattern: RegExp, example: string): (text: string) => Read<string> {
  return (text) =>
    pattern.test(text) ? { value: text } : { wrong: `${quote(text)} is not ${what}; write for example "${example}"` };
}

/** One level, or levels by scope as Istio's agent has them, of which ours knows `default`. */
export function readAgentLevel(text: string): Read<string | undefined> {
  const levels = text.split(',').map((item) => item.trim().split(':'));
  const found =
    levels.find(([scope]) => scope === 'default' || scope === 'all') ?? levels.find((item) => item.length === 1);
  const level = found?.at(-1);
  const known = ['error', 'warn', 'info', 'debug'];
  if (level === undefined || known.includes(level)) return { value: level };
  return { wrong: `${quote(text)} is not a level; use one of ${known.join(', ')}` };
}

function readVolumes(text: string): Read<readonly Json[]> {
  const example = '{"cache":{"emptyDir":{}}}';
  return readItems(text, example, (item) => /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(String(item['name'])));
}

function readMounts(text: string): Read<readonly Json[]> {
  const example = '{"cache":{"mountPath":"/var/cache"}}';
  const shape = {
    members: { name: 'text', mountPath: 'text', readOnly: 'boolean' },
    required: ['name', 'mountPath'],
  } as const;
  return readItems(text, example, (item) => mismatchOf(item, shape) === undefined);
}

/** JSON: a list of items with names, or a map from names to items. */
function readItems(text: string, example: string, isValid: (item: Json) => boolean): Read<readonly Json[]> {
  const value = parseJson(text);
  if (value === undefined) return { wrong: `is not valid JSON, or nested too deeply; write for example '${example}'` };
  const items: unknown[] = Array.isArray(value)
    ? value
    : isObject(value)
      ? Object.entries(value).map(([name, item]) => (isObject(item) ? { name, ...item } : item))
      : [value];
  return items.length <= 100 && items.every((item) => isObject(item) && isValid(item))
    ? { value: items as Json[] }
    : { wrong: `does not have what it needs; write for example '${example}'` };
}
