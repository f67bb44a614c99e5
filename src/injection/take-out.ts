import { isObject, type Json } from '../api/json.ts';
import { parseJson } from '../api/annotation-json.ts';
import { annotationsOf, textsWithout, listIn, mapSpecLists, nameOf, proxyOf, textIn, withMetadata } from './pod.ts';
import { removeFromEvery } from './every-container.ts';
import { PROBERS, restoreProbes } from './probes.ts';
import { SCRAPING, restoreMetrics } from './prometheus.ts';

/** What was added to a Pod, by kind of item, as Istio's tools read it; and by whom. */
export const STATUS = 'sidecar.istio.io/status';
/** The user's own parts of what was added, as they were. */
export const OVERRIDES = 'proxy.istio.io/overrides';

export const INJECTOR = 'fairlead';

export const LISTS = ['initContainers', 'containers', 'volumes', 'imagePullSecrets'] as const;

/** Who injected a Pod, if anybody did. */
export function injectedBy(pod: Json): 'us' | 'another' | undefined {
  const text = annotationsOf(pod)[STATUS];
  if (text === undefined) return undefined;
  return parsed(text)['injector'] === INJECTOR ? 'us' : 'another';
}

/**
 * The Pod as it was before we injected it, with what others have done to it since. So a second run sees what the first
 * one saw: another webhook may have added a container, or the templates may have changed.
 */
export function takeOut(pod: Json): Json {
  const annotations = annotationsOf(pod);
  const added = parsed(annotations[STATUS] ?? '');
  const own = parsed(annotations[OVERRIDES] ?? '');
  const variable = (name: string): string | undefined => {
    const found = listIn(proxyOf(pod) ?? {}, 'env').find((each) => nameOf(each) === name);
    return found === undefined ? undefined : textIn(found, 'value');
  };
  const restored = restoreMetrics(restoreProbes(pod, variable(PROBERS) ?? ''), variable(SCRAPING));
  const without = mapSpecLists(restored, LISTS, (list, items) => {
    const names = new Set(textsOf(added[list]));
    const kept = items.filter((item) => !names.has(nameOf(item)));
    return [...kept, ...objectsOf(own[list])];
  });
  const { [STATUS]: _, [OVERRIDES]: __, ...others } = annotationsOf(without);
  return withMetadata(removeFromEvery(without, added['inContainers']), {
    annotations: textsWithout(others, added['annotations']),
    ...labelsOf(without, added),
  });
}

function labelsOf(pod: Json, added: Json): Json {
  const { labels } = isObject(pod['metadata']) ? pod['metadata'] : {};
  return isObject(labels) ? { labels: textsWithout(labels as Record<string, string>, added['labels']) } : {};
}

function textsOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}

function objectsOf(value: unknown): readonly Json[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** Annotations are text that anybody may have written. */
function parsed(text: string): Json {
  const value = parseJson(text);
  return isObject(value) ? value : {};
}
