import { isObject, type Json } from '../api/json.ts';
import { type KubernetesObject, refOf } from '../api/object.ts';
import type { Problem } from '../api/problem.ts';
import { quote } from '../api/quote.ts';
import { editDistance } from '../api/schema-edit-distance.ts';
import type { LoadedDirectory } from '../directory/load.ts';
import { annotationNames, isOfPods, readAnnotations, remarksOn } from '../injection/annotations.ts';
import { wrongValue } from './annotation-values.ts';
import type { FileContext } from './context.ts';
import type { WorkloadObject } from './workloads.ts';

/** Annotations that are read on other objects than Pods. */
const KINDS: Readonly<Record<string, readonly string[]>> = {
  'networking.istio.io/exportTo': ['Service'],
  'networking.istio.io/traffic-distribution': ['Namespace', 'Service', 'ServiceEntry'],
  'alpha.istio.io/canonical-serviceaccounts': ['Service'],
  'alpha.istio.io/kubernetes-serviceaccounts': ['Service'],
  'traffic.istio.io/nodeSelector': ['Service'],
  'experimental.istio.io/disable-gateway-port-translation': ['Service'],
  'topology.istio.io/controlPlaneClusters': ['Namespace'],
  'istio.io/dry-run': ['AuthorizationPolicy'],
  'istio.io/connect-strategy': ['ServiceEntry'],
  'proxy.istio.io/health-checks-enabled': ['WorkloadEntry'],
};

/** What means something as a label alone. */
const LABELS: ReadonlySet<string> = new Set([
  'istio.io/dataplane-mode',
  'istio.io/use-waypoint',
  'istio.io/persistent-session',
  'istio.io/persistent-session-header',
  'networking.istio.io/gatewayPort',
  'networking.istio.io/enable-autoallocate-ip',
  'security.istio.io/tlsMode',
  'service.istio.io/canonical-name',
  'service.istio.io/canonical-revision',
  'service.istio.io/workload-name',
  'topology.istio.io/cluster',
  'topology.istio.io/locality',
  'topology.istio.io/network',
  'topology.istio.io/subzone',
]);

/** Annotations that Istio has deprecated, and what takes their place. Here, they work. */
const DEPRECATED: Readonly<Record<string, string>> = {
  'sidecar.istio.io/discoveryAddress': 'discoveryAddress in proxy.istio.io/config',
  'sidecar.istio.io/statsInclusionPrefixes': 'proxyStatsMatcher in proxy.istio.io/config',
  'sidecar.istio.io/statsInclusionSuffixes': 'proxyStatsMatcher in proxy.istio.io/config',
  'sidecar.istio.io/statsInclusionRegexps': 'proxyStatsMatcher in proxy.istio.io/config',
  'sidecar.istio.io/statsCompression': 'statsCompression in proxy.istio.io/config',
  'sidecar.istio.io/extraStatTags': 'extraStatTags in proxy.istio.io/config',
  'traffic.sidecar.istio.io/kubevirtInterfaces': 'istio.io/reroute-virtual-interfaces',
  'alpha.istio.io/canonical-serviceaccounts': 'subjectAltNames of a DestinationRule',
  'alpha.istio.io/kubernetes-serviceaccounts': 'subjectAltNames of a DestinationRule',
};

/** Domains of which every annotation is known. In others, other programs have some. */
const DOMAINS: ReadonlySet<string> = new Set([
  ...['sidecar.istio.io', 'traffic.sidecar.istio.io', 'status.sidecar.istio.io', 'readiness.status.sidecar.istio.io'],
  ...['proxy.istio.io', 'inject.istio.io', 'prometheus.istio.io', 'networking.istio.io', 'traffic.istio.io'],
  ...['alpha.istio.io', 'experimental.istio.io', 'topology.istio.io', 'security.istio.io', 'service.istio.io'],
]);

/** Kinds of the Gateway API, which is not read, have more. */
const KNOWN_ELSEWHERE: readonly string[] = ['networking.istio.io/service-type', 'networking.istio.io/address-type'];

/** Annotations of Istio that are unknown, on the wrong object, or have a wrong value. */
export function remarksOnAnnotations(
  { objects, others }: Pick<LoadedDirectory, 'objects' | 'others'>,
  workloads: readonly WorkloadObject[],
  { source }: FileContext,
): readonly Problem[] {
  const all = [
    ...[...objects].flatMap(([kind, found]) => (kind === 'Pod' ? [] : found)),
    ...ofWorkloads(others, workloads),
  ];
  return [...all.flatMap((object) => onObject(object, source)), ...workloads.flatMap(onPod)];
}

/** Objects that make Pods, themselves: that an annotation is here, and not in the template, is a common mistake. */
function ofWorkloads(others: readonly KubernetesObject[], workloads: readonly WorkloadObject[]): KubernetesObject[] {
  const kinds = new Set(workloads.map(({ ref }) => ref.kind));
  return others.filter(({ kind }) => kinds.has(kind));
}

