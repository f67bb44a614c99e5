import { type Json, isObject } from '../api/json.ts';

/** Lists of Pods whose items are merged by a key, as `kubectl patch` does; all other lists replace each other. */
const KEYS: Readonly<Record<string, string>> = {
  containers: 'name',
  initContainers: 'name',
  env: 'name',
  ports: 'containerPort',
  volumeMounts: 'mountPath',
  volumeDevices: 'devicePath',
  volumes: 'name',
  imagePullSecrets: 'name',
  hostAliases: 'ip',
  topologySpreadConstraints: 'topologyKey',
  resourceClaims: 'name',
};

/** Items that consist of one choice among many members: two of them cannot be mixed. */
const WHOLE: ReadonlySet<string> = new Set(['volumes', 'env']);

/**
 * A Pod, or a part of one, with a patch applied: maps are merged, lists as {@link KEYS} says, and the patch wins. `null`
 * removes a member, `$patch: delete` an item, and `$patch: replace` in a map or an item keeps nothing of what was there.
 */
export function merge(base: Json, patch: Json): Json {
  const { $patch, ...members } = patch;
  // Not an object yet: to such a one, a member called `__proto__` would not be a member.
  const merged = new Map($patch === 'replace' ? [] : Object.entries(base));
  for (const [name, value] of Object.entries(members)) {
    if (value === null) merged.delete(name);
    else merged.set(name, mergeValue(name, merged.get(name), value));
  }
  return Object.fromEntries(merged);
}

function mergeValue(name: string, base: unknown, patch: unknown): unknown {
  if (isObject(patch)) return merge(isObject(base) ? base : {}, patch);
  if (!Array.isArray(patch)) return patch;
  const key = Object.hasOwn(KEYS, name) ? KEYS[name] : undefined;
  if (key === undefined) return patch;
  return mergeItems(name, key, Array.isArray(base) ? base : [], patch);
}

/** Items keep their place; new ones follow. A user may have very many. */
function mergeItems(name: string, key: string, base: readonly unknown[], patch: readonly unknown[]): unknown[] {
  const merged: unknown[] = [...base];
  const places = new Map<string, number>();
  for (const [at, item] of merged.entries()) {
    const id = isObject(item) ? identityOf(name, key, item) : undefined;
    if (id !== undefined && !places.has(id)) places.set(id, at);
  }
  const deleted = new Set<number>();
  for (const item of patch) {
    if (!isObject(item)) continue;
    const id = identityOf(name, key, item);
    const at = places.get(id);
    const { $patch, ...rest } = item;
    if ($patch === 'delete') {
      if (at === undefined) continue;
      deleted.add(at);
      places.delete(id);
    } else if (at === undefined) places.set(id, merged.push(merge({}, rest)) - 1);
    else merged[at] = $patch === 'replace' || WHOLE.has(name) ? rest : merge(merged[at] as Json, rest);
  }
  return deleted.size === 0 ? merged : merged.filter((_, at) => !deleted.has(at));
}

/** Items with the same are one. A port is one of TCP unless it says otherwise. */
function identityOf(name: string, key: string, item: Json): string {
  return JSON.stringify(name === 'ports' ? [item[key], item['protocol'] ?? 'TCP'] : [item[key]]);
}
