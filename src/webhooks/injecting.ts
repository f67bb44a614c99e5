import { isObject, type Json } from '../api/json.ts';
import type { InjectionRequest, InjectionResult, Injector } from '../injection/injector.ts';
import type { ProxyConfigsOfPod } from '../model/proxy-config.ts';
import type { AdmissionRequest, Verdict } from './admission-review.ts';
import { readInjectionPath } from './injection-path.ts';
import { diff } from './json-patch.ts';

type Labels = Readonly<Record<string, string>>;

export interface InjectingOptions {
  /** The newest that is usable, or undefined if there is none yet. */
  readonly injector: () => Injector | undefined;
  /** The mesh config as users write it, parsed, for Pods of a cluster; absent: of the own one. */
  readonly meshConfig: (cluster?: string) => Json;
  readonly proxyConfigsOf: (pod: { readonly namespace: string; readonly labels: Labels }) => ProxyConfigsOfPod;
  /** Of a namespace in a cluster, as far as the watch has come; undefined: not known. */
  readonly labelsOf: (namespace: string, cluster?: string) => Labels | undefined;
  /** Of the same from the API server; undefined if it cannot say now. */
  readonly freshLabelsOf: (namespace: string, cluster?: string) => Promise<Labels | undefined>;
}

/** How an admission of a Pod ended, for metrics. */
export type InjectionOutcome = 'injected' | 'untouched' | 'refused';

/** What becomes of a Pod. */
export interface Injection {
  readonly verdict: Verdict;
  readonly outcome: InjectionOutcome;
}

/**
 * What becomes of a Pod. The webhook's configuration selects Pods by the labels that the API server sees. Those of the
 * watch may be older, so if they do not select the Pod, they are read again, and the Pod is then parsed and decided
 * again; it is not kept in memory meanwhile. If that fails, the Pod is refused: its owner tries again, whereas nobody would notice a
 * missing proxy.
 */
export function injectPod(
  request: AdmissionRequest,
  path: string,
  options: InjectingOptions,
): Injection | Promise<(again: AdmissionRequest) => Injection> {
  const pod = createdPod(request);
  if (pod === undefined) return { verdict: { allowed: true }, outcome: 'untouched' };
  const read = readInjectionPath(path);
  if ('problem' in read)
    return refused(`the URL of the webhook cannot be used: ${read.problem}. Correct it in its configuration.`);
  const injector = options.injector();
  if (injector === undefined)
    return refused('the control plane has no templates for injection; its log says why, and which file to correct.');
  const name = request.namespace === '' ? 'default' : request.namespace;
  const { cluster } = read.parameters;
  const injectWith = (labels: Labels, into: Json): InjectionResult =>
    injector.inject({
      pod: into,
      namespace: { name, labels },
      meshConfig: options.meshConfig(cluster),
      proxyConfigsOf: (ofPod) => options.proxyConfigsOf({ namespace: name, labels: ofPod }),
      parameters: read.parameters,
    });
  const known = options.labelsOf(name, cluster) ?? {};
  const result = injectWith(known, pod);
  if (!('untouched' in result) || result.unselected !== true) return outcomeOf(pod, result);
  return options.freshLabelsOf(name, cluster).then((fresh) => (again) => {
    if (fresh === undefined)
      return refused(`the labels of namespace ${name} cannot be read from the API server now; try again.`);
    const same = createdPod(again)!;
    return outcomeOf(same, sameLabels(known, fresh) ? result : injectWith(fresh, same));
  });
}

function createdPod({ object, group, kind, operation, subresource }: AdmissionRequest): Json | undefined {
  return group === '' && kind === 'Pod' && operation === 'CREATE' && subresource === '' ? object : undefined;
}

function outcomeOf(pod: InjectionRequest['pod'], result: InjectionResult): Injection {
  if ('refused' in result) return refused(result.refused);
  const { warnings } = result;
  if ('untouched' in result) return { verdict: { allowed: true, warnings }, outcome: 'untouched' };
  return { verdict: { allowed: true, warnings, patch: diff(pod, result.pod) }, outcome: 'injected' };
}

function refused(message: string): Injection {
  return { verdict: { allowed: false, message }, outcome: 'refused' };
}

function sameLabels(a: Labels, b: Labels): boolean {
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => a[name] === b[name]);
}

/** The labels of an object from the API server. */
export function labelsIn(object: unknown): Labels {
  const metadata = isObject(object) && isObject(object['metadata']) ? object['metadata'] : {};
  const labels = isObject(metadata['labels']) ? metadata['labels'] : {};
  return Object.fromEntries(
    Object.entries(labels).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}
