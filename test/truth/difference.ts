import type { Tree } from './normalise.ts';

type Dict = { [key: string]: Tree };

/** One line for each place where two documents differ: `path: want ..., got ...`. */
export function differences(want: Tree, got: Tree, path = ''): string[] {
  if (same(want, got)) return [];
  if (isDict(want) && isDict(got))
    return [...new Set([...Object.keys(want), ...Object.keys(got)])].flatMap((key) => {
      const at = path === '' ? key : `${path}/${key}`;
      if (!(key in got)) return [`${at}: missing: ${short(want[key]!)}`];
      if (!(key in want)) return [`${at}: too much: ${short(got[key]!)}`];
      return differences(want[key]!, got[key]!, at);
    });
  if (Array.isArray(want) && Array.isArray(got)) return listDifferences(want, got, path);
  return [`${path}: want ${short(want)}, got ${short(got)}`];
}

function listDifferences(want: readonly Tree[], got: readonly Tree[], path: string): string[] {
  const wanted = names(want);
  const given = names(got);
  if (wanted !== undefined && given !== undefined) {
    const lines = [...new Set([...wanted, ...given])].flatMap((name) => {
      const w = want[wanted.indexOf(name)];
      const g = got[given.indexOf(name)];
      const at = `${path}[${name}]`;
      if (g === undefined) return [`${at}: missing: ${short(w!)}`];
      if (w === undefined) return [`${at}: too much: ${short(g)}`];
      return differences(w, g, at);
    });
    return lines.length > 0 ? lines : [`${path}: order: want ${wanted.join(', ')}, got ${given.join(', ')}`];
  }
  const rest = [...got];
  const missing: [number, Tree][] = [];
  want.forEach((item, i) => {
    const at = rest.findIndex((other) => same(item, other));
    if (at < 0) missing.push([i, item]);
    else rest.splice(at, 1);
  });
  if (missing.length === 0 && rest.length === 0) return [`${path}: order differs`];
  const paired = missing.length === rest.length;
  return [
    ...missing.flatMap(([i, item], n) =>
      paired ? differences(item, rest[n]!, `${path}[${i}]`) : [`${path}[${i}]: missing: ${short(item)}`],
    ),
    ...(paired ? [] : rest.map((item) => `${path}: too much: ${short(item)}`)),
  ];
}

/** Names of all elements, where each has one of its own. */
function names(list: readonly Tree[]): string[] | undefined {
  const found = list.map((item) => (isDict(item) && typeof item['name'] === 'string' ? item['name'] : undefined));
  if (found.some((name) => name === undefined) || new Set(found).size !== found.length) return undefined;
  return found as string[];
}

function same(a: Tree, b: Tree): boolean {
  if (a === b) return true;
  if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((item, i) => same(item, b[i]!));
  if (!isDict(a) || !isDict(b)) return false;
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => key in b && same(a[key]!, b[key]!));
}

function isDict(value: Tree): value is Dict {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function short(value: Tree): string {
  const text = JSON.stringify(value);
  return text.length > 300 ? `${text.slice(0, 299)}…` : text;
}
