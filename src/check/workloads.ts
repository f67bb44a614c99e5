/**
 * The workloads of some files: Pods, and the templates that make them (decision 0123). The rest of the folder: their proxies,
 * as if they were connected (`routers.ts` and `sidecars.ts`, decision 0122); what no condition can say, about annotations,
 * injection and ports of Services (`files.ts`); and that one mistake is told once (`said-by-files.ts`, `templates.ts`).
 */
import type { Pod } from '../api/core.ts';
import { isObject, type Json, textOf } from '../api/json.ts';
import { type KubernetesObject, type ObjectRef, refOf } from '../api/object.ts';
import type { LoadedDirectory } from '../directory/load.ts';
import { listIn, objectIn, textIn } from '../injection/pod.ts';
import { templateOf } from '../injection/workload-objects.ts';
import type { Labels } from '../model/labels.ts';

/** A Pod of some files, or what Pods are made from: the template of a Deployment, say. */
export interface WorkloadObject {
  readonly ref: ObjectRef;
  /** Where its Pod begins: `''` for a Pod, `spec.template.` for a Deployment. */
  readonly at: string;
  readonly namespace: string;
  readonly labels: Labels;
  readonly annotations: Labels;
  readonly spec: Json;
  /** It has been created, and says what became of it. */
  readonly isRunning: boolean;
  /** RFC 3339; empty: not known. */
  readonly createdAt: string;
  /** Another object makes it. */
  readonly isOwned: boolean;
}

type Files = Pick<LoadedDirectory, 'objects' | 'others'>;

export function workloadsOf({ objects, others }: Files, source: string): readonly WorkloadObject[] {
  return [...(objects.get('Pod') ?? []), ...others].flatMap((object) => {
    const place = templateOf(object as unknown as Json);
    if (place === undefined) return [];
    const { path, template } = place;
    const metadata = objectIn(template, 'metadata');
    const { namespace = '', creationTimestamp = '', ownerReferences = [] } = object.metadata;
    return [
      {
        ref: refOf(source, object),
        at: path.map((step) => `${step}.`).join(''),
        namespace,
        labels: textMembers(metadata['labels']),
        annotations: textMembers(metadata['annotations']),
        spec: readable(objectIn(template, 'spec')),
        isRunning: path.length === 0 && textIn(objectIn(template, 'status'), 'phase') === 'Running',
        createdAt: creationTimestamp,
        isOwned: ownerReferences.length > 0,
      },
    ];
  });
}

/**
 * The files with a Pod for each template, and with an address for each Pod, as if they were running: who selects nobody,
 * and who leads where, depends on them. Where the files have what such a Pod is made of, and itself, it is there twice.
 */
export function asRunning<T extends Files>(files: T, workloads: readonly WorkloadObject[]): T {
  const asked = workloads.filter(({ ref, isOwned }) => ref.kind !== 'Pod' && !isOwned);
  const written = (files.objects.get('Pod') ?? []) as readonly Pod[];
  const pods = [
    ...written.map((pod, i) => (pod.status === undefined ? { ...pod, status: runningAt(i) } : pod)),
    ...asked.map((workload, i) => podOf(workload, written.length + i)),
  ];
  return { ...files, objects: new Map([...files.objects, ['Pod', pods]]) };
}

function podOf({ ref, namespace, labels, annotations, spec }: WorkloadObject, i: number): Pod {
  const containers = listIn(spec, 'containers').map(containerOf);
  const initContainers = listIn(spec, 'initContainers').map(containerOf);
  const pod: KubernetesObject & Pick<Pod, 'spec' | 'status'> = {
    apiVersion: 'v1',
    kind: 'Pod',
    // Not the name of a Pod that its owner makes.
    metadata: { name: `${ref.name}.${ref.kind.toLowerCase()}`, namespace, labels, annotations },
    spec: { containers, initContainers, serviceAccountName: textIn(spec, 'serviceAccountName') || 'default' },
    status: runningAt(i),
  };
  return pod as Pod;
}

/** What is read of it. */
function containerOf(container: Json): { name: string; ports: { name?: string; containerPort: number }[] } {
  const ports = listIn(container, 'ports').flatMap(({ name, containerPort, protocol = 'TCP' }) =>
    typeof containerPort === 'number' && protocol === 'TCP'
      ? [{ containerPort, ...(typeof name === 'string' && { name }) }]
      : [],
  );
  return { name: textIn(container, 'name'), ports };
}

/** Of addresses that nobody has. */
function runningAt(i: number): NonNullable<Pod['status']> {
  const podIP = `240.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`;
  return { phase: 'Running', podIP, conditions: [{ type: 'Ready', status: 'True' }] };
}

/** Nobody has checked a template: what is not a container, or a port of one, has no members. */
function readable(spec: Json): Json {
  const objectsIn = (value: Json, name: string): Json[] =>
    listIn(value, name).map((item: unknown) => (isObject(item) ? item : {}));
  const containers = (name: string): Json[] =>
    objectsIn(spec, name).map((container) => ({ ...container, ports: objectsIn(container, 'ports') }));
  return { ...spec, containers: containers('containers'), initContainers: containers('initContainers') };
}

function textMembers(value: unknown): Labels {
  if (!isObject(value)) return {};
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, text]) => (typeof text === 'string' ? [[key, textOf(text)] as const] : [])),
  );
}
