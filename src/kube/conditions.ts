import { isObject, type Json } from '../api/json.ts';

interface Condition {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason: string;
  readonly message: string;
  /** A JSON integer, even where Istio's own CRDs would accept text. */
  readonly observedGeneration: number;
  /** RFC 3339. */
  readonly lastTransitionTime: string;
}

/** Without the transition time, which follows only from a comparison with the existing condition. */
export type DesiredCondition = Omit<Condition, 'lastTransitionTime'> & {
  /** If there is a condition of this type for this generation, it stays. */
  readonly isDefault?: true;
};

/** The conditions that an object should have. */
export interface DesiredConditions {
  /** In `status.conditions`. */
  readonly conditions?: readonly DesiredCondition[];
  /** In `status.parents`, as in Gateway API's routes: a list for each parent, among those of other controllers. */
  readonly parents?: { readonly controllerName: string; readonly lists: readonly ParentConditions[] };
}

export interface ParentConditions {
  /** Gateway API's ParentReference. */
  readonly parentRef: Json;
  readonly conditions: readonly DesiredCondition[];
}

/** The members of the status to write, or undefined if the existing status says the same. */
export function mergeStatus(
  existing: unknown,
  desired: DesiredConditions,
  own: readonly string[],
  now: string,
): Json | undefined {
  const status = isObject(existing) ? existing : {};
  const conditions = desired.conditions && mergeConditions(status['conditions'], desired.conditions, own, now);
  const parents = desired.parents && mergeParents(status['parents'], desired.parents, own, now);
  if (conditions === undefined && parents === undefined) return undefined;
  return { ...(conditions && { conditions }), ...(parents && { parents }) };
}

/** Entries of other controllers keep their content and place. */
function mergeParents(
  existing: unknown,
  { controllerName, lists }: NonNullable<DesiredConditions['parents']>,
  own: readonly string[],
  now: string,
): readonly unknown[] | undefined {
  const wanted = new Map(lists.map((list) => [printParent(list.parentRef), list]));
  let changed = false;
  const merged: unknown[] = [];
  for (const there of Array.isArray(existing) ? existing : []) {
    if (!isObject(there) || there['controllerName'] !== controllerName) {
      merged.push(there);
      continue;
    }
    const parent = printParent(there['parentRef']);
    const desired = wanted.get(parent);
    wanted.delete(parent);
    const conditions = desired && mergeConditions(there['conditions'], desired.conditions, own, now);
    if (desired === undefined || conditions !== undefined) changed = true;
    if (desired !== undefined) merged.push(conditions === undefined ? there : { ...there, conditions });
  }
  for (const { parentRef, conditions } of wanted.values())
    merged.push({ parentRef, controllerName, conditions: mergeConditions([], conditions, own, now) ?? [] });
  return changed || wanted.size > 0 ? merged : undefined;
}

/** The API server fills in the defaults. */
function printParent(ref: unknown): string {
  const { group, kind, namespace, name, sectionName, port } = isObject(ref) ? ref : {};
  return JSON.stringify([group ?? 'gateway.networking.k8s.io', kind ?? 'Gateway', namespace, name, sectionName, port]);
}

/**
 * The list of conditions to write, or undefined if the existing list says the same. The list is atomic in Istio's CRDs,
 * so it is always written whole: conditions of other types keep their content and order; conditions of our own types
 * that are no longer desired are removed.
 */
function mergeConditions(
  existing: unknown,
  desired: readonly DesiredCondition[],
  own: readonly string[],
  now: string,
): readonly unknown[] | undefined {
  const wanted = new Map(desired.map((condition) => [condition.type, condition]));
  const merged: unknown[] = [];
  let changed = false;
  for (const there of Array.isArray(existing) ? existing : []) {
    const type = isObject(there) ? there['type'] : undefined;
    const condition = typeof type === 'string' ? wanted.get(type) : undefined;
    if (condition === undefined) {
      // An atomic list may contain a type twice; the second one is not desired.
      const ours = typeof type === 'string' && (own.includes(type) || desired.some((d) => d.type === type));
      if (ours) changed = true;
      else merged.push(there);
      continue;
    }
    wanted.delete(condition.type);
    if (condition.isDefault === true && (there as Json)['observedGeneration'] === condition.observedGeneration) {
      merged.push(there);
      continue;
    }
    const next = complete(condition, there as Json, now);
    const same = fields.every((field) => (there as Json)[field] === next[field]);
    if (!same) changed = true;
    merged.push(same ? there : { ...(there as Json), ...next });
  }
  for (const condition of wanted.values()) merged.push(complete(condition, undefined, now));
  return changed || wanted.size > 0 ? merged : undefined;
}

const fields = ['status', 'reason', 'message', 'observedGeneration', 'lastTransitionTime'] as const;

function complete(desired: DesiredCondition, there: Json | undefined, now: string): Condition {
  const { type, status, reason, observedGeneration } = desired;
  const since = there?.['lastTransitionTime'];
  return {
    type,
    status,
    reason,
    // The server replaces lone surrogates; if we kept them, the messages would always differ.
    message: desired.message.toWellFormed(),
    observedGeneration,
    lastTransitionTime: there?.['status'] === status && typeof since === 'string' && since !== '' ? since : now,
  };
}
