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
  const merged: Json = $patch === 'replace' ? {} : { ...base };
  for (const [name, value] of Object.entries(members)) {
    if (value === null) delete merged[name];
    else merged[name] = mergeValue(name, merged[name], value);
  }
  return merged;
}

function mergeValue(name: string, base: unknown, patch: unknown): unknown {
  if (isObject(patch)) return merge(isObject(base) ? base : {}, patch);
  if (!Array.isArray(patch)) return patch;
  const key = Object.hasOwn(KEYS, name) ? KEYS[name] : undefined;
  if (key === undefined) return patch;
  return mergeItems(name, key, Array.isArray(base) ? base : [], patch);
}

/** Items keep their place; new ones follow. */
function mergeItems(name: string, key: string, base: readonly unknown[], patch: readonly unknown[]): unknown[] {
  const merged = [...base];
  for (const item of patch) {
    if (!isObject(item)) continue;
    const at = merged.findIndex((other) => isObject(other) && isSame(name, key, other, item));
    const { $patch, ...rest } = item;
    if ($patch === 'delete') {
      if (at >= 0) merged.splice(at, 1);
    } else if (at < 0) merged.push(merge({}, rest));
    else merged[at] = $patch === 'replace' || WHOLE.has(name) ? rest : merge(merged[at] as Json, rest);
  }
  return merged;
}

/** A port is one of TCP unless it says otherwise. */
function isSame(name: string, key: string, a: Json, b: Json): boolean {
  if (a[key] !== b[key]) return false;
  return name !== 'ports' || (a['protocol'] ?? 'TCP') === (b['protocol'] ?? 'TCP');
}
