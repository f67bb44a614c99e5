import type { Json } from '../api/json.ts';
import { merge } from './merge.ts';
import { LISTS, OVERRIDES } from './take-out.ts';
import {
  annotationsOf,
  listIn,
  mapSpecLists,
  metadataOf,
  nameOf,
  specOf,
  textsIn,
  withMetadata,
  withSpec,
} from './pod.ts';

const EACH = '*';

const CONTAINERS = ['initContainers', 'containers'] as const;

export interface Applied {
  readonly pod: Json;
  /** Names of what it did not have, by list; of labels and annotations, too. */
  readonly added: Json;
}

/**
 * A Pod with a patch in which what the user has written wins: labels and annotations, volumes, and fields of containers
 * that have the name of one of the patch (their image `auto` stands for that of the patch). Such containers are kept in
 * an annotation as they were. A container of the patch with the name `*` stands for each of the application's; what these
 * get from it stays when the patch is taken out.
 */
export function applyPatch(original: Json, whole: Json): Applied {
  const { pod, patch } = applyToEach(original, whole);
  const { metadata = {}, spec = {} } = patch as { readonly metadata?: Json; readonly spec?: Json };
  const { initContainers: _, containers: __, volumes: ___, imagePullSecrets: ____, ...rest } = spec;
  const own = Object.fromEntries(CONTAINERS.map((list) => [list, ownOf(pod, spec, list)]));
  const merged = withSpec(merge({ spec: specOf(pod) }, { spec: rest }), {
    ...Object.fromEntries(CONTAINERS.map((list) => [list, containersOf(pod, spec, list)])),
    volumes: union(pod, spec, 'volumes'),
    imagePullSecrets: union(pod, spec, 'imagePullSecrets'),
  });
  const labels = textsIn(metadata, 'labels');
  const annotations = textsIn(metadata, 'annotations');
  const hasOwn = Object.values(own).some((items) => items.length > 0);
  return {
    pod: withMetadata(
      { ...pod, spec: merged['spec'] },
      {
        labels: { ...labels, ...textsIn(metadataOf(pod), 'labels') },
        annotations: {
          ...annotations,
          ...annotationsOf(pod),
          ...(hasOwn && { [OVERRIDES]: JSON.stringify(withoutEmpty(own)) }),
        },
      },
    ),
    added: {
      ...Object.fromEntries(LISTS.map((list) => [list, addedTo(pod, spec, list)])),
      labels: newKeys(labels, textsIn(metadataOf(pod), 'labels')),
      annotations: newKeys(annotations, annotationsOf(pod)),
    },
  };
}

/** The part of the patch that is for each container of the application is applied; the rest of it. */
function applyToEach(pod: Json, patch: Json): { readonly pod: Json; readonly patch: Json } {
  const containers = listIn(specOf(patch), 'containers');
  const each = containers.find((container) => nameOf(container) === EACH);
  if (each === undefined) return { pod, patch };
  const { name: _, ...base } = each;
  const names = new Set(CONTAINERS.flatMap((list) => listIn(specOf(patch), list).map(nameOf)));
  return {
    pod: mapSpecLists(pod, ['containers'], (_list, items) =>
      items.map((container) => (names.has(nameOf(container)) ? container : override(base, container))),
    ),
    patch: withSpec(patch, { containers: containers.filter((container) => container !== each) }),
  };
}

/** Containers of the user that a container of the patch has the name of, wherever that is. */
function ownOf(pod: Json, patch: Json, list: (typeof CONTAINERS)[number]): readonly Json[] {
  const names = new Set(CONTAINERS.flatMap((each) => listIn(patch, each).map(nameOf)));
  return listIn(specOf(pod), list).filter((container) => names.has(nameOf(container)));
}

function containersOf(pod: Json, patch: Json, list: (typeof CONTAINERS)[number]): Json[] {
  const spec = specOf(pod);
  const mine = new Map(listIn(patch, list).map((container) => [nameOf(container), container]));
  const others = new Set(CONTAINERS.filter((each) => each !== list).flatMap((each) => listIn(patch, each).map(nameOf)));
  const kept = listIn(spec, list).flatMap((container) => {
    const base = mine.get(nameOf(container));
    if (base !== undefined) return [override(base, container)];
    return others.has(nameOf(container)) ? [] : [container];
  });
  const there = new Set(listIn(spec, list).map(nameOf));
  const elsewhere = new Map(CONTAINERS.flatMap((each) => listIn(spec, each)).map((each) => [nameOf(each), each]));
  const added = [...mine.values()].filter((container) => !there.has(nameOf(container)));
  return [
    ...kept,
    ...added.map((container) => {
      const users = elsewhere.get(nameOf(container));
      return users === undefined ? container : override(container, users);
    }),
  ];
}

function override(base: Json, container: Json): Json {
  const { image, imagePullPolicy, ...fields } = container;
  const isAuto = image === 'auto' || image === undefined;
  // The API server has filled it in before it asks: it takes `auto` for an image without a tag.
  const policy = isAuto && imagePullPolicy === 'Always' ? undefined : imagePullPolicy;
  return merge(base, {
    ...fields,
    ...(isAuto ? {} : { image }),
    ...(policy === undefined ? {} : { imagePullPolicy: policy }),
  });
}

function union(pod: Json, patch: Json, list: 'volumes' | 'imagePullSecrets'): Json[] {
  const own = listIn(specOf(pod), list);
  const names = new Set(own.map(nameOf));
  return [...own, ...listIn(patch, list).filter((item) => !names.has(nameOf(item)))];
}

/** What is to be removed when the Pod is to be as before; containers that were the user's are then put back. */
function addedTo(pod: Json, patch: Json, list: (typeof LISTS)[number]): string[] {
  const names = listIn(patch, list).map(nameOf);
  if (list === 'containers' || list === 'initContainers') return names;
  const there = new Set(listIn(specOf(pod), list).map(nameOf));
  return names.filter((name) => !there.has(name));
}

function newKeys(patch: Readonly<Record<string, string>>, there: Readonly<Record<string, string>>): string[] {
  return Object.keys(patch).filter((name) => there[name] === undefined);
}

function withoutEmpty(lists: Readonly<Record<string, readonly Json[]>>): Json {
  return Object.fromEntries(Object.entries(lists).filter(([, items]) => items.length > 0));
}
