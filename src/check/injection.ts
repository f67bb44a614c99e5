import { type KubernetesObject, refOf } from '../api/object.ts';
import type { Problem } from '../api/problem.ts';
import { quote } from '../api/quote.ts';
import type { LoadedDirectory } from '../directory/load.ts';
import { type Decision, type DecisionRules, decide } from '../injection/decision.ts';
import type { InjectionConfig } from '../injection/configuration.ts';
import { listIn, objectIn, textIn } from '../injection/pod.ts';
import { PROXY_ID } from '../interception/options.ts';
import { type Labels, printSelector } from '../model/labels.ts';
import type { FileContext } from './context.ts';
import { injectionConfigOf } from './injection-config.ts';
import type { WorkloadObject } from './workloads.ts';

const NAMESPACE = 'istio-injection';
const REVISION = 'istio.io/rev';
const INJECT = 'sidecar.istio.io/inject';
const PROXY = 'istio-proxy';

interface InjectionContext extends Pick<FileContext, 'source' | 'rootNamespace'> {
  readonly config: InjectionConfig | undefined;
}

/** Of a control plane whose settings are not in the files. */
const unconfigured: DecisionRules = {
  revision: '',
  tags: [],
  policy: 'enabled',
  enableNamespacesByDefault: false,
  neverInject: [],
  alwaysInject: [],
};

/** What a label or a Pod's container is likely to get wrong about sidecars, before the webhook is asked. */
export function remarksOnInjection(
  files: Pick<LoadedDirectory, 'objects' | 'others'>,
  workloads: readonly WorkloadObject[],
  { source, rootNamespace, complete }: FileContext,
): readonly Problem[] {
  const { objects } = files;
  const config = injectionConfigOf(files);
  const context = { source, rootNamespace, config };
  const namespaces = new Map((objects.get('Namespace') ?? []).map((object) => [object.metadata.name, object]));
  const byNamespace = Map.groupBy(workloads, ({ namespace }) => namespace);
  return [
    ...[...namespaces.values()].flatMap((namespace) =>
      onNamespace(namespace, byNamespace.get(namespace.metadata.name) ?? [], context),
    ),
    ...[...byNamespace].flatMap(([name, own]) => {
      const namespace = namespaces.get(name)?.metadata.labels;
      const known = namespaces.has(name) || complete ? (namespace ?? {}) : undefined;
      return [...onWorkloads(name, own, known, config), ...onOldProxies(own, name, known, config)];
    }),
  ];
}

function onNamespace(
  namespace: KubernetesObject,
  workloads: readonly WorkloadObject[],
  { source, rootNamespace, config }: InjectionContext,
): Problem[] {
  const { name, labels = {} } = namespace.metadata;
  const remark = (field: string, message: string): Problem => ({
    object: refOf(source, namespace),
    field,
    reason: 'Ineffective',
    message,
  });
  const [injection, revision] = [labels[NAMESPACE], labels[REVISION]];
  if (injection === 'enabled' && revision !== undefined)
    return [
      remark(
        `metadata.labels["${REVISION}"]`,
        `has no effect beside ${NAMESPACE}, which asks the default control plane for sidecars. Remove one of the two labels.`,
      ),
    ];
  if (injection !== undefined && injection !== 'enabled' && injection !== 'disabled')
    return [
      remark(
        `metadata.labels["${NAMESPACE}"]`,
        `${quote(injection)} asks for no sidecars: Pods are created without one. Write enabled, or disabled.`,
      ),
    ];
  if (injection !== undefined || revision !== undefined || name === rootNamespace) return [];
  // For a mode without sidecars, something else is said.
  if ((labels['istio.io/dataplane-mode'] ?? 'none') !== 'none') return [];
  const waiting = workloads.find((workload) => !hasProxy(workload) && isUnselected(workload, name, {}, config));
  if (waiting === undefined) return [];
  return [
    remark(
      'metadata.labels',
      `do not ask for sidecars, so that ${printName(waiting)} gets none: it has no mutual TLS, and nothing enforces its policies. Add ${NAMESPACE}: enabled; or disabled, if that is meant.`,
    ),
  ];
}

