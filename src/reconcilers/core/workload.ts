import type { Node, Pod } from '../../api/core.ts';
import { type KubernetesObject, type ObjectRef, refOf } from '../../api/object.ts';
import type { Problem } from '../../api/problem.ts';
import { spiffeId } from '../../identity/spiffe.ts';
import type { Workload } from '../../model/endpoint.ts';
import { type Labels, saysMutualTls, tlsModeLabel } from '../../model/labels.ts';
import { Field, Findings } from '../field.ts';
import { readWorkloadSpec } from './workload-spec.ts';

export interface WorkloadContext {
  /** Where the object is. */
  readonly cluster: string;
  readonly trustDomain: string;
  /** The node that a Pod runs on. */
  readonly node?: Node | undefined;
  /** The network of an address in this cluster, if nothing else says it. */
  network?(address: string): string;
}

const LOCALITY_LABELS = ['topology.istio.io/locality', 'istio-locality'] as const;

/** A Pod with an address; undefined if it has none yet or has ended. */
export function reconcilePod(pod: Pod, context: WorkloadContext): Workload | undefined {
  const { name, namespace = '' } = pod.metadata;
  const status = pod.status ?? {};
  const addresses = status.podIPs?.map((entry) => entry.ip) ?? (status.podIP ? [status.podIP] : []);
  if (addresses.length === 0 || status.phase === 'Succeeded' || status.phase === 'Failed') return undefined;
  const labels = pod.metadata.labels ?? {};
  const locality = localityOfLabels(labels) || localityOfNode(context.node);
  const own = labels['topology.istio.io/network'] ?? '';
  const network = own || (context.network?.(addresses[0]!) ?? '');
  const account = pod.spec?.serviceAccountName;
  const ports = new Map<string, number>();
  const restartable = (pod.spec?.initContainers ?? []).filter((container) => container.restartPolicy === 'Always');
  for (const container of [...(pod.spec?.containers ?? []), ...restartable])
    for (const port of container.ports ?? [])
      if (port.name !== undefined && (port.protocol ?? 'TCP') === 'TCP' && !ports.has(port.name))
        ports.set(port.name, port.containerPort);
  return {
    kind: 'Pod',
    cluster: context.cluster,
    namespace,
    name,
    addresses,
    labels: augmentLabels(labels, { locality, network, cluster: context.cluster, nodeName: pod.spec?.nodeName ?? '' }),
    identity: account ? spiffeId(context.trustDomain, namespace, account) : '',
    tlsMode: tlsModeOf(labels),
    locality,
    network,
    ...(network !== own && { inheritsNetwork: true }),
    nodeName: pod.spec?.nodeName ?? '',
    workload: workloadName(pod),
    ports: Object.fromEntries(ports),
    ready:
      pod.metadata.deletionTimestamp === undefined &&
      (status.conditions ?? []).some((condition) => condition.type === 'Ready' && condition.status === 'True'),
  };
}

export interface ReconciledWorkloadEntry {
  /** None if the object is not valid. */
  readonly workloads: readonly Workload[];
  readonly problems: readonly Problem[];
}

export function reconcileWorkloadEntry(
  object: KubernetesObject & { readonly spec?: unknown; readonly status?: unknown },
  context: WorkloadContext,
): ReconciledWorkloadEntry {
  const { name, namespace = '', annotations = {} } = object.metadata;
  const findings = new Findings(refOf(context.cluster, object));
  const spec = readWorkloadSpec(new Field(object.spec, 'spec', findings).expectObject());
  const labels: Labels = { ...spec.labels, ...object.metadata.labels };
  const locality = spec.locality || localityOfLabels(labels);
  // Not that of its cluster: an entry may be for anything anywhere.
  const network = spec.network || (labels['topology.istio.io/network'] ?? '');
  const checked = annotations['proxy.istio.io/health-checks-enabled'] === 'true';
  const workload: Workload = {
    kind: 'WorkloadEntry',
    cluster: context.cluster,
    namespace,
    name,
    addresses: spec.address === '' ? [] : [spec.address],
    labels: augmentLabels(labels, { locality, network, cluster: context.cluster, nodeName: '' }),
    identity: spec.serviceAccount === '' ? '' : spiffeId(context.trustDomain, namespace, spec.serviceAccount),
    tlsMode: tlsModeFor(labels, spec.serviceAccount),
    locality,
    network,
    nodeName: '',
    workload: labels['service.istio.io/workload-name'] ?? name,
    ports: spec.ports,
    ...(spec.weight === undefined ? {} : { weight: spec.weight }),
    ready: !checked || isHealthy(object.status, findings.object),
  };
  return { workloads: findings.invalid ? [] : [workload], problems: findings.problems };
}

