/** `exportTo` settled: `.` replaced by the own namespace, the mesh default when empty. Sorted, distinct. */
export function settleExportTo(
  values: readonly string[] | undefined,
  namespace: string,
  fallback: readonly string[],
): readonly string[] {
  const given = values === undefined || values.length === 0 ? fallback : values;
  const settled = new Set(given.map((value) => (value === '.' ? namespace : value)));
  if (settled.has('*')) return ['*'];
  return [...settled].sort();
}
