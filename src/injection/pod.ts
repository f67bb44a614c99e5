import { type Json, isObject } from '../api/json.ts';

export type Texts = Readonly<Record<string, string>>;

export const PROXY = 'istio-proxy';
export const INIT = 'istio-init';

/** Readers of a Pod whose shape has been checked. */
export function objectIn(value: Json, name: string): Json {
  const member = value[name];
  return isObject(member) ? member : {};
}

export function listIn(value: Json, name: string): readonly Json[] {
  const member = value[name];
  return Array.isArray(member) ? (member as readonly Json[]) : [];
}

/** Without those that are null, which are absent for the API server, too. */
export function textsIn(value: Json, name: string): Texts {
  const texts = objectIn(value, name);
  if (!Object.values(texts).includes(null)) return texts as Texts;
  return Object.fromEntries(Object.entries(texts).filter(([, text]) => text !== null)) as Texts;
}

export function textIn(value: Json, name: string): string {
  const member = value[name];
  return typeof member === 'string' ? member : '';
}

export const nameOf = (item: Json): string => textIn(item, 'name');

export function metadataOf(pod: Json): Json {
  return objectIn(pod, 'metadata');
}

export function specOf(pod: Json): Json {
  return objectIn(pod, 'spec');
}

export function annotationsOf(pod: Json): Texts {
  return textsIn(metadataOf(pod), 'annotations');
}

export function withMetadata(pod: Json, members: Json): Json {
  return { ...pod, metadata: { ...metadataOf(pod), ...members } };
}

export function withAnnotations(pod: Json, annotations: Texts): Json {
  return withMetadata(pod, { annotations: { ...annotationsOf(pod), ...annotations } });
}

/** Empty lists are left out. */
export function withSpec(pod: Json, members: Json): Json {
  const spec = { ...specOf(pod), ...members };
  const isEmpty = (value: unknown): boolean => Array.isArray(value) && value.length === 0;
  for (const name of Object.keys(members)) if (isEmpty(spec[name])) delete spec[name];
  return { ...pod, spec };
}

/** Containers that run as long as the Pod does, and those that run before, which may go on, too. */
export function allContainers(pod: Json): readonly Json[] {
  const spec = specOf(pod);
  return [...listIn(spec, 'initContainers'), ...listIn(spec, 'containers')];
}

/** The proxy, wherever it runs. */
export function proxyOf(pod: Json): Json | undefined {
  return allContainers(pod).find((container) => nameOf(container) === PROXY);
}

/** The Pod with a change to containers, in place. */
export function mapContainers(pod: Json, change: (container: Json) => Json): Json {
  const spec = specOf(pod);
  return withSpec(pod, {
    ...(spec['initContainers'] === undefined ? {} : { initContainers: listIn(spec, 'initContainers').map(change) }),
    containers: listIn(spec, 'containers').map(change),
  });
}

/** Environment variables after those that are there, in place of those of the same name. */
export function withEnvironment(container: Json, variables: readonly Json[]): Json {
  const names = new Set(variables.map(nameOf));
  const others = listIn(container, 'env').filter((variable) => !names.has(nameOf(variable)));
  return variables.length === 0 ? container : { ...container, env: [...others, ...variables] };
}

/** The Pod with a change to lists of its spec; those that become empty are left out. */
export function mapSpecLists<L extends string>(
  pod: Json,
  lists: readonly L[],
  change: (list: L, items: readonly Json[]) => readonly Json[],
): Json {
  const spec = specOf(pod);
  const changed = lists.map((list) => [list, change(list, listIn(spec, list))] as const);
  return withSpec(pod, Object.fromEntries(changed));
}

/** `names`: whatever somebody has written as a list of them. */
export function textsWithout(texts: Texts, names: unknown): Texts {
  const removed = new Set<unknown>(Array.isArray(names) ? names : []);
  return Object.fromEntries(Object.entries(texts).filter(([name]) => !removed.has(name)));
}