/** As the checking agent wrote it into the status; the owner is not to blame for odd values. */
function isHealthy(status: unknown, object: ObjectRef): boolean {
  const conditions = new Field(status, 'status', new Findings(object)).get('conditions').objects();
  return conditions.some(
    (condition) => condition.get('type').value === 'Healthy' && condition.get('status').value === 'True',
  );
}

function tlsModeOf(labels: Labels): 'istio' | 'disabled' {
  return saysMutualTls(labels) ? 'istio' : 'disabled';
}

/** Outside Kubernetes, a workload with an identity has a proxy, unless its labels say otherwise. */
export function tlsModeFor(labels: Labels, serviceAccount: string): 'istio' | 'disabled' {
  return serviceAccount !== '' && labels[tlsModeLabel] === undefined ? 'istio' : tlsModeOf(labels);
}

/** `region/zone/subzone` from a label, where dots may stand for slashes. */
export function localityOfLabels(labels: Labels): string {
  for (const key of LOCALITY_LABELS) {
    const value = labels[key];
    if (value) return value.includes('/') ? value : value.replaceAll('.', '/');
  }
  return '';
}

/** `region/zone/subzone` from a node's labels; empty if it has none of them. */
export function localityOfNode(node: Node | undefined): string {
  const labels = node?.metadata.labels ?? {};
  const region = labels['topology.kubernetes.io/region'] ?? labels['failure-domain.beta.kubernetes.io/region'] ?? '';
  const zone = labels['topology.kubernetes.io/zone'] ?? labels['failure-domain.beta.kubernetes.io/zone'] ?? '';
  const subZone = labels['topology.istio.io/subzone'] ?? '';
  if (region === '' && zone === '' && subZone === '') return '';
  return `${region}/${zone}/${subZone}`;
}

/** Labels, plus the topology that failoverPriority and subsets may name. */
export function augmentLabels(
  labels: Labels,
  topology: {
    readonly locality: string;
    readonly network: string;
    readonly cluster: string;
    readonly nodeName: string;
  },
): Labels {
  const [region = '', zone = '', subZone = ''] = topology.locality.split('/');
  const augmented: Record<string, string> = { ...labels };
  const add = (key: string, value: string) => {
    if (value !== '') augmented[key] = value;
  };
  add('topology.kubernetes.io/region', region);
  add('topology.kubernetes.io/zone', zone);
  add('topology.istio.io/subzone', subZone);
  add('topology.istio.io/cluster', topology.cluster);
  add('kubernetes.io/hostname', topology.nodeName);
  if (labels['topology.istio.io/network'] === undefined) add('topology.istio.io/network', topology.network);
  return augmented;
}

/** Name of the Pod's owner: the Deployment behind a ReplicaSet, the CronJob behind a Job, else the owner or the Pod. */
export function workloadName(pod: Pod): string {
  const owner = (pod.metadata.ownerReferences ?? []).find((reference) => reference.controller === true);
  if (owner === undefined) return pod.metadata.name;
  if (owner.kind === 'ReplicaSet' && pod.metadata.labels?.['pod-template-hash'] !== undefined) {
    const hash = `-${pod.metadata.labels['pod-template-hash']}`;
    if (owner.name.endsWith(hash)) return owner.name.slice(0, -hash.length);
  }
  if (owner.kind === 'Job') {
    const scheduled = /^(.+)-\d{8,10}$/.exec(owner.name);
    if (scheduled !== null) return scheduled[1]!;
  }
  return owner.name;
}
