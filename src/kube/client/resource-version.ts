/**
 * Whether `a` is older than `b`. resourceVersions of one resource are increasing numbers; for anything else the result
 * is false.
 */
export function isBefore(a: string, b: string): boolean {
  if (!/^\d+$/.test(a) || !/^\d+$/.test(b)) return false;
  // Not as numbers: a server may send millions of digits.
  const [x, y] = [a, b].map((digits) => digits.replace(/^0+/, '')) as [string, string];
  return x.length === y.length ? x < y : x.length < y.length;
}
