import { type ObjectRef, refOf } from '../api/object.ts';
import type { Problem } from '../api/problem.ts';
import type { LoadedDirectory } from '../directory/load.ts';
import type { Labels } from '../model/labels.ts';
import type { WorkloadObject } from './workloads.ts';

const consequences: Readonly<Record<string, string>> = {
  'istio.io/dataplane-mode':
    'a workload without a sidecar has no mutual TLS, and nothing enforces its policies. Have sidecars injected (istio-injection: enabled)',
  'istio.io/use-waypoint': 'no waypoint routes requests or enforces policies. Have sidecars injected',
};

/** Labels for Istio's ambient mode, which there is not here. */
export function remarksOnAmbient(
  { objects }: Pick<LoadedDirectory, 'objects'>,
  workloads: readonly WorkloadObject[],
  source: string,
): readonly Problem[] {
  const templates = workloads.filter(({ at }) => at !== '');
  return [
    ...[...objects.values()].flatMap((all) =>
      all.flatMap((object) => remarksOn(refOf(source, object), '', object.metadata.labels ?? {})),
    ),
    ...templates.flatMap(({ ref, at, labels }) => remarksOn(ref, at, labels)),
  ];
}

/** @param at where the labelled object begins. */
function remarksOn(object: ObjectRef, at: string, labels: Labels): readonly Problem[] {
  return Object.entries(consequences).flatMap(([label, consequence]): Problem[] => {
    const value = labels[label];
    if (value === undefined || value === 'none') return [];
    const message = `has no effect: there is no ambient mode, so that ${consequence}, and remove the label.`;
    return [{ object, field: `${at}metadata.labels["${label}"]`, reason: 'Ineffective', message }];
  });
}
