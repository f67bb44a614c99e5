import type { Json } from '../api/json.ts';
import { quote } from '../api/quote.ts';
import { printPath } from '../api/schema-path.ts';
import type { Read } from '../interception/option-values.ts';
import { type Annotations, readAnnotations, remarksOn } from './annotations.ts';
import { type Applied, applyPatch } from './apply-templates.ts';
import { addedLists, arrange, withEachVariableOnce } from './arrange.ts';
import type { InjectionConfig } from './configuration.ts';
import { hasTooLongAnnotations, portConflict, remarksOnUsers, tooLarge } from './conflicts.ts';
import { type Candidate, decide } from './decision.ts';
import { addToEvery, splitEvery } from './every-container.ts';
import { merge } from './merge.ts';
import { podShape } from './pod-shape.ts';
import type { InjectionRequest, InjectionResult } from './request.ts';
import { type Settled, settle } from './pod-values.ts';
import { annotationsOf, metadataOf, objectIn, proxyOf, specOf, textIn, textsIn, withAnnotations } from './pod.ts';
import { rewriteProbes } from './probes.ts';
import { mergeMetrics } from './prometheus.ts';
import { mismatchOf } from './shape.ts';
import { INJECTOR, STATUS, injectedBy, takeOut } from './take-out.ts';
import { type Template, brokenBy, instantiate } from './template.ts';
import type { PodValues } from './template-values.ts';

export type { InjectionRequest, InjectionResult };

export const MAX_WARNINGS = 10;
/** The longest that Kubernetes takes; a name is looked at only after injection. */
const LONGEST_NAME = 253;

/** Pure, and never throws: neither for what a user wrote nor for what another webhook did to the Pod. */
export interface Injector {
  inject(request: InjectionRequest): InjectionResult;
}

/** Of the set of templates that is in force. */
export function createInjector(config: InjectionConfig): Injector {
  return { inject: (request) => inject(request, config) };
}

function inject(request: InjectionRequest, config: InjectionConfig): InjectionResult {
  const given = checked(request.pod);
  if ('refused' in given) return given;
  const name = printName(request);
  const refuse = (message: string): InjectionResult => ({ refused: `Pod ${name}: ${message}` });
  const decision = decide(candidateOf(request.pod), request.namespace, config.rules);
  if (!decision.inject) {
    const { reason, asked, unselected } = decision;
    return {
      untouched: reason,
      warnings: asked === true ? [`Pod ${name} gets no sidecar: ${reason}`] : [],
      ...(unselected === true && { unselected }),
    };
  }
  if (hasTooLongAnnotations(request.pod))
    return refuse('its annotations are longer than 256 KiB in total; shorten them');
  const before = injectedBy(request.pod);
  if (before === 'another') return { untouched: 'it has a sidecar of another injector', warnings: [] };
  const pod = before === 'us' ? takeOut(request.pod) : request.pod;
  const restored = checked(pod);
  if ('refused' in restored) return restored;

  const annotations = readAnnotations(annotationsOf(pod));
  if ('wrong' in annotations) return refuse(annotations.wrong);
  const settled = settle(pod, annotations.value, request, config);
  if ('wrong' in settled) return refuse(settled.wrong);

  const names = annotations.value['inject.istio.io/templates'] ?? config.defaultTemplates;
  const patch = patchOf(names, settled.value.values, config.templates);
  if ('wrong' in patch) return refuse(patch.wrong);
  const { patch: ofProxy, every } = splitEvery(patch.value);
  const applied = applyPatch(pod, ofProxy);
  const { pod: injected, warnings } = finish(applied, every, settled.value, annotations.value, config);
  const conflict = portConflict(pod, proxyOf(injected), settled.value);
  if (conflict !== undefined)
    return { untouched: conflict, warnings: [`Pod ${name} gets no sidecar: ${conflict}; use another port`] };
  const broken = brokenBy(
    names.flatMap((each) => config.templates.get(each) ?? []),
    injected,
  );
  const reason = broken ?? tooLarge(injected);
  if (reason !== undefined) return refuse(reason);
  const remarks = [
    ...warnings,
    ...settled.value.warnings,
    ...remarksOn(annotationsOf(pod)),
    ...remarksOnUsers(injected),
  ];
  return { pod: injected, warnings: remarks.slice(0, MAX_WARNINGS).map((remark) => `Pod ${name}: ${remark}`) };
}

/** What templates cannot say: order, probes, metrics; and the record of what was added. */
function finish(
  { pod, added }: Applied,
  every: Json | undefined,
  settled: Settled,
  annotations: Annotations,
  { proxy, rules }: InjectionConfig,
): { readonly pod: Json; readonly warnings: readonly string[] } {
  const extended = addToEvery(withEachVariableOnce(pod), every);
  const arranged = arrange(extended.pod, settled, proxy.command);
  const { statusPort } = settled;
  // A template may say that its proxy answers no probes.
  const said = annotationsOf(arranged)[REWRITE];
  const rewrites =
    (annotations[REWRITE] ?? (said === undefined ? settled.rewriteProbes : said !== 'false')) && statusPort !== 0;
  const hasAgent = proxyOf(arranged) !== undefined;
  const { pod: probed, warnings } =
    rewrites && hasAgent ? rewriteProbes(arranged, statusPort) : { pod: arranged, warnings: [] };
  const scraped = settled.mergeMetrics && hasAgent && statusPort !== 0 ? mergeMetrics(probed, statusPort) : probed;
  const status = {
    ...addedLists(scraped, added),
    ...(every !== undefined && { inContainers: extended.inContainers }),
    revision: rules.revision || 'default',
    injector: INJECTOR,
  };
  return { pod: withAnnotations(scraped, { [STATUS]: JSON.stringify(status) }), warnings };
}

const REWRITE = 'sidecar.istio.io/rewriteAppHTTPProbers';

function patchOf(names: readonly string[], values: PodValues, templates: ReadonlyMap<string, Template>): Read<Json> {
  let patch: Json = {};
  for (const name of names) {
    const template = templates.get(name);
    if (template === undefined)
      return {
        wrong: `annotation inject.istio.io/templates: there is no template ${quote(name)}; there are ${[...templates.keys()].sort().join(', ')}`,
      };
    const instance = instantiate(template, values);
    if ('broken' in instance) return { wrong: instance.broken };
    const { apiVersion: _, kind: __, ...part } = instance.patch;
    patch = merge(patch, part);
  }
  return { value: patch };
}

function checked(pod: Json): { readonly refused: string } | { readonly pod: Json } {
  const mismatch = mismatchOf(pod, podShape);
  return mismatch === undefined ? { pod } : { refused: `Pod: ${printPath(mismatch.path)} ${mismatch.message}` };
}

function candidateOf(pod: Json): Candidate {
  const spec = specOf(pod);
  return {
    labels: textsIn(metadataOf(pod), 'labels'),
    annotations: annotationsOf(pod),
    hostNetwork: spec['hostNetwork'] === true,
    os: textIn(objectIn(spec, 'os'), 'name'),
  };
}

function printName({ pod, namespace }: InjectionRequest): string {
  const metadata = metadataOf(pod);
  const name = textIn(metadata, 'name') || `${textIn(metadata, 'generateName')}*`;
  return `${namespace.name}/${name.length > LONGEST_NAME ? `${name.slice(0, LONGEST_NAME)}...` : name}`;
}
