import type { Field } from './field.ts';

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

/** Each is a few µs of work in a step, and half a kilobyte. */
const mostExports = 20_000;

/** A namespace that is named sees each host of the object, and each selector of clients in it, in a way of its own. */
export function checkExports(field: Field, exportTo: readonly string[], each: number): void {
  const product = exportTo.length * each;
  if (product > mostExports)
    field.invalid(
      `names ${exportTo.length} namespaces for each of ${each} hosts or source labels; at most ${mostExports} in total are allowed. Use "*", or split the object.`,
    );
}
