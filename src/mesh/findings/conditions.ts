import { type CustomKindName, type Kind, kinds } from '../../api/kinds.ts';
import { type KubernetesObject, sourceOfKey } from '../../api/object.ts';
import type { Collection, Emit, Graph, Reader } from '../../cache/graph.ts';
import { type Place, WHOLE } from '../../api/place.ts';
import { type PlacedConditions, conditionsByPlace } from '../../status/conditions.ts';
import { type Inputs, optionsOf } from '../inputs.ts';
import type { InForce } from '../objects/in-force.ts';
import { type Problems, problemsKey } from './problems.ts';

/** The conditions that an object's status should have. */
export interface Verdict {
  readonly kind: CustomKindName;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly generation: number;
  /** At each place of its status that is ours. */
  readonly said: readonly PlacedConditions[];
  /** If it is not this generation. */
  readonly inForce?: { readonly generation: number } | 'nothing';
  /** If it waits for other objects: a sentence about that. */
  readonly waits?: string;
}

/** Whether the verdict is about this generation, and it is in force, at least in part. */
export function isInForceBy(
  verdict: Verdict | undefined,
  { uid, generation }: Pick<Verdict, 'uid' | 'generation'>,
): boolean {
  if (verdict?.uid !== uid || verdict.generation !== generation || verdict.inForce !== undefined) return false;
  return verdict.said.some(({ conditions }) => {
    const accepted = conditions.find(({ type }) => type === 'Accepted');
    return accepted !== undefined && (accepted.status === 'True' || accepted.reason === 'Conflicted');
  });
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
    .map((kind) => {
      // Only custom kinds get here.
      const own = kind.name as CustomKindName;
      const objects = inputs.objects[kind.name];
      const judged = { kind, objects, reconciled: reconciled[own], placesOf: () => [WHOLE] };
      return { kind, verdicts: declareVerdicts(graph, inputs, problems, judged) };
    });
}

/** A kind of object with a status. */
export interface JudgedKind {
  readonly kind: Kind;
  readonly objects: Collection<KubernetesObject>;
  /** What is in force. */
  readonly reconciled: Collection<InForce>;
  /** Where in its status we have something to say. */
  placesOf(read: Reader, key: string): readonly Place[];
}

export function declareVerdicts(
  graph: Graph,
  inputs: Inputs,
  problems: Problems,
  { kind, objects, reconciled, placesOf }: JudgedKind,
): Collection<Verdict> {
  const own = kind.name as CustomKindName;
  return graph.derive(`conditions.${kind.name}`, objects, (key, { metadata }, read, emit: Emit<Verdict>) => {
    // Nothing is written into other clusters.
    if (sourceOfKey(key) !== optionsOf(read, inputs).clusterId) return;
    const { namespace = '', name, uid = '', generation = 0 } = metadata;
    const found = read.get(problems.byObject, problemsKey(kind, key)) ?? [];
    const { inForce } = read.get(reconciled, key) ?? {};
    const { waits } = read.get(inputs.waiting, problemsKey(kind, key)) ?? {};
    emit(key, {
      kind: own,
      namespace,
      name,
      uid,
      generation,
      said: conditionsByPlace(generation, placesOf(read, key), found, waits),
      ...(inForce && { inForce }),
      ...(waits !== undefined && { waits }),
    });
  });
}
