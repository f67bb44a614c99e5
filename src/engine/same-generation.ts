import type { KubernetesObject } from '../api/object.ts';
import type { RejectedGeneration } from '../mesh/inputs.ts';
import type { KeptGenerations } from './kept-generations.ts';
import type { Suspect } from './suspects.ts';

export function areSame(objects: readonly KubernetesObject[], former: KeptGenerations['former']): boolean {
  return (
    objects.length === former.length &&
    objects.every(({ metadata }, i) => metadata.generation === former[i]?.generation)
  );
}

/** The cluster was restored from a backup: numbers of generations come again. */
export function isEarlier({ metadata: { generation } }: KubernetesObject, than: KubernetesObject): boolean {
  return generation !== undefined && generation < (than.metadata.generation ?? 0);
}

export function isSameGeneration(a: KubernetesObject, b: KubernetesObject | undefined): boolean {
  return b !== undefined && a.metadata.uid === b.metadata.uid && a.metadata.generation === b.metadata.generation;
}

export function isIn(rejected: RejectedGeneration | undefined, { uid, generation }: Suspect): boolean {
  return rejected?.uid === uid && rejected.generations.some((each) => each.generation === generation);
}