/** @param labels of the namespace, if it is in the files. */
function onWorkloads(
  namespace: string,
  workloads: readonly WorkloadObject[],
  labels: Labels | undefined,
  config: InjectionConfig | undefined,
): Problem[] {
  const seen = new Set<string>();
  return workloads.flatMap((workload): Problem[] => {
    const { ref: object, at, spec, isRunning, isOwned } = workload;
    const key = `${object.kind} ${isOwned ? printSelector(ofAllReplicas(workload.labels)) : object.name}`;
    // Of replicas, one is enough.
    if (seen.has(key)) return [];
    seen.add(key);
    const decision = labels && decisionFor(workload, namespace, labels, config);
    const remarks: Problem[] = [];
    const add = (field: string, reason: Problem['reason'], message: string): void => {
      remarks.push({ object, field: `${at}${field}`, reason, message });
    };
    const proxy = proxyOf(workload);
    if (proxy?.image === 'auto' && (isRunning || decision?.inject === false))
      add(
        `${proxy.field}.image`,
        'Invalid',
        `is "auto", which only injection replaces, and ${isRunning ? 'the Pod was not injected' : reasonOf(decision)}. Until then the image cannot be pulled.`,
      );
    if (isRunning && proxy === undefined && decision?.inject === true)
      add(
        'spec.containers',
        'Ineffective',
        'has no proxy, although its labels and its namespace ask for one: it is older than the label, or was created while no webhook answered. Create it again (kubectl rollout restart); until then it has no mutual TLS, and nothing enforces its policies.',
      );
    if ((decision?.inject !== false && !optsOut(workload)) || proxy !== undefined)
      for (const { field, name } of usersOfProxy(spec))
        add(
          field,
          'Ineffective',
          `${PROXY_ID} is the user of the proxy: the connections of ${name} pass it by, without mutual TLS and without routes. Choose another.`,
        );
    return remarks;
  });
}

/**
 * Pods whose proxy is from another image than that of the newest Pod, or than injection gives Pods now.
 *
 * @param labels of the namespace, if it is in the files.
 */
function onOldProxies(
  workloads: readonly WorkloadObject[],
  namespace: string,
  labels: Labels | undefined,
  config: InjectionConfig | undefined,
): Problem[] {
  const pods = workloads.flatMap((workload) => {
    const image = proxyOf(workload)?.image;
    const chosen = workload.annotations['sidecar.istio.io/proxyImage'] !== undefined;
    return workload.isRunning && image !== undefined && image !== 'auto' && !chosen ? [{ workload, image }] : [];
  });
  const aged = pods.filter(({ workload }) => workload.createdAt !== '');
  const newest = aged.reduce<(typeof pods)[number] | undefined>(
    (best, pod) => (best === undefined || pod.workload.createdAt > best.workload.createdAt ? pod : best),
    undefined,
  );
  return pods.flatMap(({ workload, image }): Problem[] => {
    const given =
      labels && config && decisionFor(workload, namespace, labels, config, true).inject
        ? givenInstead(image, config)
        : undefined;
    const isOld = newest !== undefined && workload.createdAt !== '' && variantless(image) !== variantless(newest.image);
    if (!isOld && given === undefined) return [];
    const reference =
      given === undefined
        ? `${printName(newest!.workload)}, which is newer, has ${quote(newest!.image)}`
        : `injection gives Pods ${quote(given)}`;
    const message = `is ${quote(image)}, and ${reference}. Create the Pod again (kubectl rollout restart) for the proxy that new Pods get.`;
    const field = `${proxyOf(workload)!.field}.image`;
    return [{ object: workload.ref, field, reason: 'Ineffective', message }];
  });
}

