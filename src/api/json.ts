export type Json = Record<string, unknown>;

export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Empty for anything else. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
