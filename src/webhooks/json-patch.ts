import { isObject } from '../api/json.ts';
import type { PatchOperation } from './admission-review.ts';

/**
 * What turns one JSON value into the other, as RFC 6902. Objects are compared member by member; a list that differs is
 * replaced as a whole, except that what only comes after its last element is added one by one. Applies to exactly the
 * value that was compared. Throws a RangeError for values nested deeper than the stack.
 */
export function diff(before: unknown, after: unknown): readonly PatchOperation[] {
  const operations: PatchOperation[] = [];
  compare(before, after, '', operations);
  return operations;
}

function compare(before: unknown, after: unknown, path: string, operations: PatchOperation[]): void {
  if (isObject(before) && isObject(after)) return compareObjects(before, after, path, operations);
  if (isSame(before, after)) return;
  if (Array.isArray(before) && Array.isArray(after) && isPrefix(before, after)) {
    for (const value of after.slice(before.length)) operations.push({ op: 'add', path: `${path}/-`, value });
    return;
  }
  operations.push({ op: 'replace', path, value: after });
}

type Members = Readonly<Record<string, unknown>>;

function compareObjects(before: Members, after: Members, path: string, operations: PatchOperation[]): void {
  for (const key of Object.keys(before))
    if (!isSet(after, key) && isSet(before, key)) operations.push({ op: 'remove', path: `${path}/${escape(key)}` });
  for (const key of Object.keys(after)) {
    if (!isSet(after, key)) continue;
    const at = `${path}/${escape(key)}`;
    if (isSet(before, key)) compare(before[key], after[key], at, operations);
    else operations.push({ op: 'add', path: at, value: after[key] });
  }
}

/** JSON has no undefined. */
function isSet(object: Members, key: string): boolean {
  return Object.hasOwn(object, key) && object[key] !== undefined;
}

function isPrefix(before: readonly unknown[], after: readonly unknown[]): boolean {
  return before.length < after.length && before.every((value, index) => isSame(value, after[index]));
}

function isSame(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a) && Array.isArray(b))
    return a.length === b.length && a.every((value, index) => isSame(value, b[index]));
  if (!isObject(a) || !isObject(b)) return false;
  const keys = (object: Members): string[] => Object.keys(object).filter((key) => isSet(object, key));
  const ofA = keys(a);
  return ofA.length === keys(b).length && ofA.every((key) => isSet(b, key) && isSame(a[key], b[key]));
}

/** RFC 6901. */
function escape(key: string): string {
  return key.replaceAll('~', '~0').replaceAll('/', '~1');
}
