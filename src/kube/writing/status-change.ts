import { isDeepStrictEqual } from 'node:util';
import { isObject, type Json } from '../../api/json.ts';
import type { Kind, KindName } from '../../api/kinds.ts';
import type { KubernetesObject } from '../../api/object.ts';
import { isSame } from '../client/comparison.ts';
import { isBefore } from '../client/resource-version.ts';
import { type DesiredCondition, isOfOthers, mergeConditions, withSummary } from './conditions.ts';
import { type DesiredConditions, type EntryList, conditionsAt, mergeEntries } from './entries.ts';

export interface DesiredStatus {
  readonly kind: KindName;
  readonly namespace: string;
  readonly name: string;
  /** uid of the object that the conditions are about: they are never written to another object of this name. */
  readonly uid: string;
  /** Generation that they were computed from: they are not written to a newer one, which will get its own. */
  readonly generation: number;
  /** At each place that is ours. Entries of ours that are not among them are removed. */
  readonly said: readonly DesiredConditions[];
  /** Conditions of these types are of other programs, and stay, if their message does not begin like this. Absent: none. */
  readonly signature?: string;
  /** Of a ServiceEntry: its automatic addresses. Absent: they are not ours. */
  readonly addresses?: readonly { readonly value: string; readonly host: string }[];
}

/** What differs between the status of an object and what it should be. */
export interface StatusChange {
  /** The part of the status that we write, as it is. */
  readonly before: Json;
  /** What is written, if it differs: without conditions that are of others. */
  readonly said: readonly DesiredConditions[];
  /** The fields to write. */
  readonly status: Json;
  /** What the status is then. */
  readonly expected: Json;
}

export interface StatusContext {
  /** Condition types of our own kinds that are ours alone: undesired ones are removed. */
  readonly types: readonly string[];
  /** What follows from the conditions that an object of our own kinds will have at this generation. Absent: nothing. */
  readonly summary?: ((conditions: readonly unknown[], generation: number) => readonly DesiredCondition[]) | undefined;
  /** RFC 3339. */
  readonly now: string;
}

/** Undefined if the status is what it should be. */
export function statusChange(
  object: KubernetesObject,
  type: Kind,
  desired: DesiredStatus,
  { types, summary, now }: StatusContext,
): StatusChange | undefined {
  const there = statusOf(object);
  const { generation, addresses, signature } = desired;
  const said = desired.said.map(({ place, conditions }) => ({
    place,
    conditions: conditions.filter((each) => !isOfOthers(conditionsAt(there, place), each, signature)),
  }));
  const own = said.find(({ place }) => place.in === 'object')?.conditions;
  const summaryOf = (merged: readonly unknown[]) => summary?.(merged, generation) ?? [];
  const conditions =
    own &&
    (type.custom
      ? withSummary(there['conditions'], own, types, now, summaryOf)
      : mergeConditions(there['conditions'], own, [], now));
  const lists = mergedLists(there, said, types, now);
  const hasAddresses = addresses === undefined || isSame(() => isDeepStrictEqual(there['addresses'] ?? [], addresses));
  // Istio writes text. What it has written is left to it, as long as it is right.
  const isObserved =
    !type.custom || own === undefined || `${textOrNumber(there['observedGeneration'])}` === `${generation}`;
  if (conditions === undefined && lists === undefined && hasAddresses && isObserved) return undefined;
  const status = {
    ...(conditions && { conditions }),
    ...lists,
    ...(!hasAddresses && { addresses }),
    ...(!isObserved && { observedGeneration: generation }),
  };
  return { before: there, said, status, expected: { ...there, ...status } };
}

/** The lists that differ, or undefined if none does. */
function mergedLists(
  there: Json,
  said: readonly DesiredConditions[],
  types: readonly string[],
  now: string,
): Json | undefined {
  const merged = ENTRY_LISTS.flatMap((list) => {
    const entries = mergeEntries(list, there[list], said, types, now);
    return entries === undefined ? [] : [[list, entries] as const];
  });
  return merged.length === 0 ? undefined : Object.fromEntries(merged);
}

const ENTRY_LISTS: readonly EntryList[] = ['parents', 'ancestors', 'listeners'];

/** The part that we write. */
export function statusOf(object: KubernetesObject & { readonly status?: unknown }): Json {
  const status = isObject(object.status) ? object.status : {};
  const { conditions, addresses, observedGeneration } = status;
  return {
    ...(conditions !== undefined && { conditions }),
    ...Object.fromEntries(ENTRY_LISTS.filter((list) => status[list] !== undefined).map((list) => [list, status[list]])),
    ...(addresses !== undefined && { addresses }),
    ...(observedGeneration !== undefined && { observedGeneration }),
  };
}

function textOrNumber(value: unknown): string | number {
  return typeof value === 'number' || typeof value === 'string' ? value : '';
}

/** The version in which the API server has it. */
export function versionRead({ apiVersion }: KubernetesObject, { group, versions, version }: Kind): string {
  return versions.find((each) => apiVersion === `${group}/${each}`) ?? version;
}

/** A version that nobody can overtake would hide every later copy. */
export function isNewer(fresh: KubernetesObject, latest: KubernetesObject): boolean {
  const isSuperseded = (latest.metadata.generation ?? 0) > (fresh.metadata.generation ?? 0);
  const isSameObject = latest.metadata.uid === fresh.metadata.uid;
  return isSameObject && !isSuperseded && isBefore(versionOf(latest), versionOf(fresh));
}

export function versionOf(object: KubernetesObject): string {
  return object.metadata.resourceVersion ?? '';
}

/** The part of a response that is compared with the desired status; the rest is not kept. */
export function compared(answer: unknown): KubernetesObject | undefined {
  if (!isObject(answer) || !isObject(answer['metadata'])) return undefined;
  const { name, uid, generation, resourceVersion } = answer['metadata'];
  const status = statusOf(answer as unknown as KubernetesObject);
  return { metadata: { name, uid, generation, resourceVersion }, status } as unknown as KubernetesObject;
}
