import type { HasProblems } from '../../api/problem.ts';
import type { Collection, Emit, Graph } from '../../cache/graph.ts';
import { printWinner } from '../../model/age.ts';
import { mayOverlap, selects } from '../../model/labels.ts';
import type { SidecarModel } from '../../model/sidecar.ts';
import type { Sidecars } from '../objects/sidecars.ts';
import { type Workloads, selectedWorkloads } from '../objects/workloads.ts';

/** Older Sidecars of the namespace, and workloads, that are looked at. */
const [mostRivals, mostWorkloads] = [50, 1_000];

/** Sidecars that select a workload for which an older one is used, and that are used for others. */
export function declareSharedWorkloads(
  graph: Graph,
  { sidecars, workloads }: { readonly sidecars: Sidecars; readonly workloads: Workloads },
): Collection<HasProblems> {
  return graph.derive('sidecars of one workload', sidecars.models, (key, model, read, emit: Emit<HasProblems>) => {
    const { ref, namespace, workloadSelector: selector } = model;
    if (selector === undefined) return;
    const all = read.group(sidecars.byNamespace, namespace).slice(0, mostRivals);
    const older = all
      .slice(
        0,
        Math.max(
          all.findIndex((member) => member.key === key),
          0,
        ),
      )
      .map(({ value }) => value);
    const rivals = older.filter(({ workloadSelector: other }) => other !== undefined && mayOverlap(other, selector));
    // Of one that takes all of them, something else is said.
    if (rivals.length === 0 || rivals.some((rival) => selects(rival.workloadSelector ?? {}, selector))) return;
    const own = selectedWorkloads(read, workloads, namespace, selector).slice(0, mostWorkloads);
    for (const { name, labels } of own.filter((workload) => selects(selector, workload.labels))) {
      const winner = rivals.find((rival) => selects(rival.workloadSelector ?? {}, labels));
      if (winner === undefined) continue;
      const message = `is not used for workload ${name}: ${printWinner(nameOf(winner), winner, model)} selects it, too, and a workload has one Sidecar. Merge the two, or select other workloads.`;
      return emit(key, { problems: [{ object: ref, field: 'spec.workloadSelector', reason: 'Ineffective', message }] });
    }
  });
}

const nameOf = ({ namespace, name }: SidecarModel): string => `Sidecar/${namespace}/${name}`;
