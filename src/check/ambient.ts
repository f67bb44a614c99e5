import { type KubernetesObject, refOf } from '../api/object.ts';
import type { Problem } from '../api/problem.ts';
import type { LoadedDirectory } from '../directory/load.ts';

const consequences: Readonly<Record<string, string>> = {
  'istio.io/dataplane-mode':
    'a workload without a sidecar has no mutual TLS, and nothing enforces its policies. Have sidecars injected (istio-injection: enabled)',
  'istio.io/use-waypoint': 'no waypoint routes requests or enforces policies. Have sidecars injected',
};

/** Labels for Istio's ambient mode, which there is not here. */
export function remarksOnAmbient({ objects }: Pick<LoadedDirectory, 'objects'>, source: string): readonly Problem[] {
  return [...objects.values()].flatMap((all) => all.flatMap((object) => remarksOn(object, source)));
}

function remarksOn(object: KubernetesObject, source: string): readonly Problem[] {
  return Object.entries(consequences).flatMap(([label, consequence]): Problem[] => {
    const value = object.metadata.labels?.[label];
    if (value === undefined || value === 'none') return [];
    const message = `has no effect: there is no ambient mode, so that ${consequence}, and remove the label.`;
    return [{ object: refOf(source, object), field: `metadata.labels["${label}"]`, reason: 'Ineffective', message }];
  });
}
