import { type Json, isObject } from '../api/json.ts';
import type { InjectionRequest, InjectionResult } from './request.ts';
import { metadataOf, objectIn, textIn } from './pod.ts';

/** Where an object of a kind has its Pod template. */
const TEMPLATES: Readonly<Record<string, readonly string[]>> = {
  Deployment: ['spec', 'template'],
  StatefulSet: ['spec', 'template'],
  DaemonSet: ['spec', 'template'],
  ReplicaSet: ['spec', 'template'],
  ReplicationController: ['spec', 'template'],
  Job: ['spec', 'template'],
  CronJob: ['spec', 'jobTemplate', 'spec', 'template'],
};

/** The Pod template of an object, or a Pod itself, and the way there, or undefined if it has none. */
export function templateOf(object: Json): { readonly path: readonly string[]; readonly template: Json } | undefined {
  const kind = textIn(object, 'kind');
  const path = kind === 'Pod' ? [] : Object.hasOwn(TEMPLATES, kind) ? TEMPLATES[kind] : undefined;
  return path && { path, template: path.reduce(objectIn, object) };
}

/** What became of one Pod or Pod template. */
export interface Outcome {
  /** `Deployment shop/cart` */
  readonly object: string;
  readonly result: InjectionResult;
}

export interface InjectedObject {
  readonly object: Json;
  /** One for each Pod template; none: the object has none. */
  readonly outcomes: readonly Outcome[];
}

/** An object with its Pod templates injected; a list with those of its items. Others stay as they are. */
export function injectObject(
  object: Json,
  defaultNamespace: string,
  inject: (pod: Json, namespace: string, workload: InjectionRequest['workload']) => InjectionResult,
): InjectedObject {
  const kind = textIn(object, 'kind');
  if (kind.endsWith('List') && Array.isArray(object['items'])) {
    const items = (object['items'] as readonly unknown[]).map((item) =>
      isObject(item) ? injectObject(item, defaultNamespace, inject) : { object: item, outcomes: [] },
    );
    return {
      object: { ...object, items: items.map((item) => item.object) },
      outcomes: items.flatMap(({ outcomes }) => outcomes),
    };
  }
  const found = templateOf(object);
  if (found === undefined) return { object, outcomes: [] };
  const { path, template } = found;
  const name = textIn(metadataOf(object), 'name');
  const namespace = textIn(metadataOf(object), 'namespace') || defaultNamespace;
  const workload = kind === 'Pod' ? undefined : { apiVersion: textIn(object, 'apiVersion'), kind, name };
  const result = inject(template, namespace, workload);
  return {
    object: 'pod' in result ? (replaced(object, path, result.pod) as Json) : object,
    outcomes: [{ object: `${kind} ${namespace}/${name}`, result }],
  };
}

function replaced(value: unknown, path: readonly string[], by: Json): unknown {
  const [step, ...rest] = path;
  if (step === undefined) return by;
  const object = isObject(value) ? value : {};
  return { ...object, [step]: replaced(object[step], rest, by) };
}
