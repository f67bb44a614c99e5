import { type Kind, kinds } from '../api/kinds.ts';
import { objectKey, printRef } from '../api/object.ts';
import type { Problem } from '../api/problem.ts';
import type { FieldPath } from '../api/schema-path.ts';
import type { Finding } from '../cli/program.ts';
import { parsePath } from '../directory/field-path.ts';
import type { LoadedDirectory } from '../directory/load.ts';
import type { FileReport } from '../directory/report.ts';
import { isTemplate } from '../directory/templates.ts';
import type { Mesh } from '../mesh.ts';
import { TEMPLATE } from '../yaml/document.ts';

/** What is wrong with the objects that were loaded, in the order of the files. */
export function findingsOf(
  loaded: Pick<LoadedDirectory, 'reports' | 'locate'>,
  mesh: Mesh,
  complete: boolean,
  more: readonly Problem[] = [],
): Finding[] {
  const said = new SaidByFiles(loaded.reports);
  const problems = [...[...mesh.problems.byObject.entries()].flatMap(([, found]) => found), ...more].filter(
    (problem) => !said.has(problem),
  );
  const templates = new Templates(mesh);
  return [
    ...loaded.reports.map((report) => ({ ...report, reason: 'Unreadable' })),
    ...problems.flatMap((problem) => templates.nameIn(problem)).map((problem) => ({
      ...problem,
      ...loaded.locate(problem.object, problem.field),
      severity: severityOf(problem, complete),
    })),
  ].sort((a, b) => compare(a.file, b.file) || (a.line ?? 0) - (b.line ?? 0) || numeric.compare(a.field, b.field));
}

/**
 * What the schemas say. A policy that they refuse is in force, and is read once more: what is wrong at the same place,
 * or within it, is the same mistake.
 */
class SaidByFiles {
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
        (path.length === own.length || (isError && reason === 'Invalid' && path.length < own.length)) &&
        path.every((step, i) => String(step) === String(own[i])),
    );
  }
}

/** What is wrong with values that are templates is one mistake for each object: it is not rendered. */
class Templates {
  readonly #named = new Set<string>();

  readonly #mesh: Mesh;

  constructor(mesh: Mesh) {
    this.#mesh = mesh;
  }

  nameIn(problem: Problem): readonly Problem[] {
    const { object, field, reason } = problem;
    const kind = reason === 'Invalid' || reason === 'RefNotFound' ? kinds.find((one) => isOf(one, object)) : undefined;
    if (kind === undefined) return [problem];
    const key = objectKey(object.source, object.namespace, object.name);
    const found = this.#mesh.inputs.objects[kind.name].get(key);
    if (found === undefined || !isTemplate(found, parsePath(field))) return [problem];
    if (this.#named.has(printRef(object))) return [];
    this.#named.add(printRef(object));
    return [{ ...problem, reason: 'Invalid', message: TEMPLATE }];
  }
}

const isOf = (kind: Kind, ref: Problem['object']): boolean => kind.kind === ref.kind && kind.group === ref.group;

/** What the files refer to may exist elsewhere; what has no effect does no harm. */
function severityOf({ reason }: Problem, complete: boolean): Finding['severity'] {
  if (reason === 'UnsupportedField' || reason === 'Ineffective' || reason === 'TooBroad') return 'warning';
  return reason === 'RefNotFound' && !complete ? 'warning' : 'error';
}

/** Sorts the tenth element of a list after the second. */
const numeric = new Intl.Collator('en', { numeric: true });

const compare = (a = '', b = ''): number => (a < b ? -1 : a > b ? 1 : 0);
