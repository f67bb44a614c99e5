import type { KubernetesObject } from '../../src/api/object.ts';
import { isObject } from '../../src/api/json.ts';
import type { Cluster } from './sources.ts';

export interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
  readonly observedGeneration: number;
  readonly lastTransitionTime: string;
}

/** What the status of an object says, by type. */
export function conditions(cluster: Cluster, object: KubernetesObject): Readonly<Record<string, Condition>> {
  const { status } = cluster.object(object);
  const found = (isObject(status) ? (status['conditions'] ?? []) : []) as readonly Condition[];
  return Object.fromEntries(found.map((condition) => [condition.type, condition]));
}
