import { isObject, textOf } from '../api/json.ts';

/** The condition by which programs that know nothing of an object's kind see that it has failed. */
export interface Stalled {
  readonly type: 'Stalled';
  readonly status: 'True';
  readonly reason: string;
  readonly message: string;
  readonly observedGeneration: number;
}

/**
 * `Stalled`, of an object whose conditions say that this generation is not accepted, or that proxies reject it: nothing goes
 * on until it is changed. Otherwise there is no such condition. Source: the convention of kstatus
 * (sigs.k8s.io/cli-utils), which also knows `Reconciling`.
 */
export function stalled(conditions: readonly unknown[], generation: number): readonly Stalled[] {
  for (const condition of conditions) {
    if (!isObject(condition) || condition['status'] !== 'False') continue;
    if (condition['observedGeneration'] !== generation) continue;
    const { type, reason } = condition;
    if (type !== 'Accepted' && !(type === 'Programmed' && reason === 'Rejected')) continue;
    const message = textOf(condition['message']);
    return [{ type: 'Stalled', status: 'True', reason: textOf(reason), message, observedGeneration: generation }];
  }
  return [];
}
