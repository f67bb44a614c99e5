import { isObject, type Json, textOf } from '../../api/json.ts';

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

/**
 * The list of conditions to write, or undefined if the existing list says the same. The list is atomic in Istio's CRDs,
 * so it is always written whole: conditions of other types keep their content and order; conditions of our own types
 * that are no longer desired are removed.
 */
export function mergeConditions(
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

/**
 * The same with what follows from the list, once it is merged: some of it may have been there before.
 * @param summary of types among `own`.
 */
export function withSummary(
  existing: unknown,
  desired: readonly DesiredCondition[],
  own: readonly string[],
  now: string,
  summary: (conditions: readonly unknown[]) => readonly DesiredCondition[],
): readonly unknown[] | undefined {
  const there: readonly unknown[] = Array.isArray(existing) ? existing : [];
  const said = mergeConditions(existing, desired, own, now) ?? there;
  return mergeConditions(existing, [...desired, ...summary(said)], own, now);
}

/** Another program writes conditions of the same type: this one is left to it. */
export function isOfOthers(conditions: unknown, { type }: DesiredCondition, signature: string | undefined): boolean {
  if (signature === undefined || !Array.isArray(conditions)) return false;
  const there: unknown = conditions.find((condition) => isObject(condition) && condition['type'] === type);
  return isObject(there) && !textOf(there['message']).startsWith(signature);
}
