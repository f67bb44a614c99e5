/**
 * Keys that say several things. What makes such a key and what takes it apart stand here, side by side; those of objects
 * are in `object.ts`.
 */

/** `a|b|c`. Only the last part may contain a `|`. */
export function joinKey(...parts: readonly (string | number)[]): string {
  return parts.join('|');
}

/** The parts of a key that {@link joinKey} made of two. */
export function splitKey(key: string): readonly [first: string, rest: string] {
  return splitAt(key, '|');
}

/** The same of three. */
export function splitKeyOfThree(key: string): readonly [first: string, second: string, rest: string] {
  const [first, rest] = splitKey(key);
  return [first, ...splitKey(rest)];
}

/** All parts of a key that {@link joinKey} made, if none contains a `|`. */
export function partsOfKey(key: string): readonly string[] {
  return key.split('|');
}

/** The last part of a key that {@link joinKey} made, if it contains no `|`. */
export function lastOfKey(key: string): string {
  return key.slice(key.lastIndexOf('|') + 1);
}

/** `namespace/name` */
export function nameKey(namespace: string, name: string): string {
  return `${namespace}/${name}`;
}

export function parseNameKey(key: string): { readonly namespace: string; readonly name: string } {
  const [namespace, name] = splitAt(key, '/');
  return { namespace, name };
}

/** `kind/key`: of an object among those of several kinds. */
export function kindKey(kind: string, key: string): string {
  return `${kind}/${key}`;
}

export function parseKindKey(key: string): { readonly kind: string; readonly key: string } {
  const at = key.indexOf('/');
  return { kind: key.slice(0, at), key: key.slice(at + 1) };
}

/** All of it is the first part if there is no separator. */
function splitAt(key: string, separator: string): readonly [string, string] {
  const at = key.indexOf(separator);
  return at < 0 ? [key, ''] : [key.slice(0, at), key.slice(at + 1)];
}
