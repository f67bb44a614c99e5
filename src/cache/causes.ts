/**
 * Which writes of a commit reached an entry: their positions, ascending. Exact up to {@link MAX_CAUSES}; beyond that,
 * the list ends with `MORE`, so that a bulk load does not carry thousands of numbers through every entry.
 */
export type Causes = readonly number[];

export const MAX_CAUSES = 16;
export const MORE = Number.MAX_SAFE_INTEGER;

export function joinCauses(a: Causes, b: Causes): Causes {
  if (a === b || b.length === 0) return a;
  if (a.length === 0) return b;
  if (a.length === 1 && b.length === 1 && a[0] === b[0]) return a;
  const joined = [...new Set([...a, ...b])].sort((x, y) => x - y);
  if (joined.length === a.length) return a;
  if (joined.length === b.length) return b;
  return joined.length > MAX_CAUSES ? [...joined.slice(0, MAX_CAUSES), MORE] : joined;
}
