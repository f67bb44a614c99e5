import { printRef } from '../api/object.ts';
import type { Problem } from '../api/problem.ts';
import type { FieldPath } from '../api/schema-path.ts';
import { parsePath } from '../directory/field-path.ts';
import type { FileReport } from '../directory/report.ts';

/**
 * What the schemas say. A policy that they refuse is in force, and is read once more: what is wrong at the same place,
 * or within it, is the same mistake.
 */
export class SaidByFiles {
  readonly #byObject = new Map<string, { readonly path: FieldPath; readonly isError: boolean }[]>();

  constructor(reports: readonly FileReport[]) {
    for (const { object, field, severity } of reports) {
      if (object === undefined) continue;
      const key = printRef(object);
      const said = this.#byObject.get(key) ?? [];
      this.#byObject.set(key, said);
      said.push({ path: parsePath(field), isError: severity === 'error' });
    }
  }

  has({ object, field, reason }: Problem): boolean {
    const said = this.#byObject.get(printRef(object));
    if (said === undefined) return false;
    const own = parsePath(field);
    return said.some(
      ({ path, isError }) =>
        (path.length === own.length ||
          (isError && reason === 'Invalid' && path.length > 0 && path.length < own.length)) &&
        path.every((step, i) => String(step) === String(own[i])),
    );
  }
}
