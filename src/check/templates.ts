import { type Kind, kinds } from '../api/kinds.ts';
import { objectKey, printRef } from '../api/object.ts';
import type { Problem } from '../api/problem.ts';
import { parsePath } from '../directory/field-path.ts';
import { templateIn } from '../directory/templates.ts';
import type { Mesh } from '../mesh.ts';

/** What is wrong with values that are templates is one mistake for each object: it is not rendered. */
export class Templates {
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
    const template = found && templateIn(found, parsePath(field));
    if (template === undefined) return [problem];
    if (this.#named.has(printRef(object))) return [];
    this.#named.add(printRef(object));
    return [{ ...problem, reason: 'Invalid', message: template }];
  }
}

const isOf = (kind: Kind, ref: Problem['object']): boolean => kind.kind === ref.kind && kind.group === ref.group;
