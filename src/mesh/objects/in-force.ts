import { kindKey, parseKindKey } from '../../api/keys.ts';
import { type CustomKindName, kinds, restricts } from '../../api/kinds.ts';
import { type KubernetesObject, parseObjectKey } from '../../api/object.ts';
import type { HasProblems } from '../../api/problem.ts';
import type { Collection, Emit, Graph, Reader } from '../../cache/graph.ts';
import type { FormerGenerations, Inputs, RejectedGeneration, WaitingObject } from '../inputs.ts';

/** Which generation of an object is in force. Absent: the newest. */
export interface InForce {
  /** An earlier one, or none: the newest is not valid, proxies reject it, or it waits for other objects. */
  readonly inForce?: { readonly generation: number } | 'nothing';
}

/**
 * What the generations in force mean: of each object, the newest that is valid, that proxies do not reject, and that
 * does not wait for others; of kinds that restrict proxies, the newest that is valid. Problems are always those of the
 * newest.
 * @param nothing what an object means that is not in force at all. Undefined for kinds that restrict: an object that was
 * never good stays, and means what can be read of it.
 */
export function declareReconciled<Result extends HasProblems>(
  graph: Graph,
  name: string,
  kind: CustomKindName,
  { objects, formerGenerations, rejectedGenerations, waiting }: Inputs,
  reconcile: (key: string, object: KubernetesObject, read: Reader) => Result,
  nothing: Omit<Result, 'problems'> | undefined,
): Collection<Result & InForce> {
  return graph.derive(name, objects[kind], (key, object, read, emit: Emit<Result & InForce>) => {
    const newest = reconcile(key, object, read);
    const id = generationKey(kind, key);
    // Nobody who is shut out has a vote on that.
    const rejections = restricts(kind) ? undefined : read.get(rejectedGenerations, id);
    const wait = read.get(waiting, id);
    const isOut = wait !== undefined || isRejected(object, rejections);
    if (!isOut && isValid(newest)) return emit(key, newest);
    const { problems } = newest;
    const formers = formersOf(object, read.get(formerGenerations, id));
    const emitFormer = (former: KubernetesObject, result: Result): void =>
      emit(key, { ...result, problems, inForce: { generation: former.metadata.generation ?? 0 } });
    for (const former of wait === undefined ? formers : formersOfWaiting(object, wait, formers)) {
      if (isRejected(former, rejections)) continue;
      const result = reconcile(key, former, read);
      if (isValid(result)) return emitFormer(former, result);
    }
    const invalid = wait?.instead;
    if (invalid !== undefined && !isRejected(invalid, rejections))
      return emitFormer(invalid, reconcile(key, withStatusOf(object, invalid), read));
    // What is left of an invalid object is in force, as long as proxies take it.
    if (!isOut || nothing === undefined) emit(key, newest);
    else emit(key, { ...newest, ...nothing, problems, inForce: 'nothing' });
  });
}

/** Key of an object in the inputs about generations, the same as its `originKey`; `key` is that in its collection. */
export function generationKey(kind: CustomKindName, key: string): string {
  const { group } = kinds.find(({ name }) => name === kind)!;
  return kindKey(group, kindKey(kind, key));
}

/** Parts of a key made by {@link generationKey}. */
export function parseGenerationKey(key: string): {
  readonly kind: CustomKindName;
  /** That in its collection. */
  readonly objectKey: string;
  readonly namespace: string;
  readonly name: string;
} {
  const { kind, key: objectKey } = parseKindKey(parseKindKey(key).key);
  const { namespace, name } = parseObjectKey(objectKey);
  return { kind: kind as CustomKindName, objectKey, namespace, name };
}

function isValid({ problems }: HasProblems): boolean {
  return !problems.some(({ reason }) => reason === 'Invalid');
}

function isRejected({ metadata }: KubernetesObject, rejected: RejectedGeneration | undefined): boolean {
  return (
    rejected !== undefined &&
    rejected.uid === metadata.uid &&
    rejected.generations.some(({ generation }) => generation === metadata.generation)
  );
}

/** Newest first. An object that was deleted and created again has no past. */
function formersOf(object: KubernetesObject, former: FormerGenerations | undefined): readonly KubernetesObject[] {
  return (former?.objects ?? [])
    .filter(({ metadata }) => metadata.uid === object.metadata.uid)
    .map((each) => withStatusOf(object, each));
}

/** What is in force instead is not newer than that: other generations may have waited, too. */
function formersOfWaiting(
  object: KubernetesObject,
  { instead }: WaitingObject,
  formers: readonly KubernetesObject[],
): readonly KubernetesObject[] {
  if (instead === undefined) return [];
  const { uid, generation = 0 } = instead.metadata;
  const older = formers.filter(({ metadata }) => metadata.uid === uid && (metadata.generation ?? 0) < generation);
  return [withStatusOf(object, instead), ...older];
}

/** A status is not of any generation. */
function withStatusOf(object: KubernetesObject, former: KubernetesObject): KubernetesObject {
  const { status } = object as { readonly status?: unknown };
  return { ...former, status } as KubernetesObject;
}
