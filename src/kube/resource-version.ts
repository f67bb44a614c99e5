/**
 * Whether the first is the older one. resourceVersions of one resource are numbers that grow; of anything else nothing
 * is concluded.
 */
export function isBefore(a: string, b: string): boolean {
  return /^\d+$/.test(a) && /^\d+$/.test(b) && BigInt(a) < BigInt(b);
}
