import type { Field } from './field.ts';

/** Settles `exportTo`: `.` becomes the own namespace; if empty, the mesh default applies. Sorted, distinct. */
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

/** Each costs a few µs of a step, and half a kilobyte. */
const mostExports = 20_000;

/** Each named namespace has its own view of each host of the object, and of each selector of clients in it. */
export function checkExports(field: Field, exportTo: readonly string[], each: number): void {
  const product = exportTo.length * each;
  if (product > mostExports)
    field.invalid(
      `names ${exportTo.length} namespaces for each of ${each} hosts or source labels; at most ${mostExports} in total are allowed. Use "*", or split the object.`,
    );
}
