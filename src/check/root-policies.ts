import type { Gateway } from '../api/gen/gateway.gen.ts';
import type { WorkloadEntry } from '../api/gen/workload-entry.gen.ts';
import { refOf } from '../api/object.ts';
import type { Problem } from '../api/problem.ts';
import type { LoadedDirectory } from '../directory/load.ts';
import { type Labels, printSelector, selects } from '../model/labels.ts';
import type { FileContext } from './context.ts';
import type { WorkloadObject } from './workloads.ts';

const kinds = ['AuthorizationPolicy', 'RequestAuthentication'] as const;

/**
 * Policies of the root namespace that select nobody. They select in all namespaces: only where the files are complete is
 * it known that no workload elsewhere has the labels.
 */
export function remarksOnRootPolicies(
  { objects }: Pick<LoadedDirectory, 'objects'>,
  workloads: readonly WorkloadObject[],
  { source, rootNamespace, complete }: FileContext,
): readonly Problem[] {
  if (!complete || workloads.length === 0) return [];
  const machines = (objects.get('WorkloadEntry') ?? []) as readonly WorkloadEntry[];
  const gateways = (objects.get('Gateway') ?? []) as readonly Gateway[];
  const known: readonly Labels[] = [
    ...workloads.map(({ labels }) => labels),
    ...machines.map(({ metadata, spec }) => ({ ...metadata.labels, ...spec.labels })),
    // Of a Gateway that selects nobody, something else is said.
    ...gateways.map(({ spec }) => spec.selector ?? {}),
  ];
  return kinds.flatMap((kind) =>
    (objects.get(kind) ?? []).flatMap((policy): Problem[] => {
      const { selector } =
        (policy as { readonly spec?: { readonly selector?: { readonly matchLabels?: Labels } } }).spec ?? {};
      const labels = selector?.matchLabels ?? {};
      if (policy.metadata.namespace !== rootNamespace || known.some((own) => selects(labels, own))) return [];
      const message = `has no effect: no workload in any namespace has the labels ${printSelector(labels)}. Correct the labels, if such a workload is to exist.`;
      return [{ object: refOf(source, policy), field: 'spec.selector', reason: 'Ineffective', message }];
    }),
  );
}
