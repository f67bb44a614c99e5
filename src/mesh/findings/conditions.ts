import { type CustomKindName, kinds } from '../../api/kinds.ts';
import type { Collection, Emit, Graph } from '../../cache/graph.ts';
import { type Condition, conditionsOf } from '../../status/conditions.ts';
import type { Inputs } from '../inputs.ts';
import { type Problems, problemsKey } from './problems.ts';

/** The conditions that an object's status should have. */
export interface Verdict {
  readonly kind: CustomKindName;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly generation: number;
  readonly conditions: readonly Condition[];
}

/** By kind, keyed like the objects. */
export function declareConditions(graph: Graph, inputs: Inputs, problems: Problems): readonly Collection<Verdict>[] {
  return kinds
    .filter((kind) => kind.custom)
    .map((kind) =>
      graph.derive(
        `conditions.${kind.name}`,
        inputs.objects[kind.name],
        (key, { metadata }, read, emit: Emit<Verdict>) => {
          const { namespace = '', name, uid = '', generation = 0 } = metadata;
          const found = read.get(problems.byObject, problemsKey(kind, key)) ?? [];
          // Only custom kinds get here.
          emit(key, {
            kind: kind.name as CustomKindName,
            namespace,
            name,
            uid,
            generation,
            conditions: conditionsOf(generation, found),
          });
        },
      ),
    );
}