function onObject(object: KubernetesObject, source: string): Problem[] {
  const { kind, metadata } = object;
  return Object.entries(metadata.annotations ?? {}).flatMap(([name, text]): Problem[] => {
    const at = { object: refOf(source, object), field: `metadata.annotations["${name}"]` };
    const kinds = kindsOf(name);
    if (kinds === undefined)
      return isUnknown(name) ? [{ ...at, reason: 'Ineffective', message: `has no effect: ${whatIsMeant(name)}` }] : [];
    if (!kinds.includes(kind)) return [{ ...at, reason: 'Ineffective', message: misplaced(kinds, object) }];
    const wrong = wrongValue(name, text);
    if (wrong !== undefined) return [{ ...at, reason: 'Ineffective', message: wrong }];
    return deprecated(name).map((message) => ({ ...at, reason: 'Ineffective', message }));
  });
}

function onPod({ ref: object, at, labels, annotations }: WorkloadObject): Problem[] {
  return Object.entries(annotations).flatMap(([name, value]): Problem[] => {
    const place = { object, field: `${at}metadata.annotations["${name}"]` };
    const kinds = kindsOf(name);
    if (kinds === undefined)
      return isUnknown(name)
        ? [{ ...place, reason: 'Ineffective', message: `has no effect: ${whatIsMeant(name)}` }]
        : [];
    if (!kinds.includes('Pod'))
      return [
        {
          ...place,
          reason: 'Ineffective',
          message: `has no effect on a Pod: it is for ${orOf(kinds)}. Move it there.`,
        },
      ];
    if (isFilledInLater(value)) return [];
    const read = readAnnotations({ [name]: value });
    if ('wrong' in read) {
      const message = `${read.wrong.slice(read.wrong.indexOf(': ') + 2)}. Until then a Pod that is injected is refused.`;
      return [{ ...place, reason: 'Invalid', message }];
    }
    const [remark] = remarksOn({ [name]: value });
    if (remark !== undefined)
      return [{ ...place, reason: 'Ineffective', message: `${remark.slice(remark.indexOf(' has no effect') + 1)}.` }];
    if (name === 'sidecar.istio.io/inject') return onWish(value, labels).map((wish) => ({ ...place, ...wish }));
    return deprecated(name).map((message) => ({ ...place, reason: 'Ineffective', message }));
  });
}

/** A variable or placeholder of whatever renders the file. */
function isFilledInLater(value: string): boolean {
  return /\{\{|\$[({]|^[A-Z][A-Z0-9]*(_[A-Z0-9]+)+$/.test(value);
}

function onWish(value: string, labels: WorkloadObject['labels']): Pick<Problem, 'reason' | 'message'>[] {
  if (value !== 'true' && value !== 'false')
    return [
      {
        reason: 'Ineffective',
        message: `${quote(value)} is neither "true" nor "false", and has no effect. Write one of them.`,
      },
    ];
  if (labels['sidecar.istio.io/inject'] !== undefined) return [];
  const message =
    value === 'true'
      ? 'asks for nothing by itself: the webhook is chosen by labels, and is not called where no label asks for it. Use the label of the same name.'
      : 'works here, but is deprecated in Istio. Use the label of the same name.';
  return [{ reason: 'Ineffective', message }];
}

function deprecated(name: string): string[] {
  const instead = Object.hasOwn(DEPRECATED, name) ? DEPRECATED[name] : undefined;
  return instead === undefined ? [] : [`works here, but is deprecated in Istio. Use ${instead}.`];
}

/** Undefined: it is not known. */
function kindsOf(name: string): readonly string[] | undefined {
  if (isOfPods(name)) return ['Pod'];
  return Object.hasOwn(KINDS, name) ? KINDS[name] : undefined;
}

function isUnknown(name: string): boolean {
  return LABELS.has(name) || (DOMAINS.has(name.slice(0, name.indexOf('/'))) && !KNOWN_ELSEWHERE.includes(name));
}

function misplaced(kinds: readonly string[], object: KubernetesObject): string {
  const where = `has no effect on a ${object.kind}: it is for ${orOf(kinds)}`;
  if (!kinds.includes('Pod')) return `${where}. Move it there.`;
  return hasTemplate(object)
    ? `${where}. Move it to the annotations of the template.`
    : `${where}. Move it to the Pods, or their template.`;
}

function hasTemplate(object: KubernetesObject): boolean {
  const { spec } = object as KubernetesObject & { readonly spec?: unknown };
  return isObject(spec) && (isObject(spec['template']) || isObject(spec['jobTemplate'] as Json | undefined));
}

function whatIsMeant(name: string): string {
  if (LABELS.has(name)) return 'it is a label, not an annotation. Move it to the labels.';
  const near = [...annotationNames, ...Object.keys(KINDS)].find(
    (known) => Math.abs(known.length - name.length) <= 2 && editDistance(known, name) <= 2,
  );
  return near === undefined
    ? 'there is no annotation of this name. Correct or remove it.'
    : `there is no annotation of this name. Did you mean ${near}?`;
}

function orOf(kinds: readonly string[]): string {
  const shown = kinds.map((kind) => (kind.endsWith('y') ? `${kind.slice(0, -1)}ies` : `${kind}s`));
  return shown.length < 2 ? shown.join('') : `${shown.slice(0, -1).join(', ')} and ${shown.at(-1)}`;
}
