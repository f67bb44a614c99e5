import { isObject } from '../api/json.ts';
import type { FieldPath } from '../api/schema-path.ts';

/** Whether the value there is a template in quotes, or has one as a member: what is wrong with it tells nobody anything. */
export function isTemplate(object: unknown, path: FieldPath): boolean {
  let value = object;
  for (const step of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return false;
    value = (value as Readonly<Record<string | number, unknown>>)[step];
  }
  const texts = Array.isArray(value) ? value : isObject(value) ? Object.values(value) : [value];
  return texts.some((text) => typeof text === 'string' && /\{\{.*\}\}/s.test(text));
}
