/**
 * Whether `a` is older than `b`. resourceVersions of one resource are increasing numbers; for anything else the result
 * is false.
 */
export function isBefore(a: string, b: string): boolean {
  return /^\d+$/.test(a) && /^\d+$/.test(b) && BigInt(a) < BigInt(b);
}
