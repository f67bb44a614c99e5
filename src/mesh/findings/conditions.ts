import { type CustomKindName, type Kind, kinds } from '../../api/kinds.ts';
import { sourceOfKey } from '../../api/object.ts';
import type { Collection, Emit, Graph } from '../../cache/graph.ts';
import { type Condition, conditionsOf } from '../../status/conditions.ts';
import { type Inputs, optionsOf } from '../inputs.ts';
import { type InForce, generationKey } from '../objects/in-force.ts';
import { type Problems, problemsKey } from './problems.ts';

/** The conditions that an object's status should have. */
export interface Verdict {
  readonly kind: CustomKindName;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly generation: number;
  readonly conditions: readonly Condition[];
  /** If it is not this generation. */
  readonly inForce?: { readonly generation: number } | 'nothing';
  /** If it waits for other objects: a sentence about that. */
  readonly waits?: string;
}

/** Whether the verdict is about this generation, and it is in force, at least in part. */
export function isServed(
  verdict: Verdict | undefined,
  { uid, generation }: Pick<Verdict, 'uid' | 'generation'>,
): boolean {
  if (verdict?.uid !== uid || verdict.generation !== generation || verdict.inForce !== undefined) return false;
  const accepted = verdict.conditions.find(({ type }) => type === 'Accepted');
  return accepted !== undefined && (accepted.status === 'True' || accepted.reason === 'Conflicted');
}

/** The verdicts about the objects of a kind, keyed like these. */
export interface VerdictsOfKind {
  readonly kind: Kind;
  readonly verdicts: Collection<Verdict>;
}

/** @param reconciled what is in force of each kind. */
export function declareConditions(
  graph: Graph,
  inputs: Inputs,
  problems: Problems,
  reconciled: Readonly<Record<CustomKindName, Collection<InForce>>>,
): readonly VerdictsOfKind[] {
  return kinds
    .filter((kind) => kind.custom)
    .map((kind) => ({
      kind,
      verdicts: graph.derive(
        `conditions.${kind.name}`,
        inputs.objects[kind.name],
        (key, { metadata }, read, emit: Emit<Verdict>) => {
          // Nothing is written into other clusters.
          if (sourceOfKey(key) !== optionsOf(read, inputs).clusterId) return;
          const { namespace = '', name, uid = '', generation = 0 } = metadata;
          const found = read.get(problems.byObject, problemsKey(kind, key)) ?? [];
          // Only custom kinds get here.
          const own = kind.name as CustomKindName;
          const { inForce } = read.get(reconciled[own], key) ?? {};
          const { waits } = read.get(inputs.waiting, generationKey(own, key)) ?? {};
          emit(key, {
            kind: own,
            namespace,
            name,
            uid,
            generation,
            conditions: conditionsOf(generation, found, waits),
            ...(inForce && { inForce }),
            ...(waits !== undefined && { waits }),
          });
        },
      ),
    }));
}
