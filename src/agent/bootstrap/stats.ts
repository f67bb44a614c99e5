import { readHistogramBuckets } from '../../api/histogram-buckets.ts';
import { parseDuration } from '../../reconcilers/durations.ts';
import { AgentConfigError } from '../settings/config-fields.ts';
import type { AgentSettings } from '../settings/settings.ts';

/** Envoy's limit. Milliseconds. */
const FLUSH_BELOW = 300_000;

/** How often Envoy sends and renews its figures: annotation `sidecar.istio.io/statsFlushInterval`, or 5 s. */
export function statsFlushInterval({ pod }: AgentSettings): string {
  const name = 'sidecar.istio.io/statsFlushInterval';
  const text = pod.annotations[name] ?? '5s';
  const ms = parseDuration(text);
  if (ms === undefined || ms < 1)
    throw new AgentConfigError(`annotation ${name} is ${text}: use a duration, such as 5s`);
  if (ms >= FLUSH_BELOW) throw new AgentConfigError(`annotation ${name} is ${text}: use less than 5m`);
  return `${ms / 1000}s`;
}

/** What Envoy counts: a small part of what it could, as in Istio, and what the user adds. */
export function statsConfig(settings: AgentSettings): object {
  const { proxy, pod, exitOnZeroConnections } = settings;
  const annotated = (name: string): readonly string[] =>
    (pod.annotations[`sidecar.istio.io/${name}`] ?? '')
      .split(',')
      .flatMap((each) => (each.trim() === '' ? [] : [each.trim()]));
  const prefixes = [...PREFIXES, ...proxy.statsMatcher.prefixes, ...annotated('statsInclusionPrefixes')];
  const suffixes = [
    ...SUFFIXES,
    // Who waits for connections to end has to see them.
    ...(exitOnZeroConnections === undefined ? [] : ['downstream_cx_active']),
    ...proxy.statsMatcher.suffixes,
    ...annotated('statsInclusionSuffixes'),
  ];
  const regexps = [...REGEXPS, ...proxy.statsMatcher.regexps, ...annotated('statsInclusionRegexps')];
  const buckets = histogramBuckets(pod.annotations['sidecar.istio.io/statsHistogramBuckets'] ?? '');
  return {
    useAllDefaultTags: true,
    ...(buckets.length > 0 && { histogramBucketSettings: buckets }),
    statsTags: [...proxy.extraStatTags, ...annotated('extraStatTags')].map((tagName) => ({
      tagName,
      regex: `(${escaped(tagName)}\\.=\\.(.*?);\\.)`,
    })),
    statsMatcher: {
      inclusionList: {
        patterns: [
          ...distinct(prefixes).map((prefix) => ({ prefix })),
          ...distinct(suffixes).map((suffix) => ({ suffix })),
          ...distinct(regexps).map((regex) => ({ safeRegex: { regex } })),
        ],
      },
    },
  };
}

/** JSON: upper bounds by prefix of names. */
function histogramBuckets(text: string): readonly object[] {
  if (text === '') return [];
  const value = readHistogramBuckets(text);
  if (value === undefined)
    throw new AgentConfigError(
      'annotation sidecar.istio.io/statsHistogramBuckets must be JSON with rising numbers, such as {"istio":[1,5,10]}',
    );
  return Object.entries(value).map(([prefix, bounds]) => ({ match: { prefix }, buckets: bounds }));
}

const PREFIXES: readonly string[] = [
  'reporter=',
  'cluster_manager',
  'listener_manager',
  'server',
  'cluster.xds-grpc',
  'wasm',
];
const SUFFIXES: readonly string[] = [
  'rbac.allowed',
  'rbac.denied',
  'shadow_allowed',
  'shadow_denied',
  'component',
  'istio',
];
const REGEXPS: readonly string[] = ['vhost\\..*\\.route\\..*'];

const distinct = (texts: readonly string[]): readonly string[] => [...new Set(texts)];
const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
