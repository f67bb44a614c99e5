import { parseObjectKey } from '../api/object.ts';
import type { Inputs } from './inputs.ts';
import { labelKeys } from './objects/label-keys.ts';
import type { Workloads } from './objects/workloads.ts';

/** Labels that all Pods of a release have in common, as Helm's charts set them. */
const [NAME, INSTANCE] = ['app.kubernetes.io/name', 'app.kubernetes.io/instance'];

/** Names (`namespace/name`) of the other Pods of the release of one Pod that are ready. */
export function replicasOf(pod: string, { byLabel, pods }: Workloads, { objects }: Inputs): readonly string[] {
  const { namespace } = parseObjectKey(pod);
  const { [NAME]: name, [INSTANCE]: instance } = objects.Pod.get(pod)?.metadata.labels ?? {};
  if (name === undefined || instance === undefined) return [];
  const [group = ''] = labelKeys(namespace, { [INSTANCE]: instance });
  return (byLabel.get(group) ?? []).flatMap(({ key, value }) =>
    key !== pod && value.labels[NAME] === name && pods.get(key)?.ready === true
      ? [`${namespace}/${parseObjectKey(key).name}`]
      : [],
  );
}