/** The image that a Pod gets now in place of one from the same repository. */
function givenInstead(image: string, { proxy }: InjectionConfig): string | undefined {
  const known = [proxy.image, ...Object.values(proxy.imageTypes)];
  if (known.some((each) => variantless(each) === variantless(image))) return undefined;
  return repositoryOf(proxy.image) === repositoryOf(image) ? proxy.image : undefined;
}

const repositoryOf = (image: string): string => image.replace(/@.*$|:[^/]*$/, '');

/** `-debug` and `-distroless` are chosen by each Pod. */
const variantless = (image: string): string => image.replace(/-(debug|distroless)$/, '');

/** Labels that tell the replicas of a workload apart. */
function ofAllReplicas(labels: Labels): Labels {
  const own = ['pod-template-hash', 'controller-revision-hash', 'statefulset.kubernetes.io/pod-name'];
  return Object.fromEntries(Object.entries(labels).filter(([label]) => !own.includes(label)));
}

function printName({ ref }: WorkloadObject): string {
  return `${ref.kind} ${ref.name}`;
}

/**
 * What injection decides if whatever control plane is asked has this revision.
 *
 * @param byOwn only if it is the control plane with this config.
 */
function decisionFor(
  { labels, annotations, spec }: WorkloadObject,
  name: string,
  namespace: Labels,
  config: InjectionConfig | undefined,
  byOwn = false,
): Decision {
  const revisions = [namespace[REVISION], labels[REVISION], 'default'].filter((each) => each !== undefined);
  const { rules: own = unconfigured } = config ?? {};
  const rules = byOwn ? own : { ...own, revision: '', tags: revisions };
  const os = textIn(objectIn(spec, 'os'), 'name');
  const candidate = { labels, annotations, hostNetwork: spec['hostNetwork'] === true, os };
  return decide(candidate, { name, labels: namespace }, rules);
}

function isUnselected(
  workload: WorkloadObject,
  name: string,
  namespace: Labels,
  config: InjectionConfig | undefined,
): boolean {
  const { hostNetwork } = workload.spec;
  const isJob = workload.ref.kind === 'Job' || workload.ref.kind === 'CronJob';
  if (hostNetwork === true || isJob || optsOut(workload)) return false;
  const decision = decisionFor(workload, name, namespace, config);
  return !decision.inject && decision.unselected === true;
}

function optsOut({ labels, annotations }: WorkloadObject): boolean {
  return (labels[INJECT] ?? annotations[INJECT]) === 'false';
}

function reasonOf(decision: Decision | undefined): string {
  return decision?.inject === false ? `the Pod is not injected: ${decision.reason}` : 'the Pod is not injected';
}

const lists = ['containers', 'initContainers'] as const;

function proxyOf({ spec }: WorkloadObject): { readonly field: string; readonly image: string } | undefined {
  for (const list of lists)
    for (const [i, container] of listIn(spec, list).entries())
      if (textIn(container, 'name') === PROXY)
        return { field: `spec.${list}[${i}]`, image: textIn(container, 'image') };
  return undefined;
}

const hasProxy = (workload: WorkloadObject): boolean => proxyOf(workload) !== undefined;

/** Where the proxy's user runs something else. */
function usersOfProxy(spec: WorkloadObject['spec']): { readonly field: string; readonly name: string }[] {
  const others = lists.flatMap((list) =>
    listIn(spec, list).flatMap((container, i) =>
      textIn(container, 'name') === PROXY ? [] : [{ container, field: `spec.${list}[${i}].securityContext.runAsUser` }],
    ),
  );
  const ofPod = objectIn(spec, 'securityContext')['runAsUser'] === PROXY_ID;
  const inherits = others.some(({ container }) => objectIn(container, 'securityContext')['runAsUser'] === undefined);
  return [
    ...(ofPod && inherits ? [{ field: 'spec.securityContext.runAsUser', name: 'its containers' }] : []),
    ...others.flatMap(({ container, field }) =>
      objectIn(container, 'securityContext')['runAsUser'] === PROXY_ID
        ? [{ field, name: `container ${textIn(container, 'name')}` }]
        : [],
    ),
  ];
}
