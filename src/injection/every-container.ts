import { type Json, isObject } from '../api/json.ts';
import { PROXY, listIn, nameOf, objectIn, specOf, withSpec } from './pod.ts';

/** In a template, a container of this name stands for each of the Pod's own: no container can be called so. */
const EVERY = '*';
/** What it may add, by what distinguishes the items. */
const KEYS = { env: 'name', volumeMounts: 'mountPath' } as const;
type List = keyof typeof KEYS;
const LISTS = Object.keys(KEYS) as readonly List[];

/** What was added to containers, by name: names of variables, paths of mounts. */
export type InContainers = Readonly<Record<string, Partial<Record<List, readonly string[]>>>>;

/** A patch without the container that stands for all, and that one. */
export function splitEvery(patch: Json): { readonly patch: Json; readonly every: Json | undefined } {
  const containers = listIn(objectIn(patch, 'spec'), 'containers');
  const every = containers.find((container) => nameOf(container) === EVERY);
  if (every === undefined) return { patch, every };
  return { patch: withSpec(patch, { containers: containers.filter((container) => container !== every) }), every };
}

/** The end of a sentence about a template, or undefined if nothing is wrong. */
export function wrongInEvery(template: Json): string | undefined {
  const { every } = splitEvery(template);
  const member = Object.keys(every ?? {}).find((name) => name !== 'name' && !Object.hasOwn(KEYS, name));
  return member === undefined ? undefined : `has ${member}; the container "${EVERY}" can have ${LISTS.join(' and ')}`;
}

/** What a container has itself wins. */
export function addToEvery(
  pod: Json,
  every: Json | undefined,
): { readonly pod: Json; readonly inContainers: InContainers } {
  if (every === undefined) return { pod, inContainers: {} };
  const added: [name: string, lists: InContainers[string]][] = [];
  const containers = listIn(specOf(pod), 'containers').map((container) => {
    if (nameOf(container) === PROXY) return container;
    const changed: Json = { ...container };
    const lists: Partial<Record<List, readonly string[]>> = {};
    for (const list of LISTS) {
      const own = listIn(container, list);
      const there = new Set(own.map((item) => item[KEYS[list]]));
      const items = listIn(every, list).filter((item) => !there.has(item[KEYS[list]]));
      if (items.length === 0) continue;
      // Before the others: variables refer to those that come earlier.
      changed[list] = [...items, ...own];
      lists[list] = items.map((item) => String(item[KEYS[list]]));
    }
    added.push([nameOf(container), lists]);
    return changed;
  });
  return { pod: withSpec(pod, { containers }), inContainers: Object.fromEntries(added) };
}

/** @param recorded {@link InContainers}, or whatever somebody has written in its place. */
export function removeFromEvery(pod: Json, recorded: unknown): Json {
  if (!isObject(recorded)) return pod;
  const containers = listIn(specOf(pod), 'containers').map((container) => {
    const lists = Object.hasOwn(recorded, nameOf(container)) ? recorded[nameOf(container)] : undefined;
    if (!isObject(lists)) return container;
    const changed: Json = { ...container };
    for (const list of LISTS) {
      const names = lists[list];
      if (!Array.isArray(names)) continue;
      const removed = new Set<unknown>(names);
      const kept = listIn(container, list).filter((item) => !removed.has(item[KEYS[list]]));
      if (kept.length > 0) changed[list] = kept;
      else delete changed[list];
    }
    return changed;
  });
  return withSpec(pod, { containers });
}
