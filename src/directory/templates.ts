import { isObject } from '../api/json.ts';
import type { FieldPath } from '../api/schema-path.ts';
import { TEMPLATE } from '../yaml/document.ts';

const VARIABLE = 'has a variable that nothing has replaced; render it first, for example with kustomize or envsubst';

/** What to say if the value there, or a member of it, is a template in quotes: what is wrong with its text tells nobody anything. */
export function templateIn(object: unknown, path: FieldPath): string | undefined {
  let value = object;
  for (const step of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined;
    value = (value as Readonly<Record<string | number, unknown>>)[step];
  }
  const texts = Array.isArray(value) ? value : isObject(value) ? Object.values(value) : [value];
  const has = (pattern: RegExp) => texts.some((text) => typeof text === 'string' && pattern.test(text));
  if (has(/\{\{.*\}\}/s)) return TEMPLATE;
  return has(/\$\{\w+\}|\$\(\w+\)/) ? VARIABLE : undefined;
}
