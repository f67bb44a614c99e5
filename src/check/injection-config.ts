import { isObject, type Json } from '../api/json.ts';
import type { LoadedDirectory } from '../directory/load.ts';
import { CONFIG_FILE, type InjectionConfig, loadInjection } from '../injection/configuration.ts';

/**
 * How Pods are injected, if exactly one ConfigMap in the files says so: of several, it is not known which one is for
 * which Pods.
 */
export function injectionConfigOf({ others }: Pick<LoadedDirectory, 'others'>): InjectionConfig | undefined {
  const found = others.flatMap((object): InjectionConfig[] => {
    const { kind, data } = object as typeof object & { readonly data?: unknown };
    if (kind !== 'ConfigMap' || !isObject(data) || !Object.hasOwn(data, CONFIG_FILE)) return [];
    const loaded = loadInjection(new Map(Object.entries(textsIn(data))));
    return 'config' in loaded ? [loaded.config] : [];
  });
  return found.length === 1 ? found[0] : undefined;
}

function textsIn(data: Json): Record<string, string> {
  return Object.fromEntries(
    Object.entries(data).flatMap(([name, text]) => (typeof text === 'string' ? [[name, text] as const] : [])),
  );
}
