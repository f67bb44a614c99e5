export type Json = Record<string, unknown>;

export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Empty for anything else. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** Without members that are null: to Kubernetes, these are absent. Whatever has none of them stays the same value. */
export function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) {
    const items = value.map(withoutNulls);
    return items.every((item, index) => item === value[index]) ? value : items;
  }
  if (!isObject(value)) return value;
  const members = Object.entries(value);
  const kept = members.flatMap(([key, member]) => (member === null ? [] : [[key, withoutNulls(member)] as const]));
  const isSame = kept.length === members.length && kept.every(([key, member]) => member === value[key]);
  return isSame ? value : Object.fromEntries(kept);
}
