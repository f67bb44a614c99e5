import { isEnvironmentName } from '../api/environment-name.ts';
import { type Json, isObject } from '../api/json.ts';
import { type FieldPath } from '../api/schema-path.ts';
import { quote } from '../api/quote.ts';

/** What a value must be, as far as we read it; members that are not listed may be anything, or are unknown (`closed`). */
export type Shape =
  | 'any'
  | 'text'
  | 'boolean'
  | 'whole'
  | 'port'
  | 'portOrName'
  | 'environmentName'
  | { readonly map: Shape }
  | { readonly list: Shape; readonly key?: string }
  | { readonly members: Readonly<Record<string, Shape>>; readonly required?: readonly string[]; readonly closed?: true }
  | { readonly oneOf: readonly string[] };

export interface Mismatch {
  readonly path: FieldPath;
  /** The end of a sentence that begins with the path. */
  readonly message: string;
}

/** The first value that is not as it must be. `null` counts as absent, as for the API server. */
export function mismatchOf(value: unknown, shape: Shape, path: FieldPath = []): Mismatch | undefined {
  if (shape === 'any' || value === null || value === undefined) return undefined;
  if (typeof shape === 'string') return scalarMismatch(value, shape, path);
  if ('oneOf' in shape)
    return typeof value === 'string' && shape.oneOf.includes(value)
      ? undefined
      : { path, message: `must be ${shape.oneOf.join(' or ')}` };
  if ('list' in shape) return listMismatch(value, shape, path);
  if (!isObject(value)) return { path, message: 'must be a map' };
  if ('map' in shape)
    return first(Object.entries(value), ([name, each]) => mismatchOf(each, shape.map, [...path, name]));
  return membersMismatch(value, shape, path);
}

function membersMismatch(
  value: Json,
  shape: Extract<Shape, { members: unknown }>,
  path: FieldPath,
): Mismatch | undefined {
  const missing = shape.required?.find((name) => value[name] === undefined || value[name] === null);
  if (missing !== undefined) return { path, message: `needs the field ${missing}` };
  return first(Object.entries(value), ([name, each]) => {
    const member = Object.hasOwn(shape.members, name) ? shape.members[name] : undefined;
    if (member !== undefined) return mismatchOf(each, member, [...path, name]);
    if (shape.closed !== true) return undefined;
    return { path: [...path, name], message: `is unknown; known are ${Object.keys(shape.members).join(', ')}` };
  });
}

function listMismatch(value: unknown, shape: Extract<Shape, { list: unknown }>, path: FieldPath): Mismatch | undefined {
  if (!Array.isArray(value)) return { path, message: 'must be a list' };
  const items: readonly unknown[] = value;
  const wrong = first([...items.entries()], ([at, item]) =>
    item === null ? { path: [...path, at], message: 'must not be empty' } : mismatchOf(item, shape.list, [...path, at]),
  );
  if (wrong !== undefined || shape.key === undefined) return wrong;
  const seen = new Set<unknown>();
  for (const [at, item] of items.entries()) {
    const key = (item as Json)[shape.key];
    if (seen.has(key))
      return { path: [...path, at], message: `has the ${shape.key} ${quote(String(key))} of another item` };
    seen.add(key);
  }
  return undefined;
}

function scalarMismatch(value: unknown, shape: Extract<Shape, string>, path: FieldPath): Mismatch | undefined {
  const isPort = Number.isInteger(value) && (value as number) >= 1 && (value as number) <= 65535;
  switch (shape) {
    case 'any':
      return undefined;
    case 'text':
      return typeof value === 'string' ? undefined : { path, message: 'must be text; quote it' };
    case 'boolean':
      return typeof value === 'boolean' ? undefined : { path, message: 'must be true or false' };
    case 'whole':
      return Number.isInteger(value) && (value as number) >= 0
        ? undefined
        : { path, message: 'must be a whole number' };
    case 'port':
      return isPort ? undefined : { path, message: 'must be a port from 1 to 65535' };
    case 'portOrName':
      return isPort || typeof value === 'string' ? undefined : { path, message: 'must be a port or the name of one' };
    case 'environmentName':
      return typeof value === 'string' && isEnvironmentName(value)
        ? undefined
        : { path, message: 'must be a name of letters, digits, "_", "-" and "." that does not begin with a digit' };
  }
}

function first<T>(items: readonly T[], find: (item: T) => Mismatch | undefined): Mismatch | undefined {
  for (const item of items) {
    const found = find(item);
    if (found !== undefined) return found;
  }
  return undefined;
}
