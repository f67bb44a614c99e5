import type { AgentSettings } from '../settings.ts';

/** What Envoy counts: a small part of what it could, as in Istio, and what the user adds. */
export function statsConfig(settings: AgentSettings): object {
  const { proxy, pod, exitOnZeroConnections } = settings;
  const annotated = (name: string): readonly string[] =>
    (pod.annotations[`sidecar.istio.io/${name}`] ?? '')
      .split(',')
      .flatMap((each) => (each === '' ? [] : [each.trim()]));
  const prefixes = [...PREFIXES, ...proxy.statsMatcher.prefixes, ...annotated('statsInclusionPrefixes')];
  const suffixes = [
    ...SUFFIXES,
    // Who waits for connections to end has to see them.
    ...(exitOnZeroConnections === undefined ? [] : ['downstream_cx_active']),
    ...proxy.statsMatcher.suffixes,
    ...annotated('statsInclusionSuffixes'),
  ];
  const regexps = [...REGEXPS, ...proxy.statsMatcher.regexps, ...annotated('statsInclusionRegexps')];
  return {
    useAllDefaultTags: true,
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
