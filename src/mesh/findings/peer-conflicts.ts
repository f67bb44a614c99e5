import { printRef } from '../../api/object.ts';
import type { Collection, Emit, Graph } from '../../cache/graph.ts';
import { compareAge, printWinner } from '../../model/age.ts';
import { selectorsOf } from '../../model/policy-target.ts';
import { type Policies, oldestFor } from '../objects/policies.ts';
import { type Settings, settingOf } from '../settings.ts';
import type { HasProblems } from './problems.ts';

/**
 * What owners of PeerAuthentications are told that are never in force: of those for the same workloads, only the oldest
 * is, and they are not merged.
 */
export function declarePeerConflicts(
  graph: Graph,
  { policies, settings }: { readonly policies: Policies; readonly settings: Settings },
): Collection<HasProblems> {
  return graph.derive('conflicts of peers', policies.peers.models, (key, policy, read, emit: Emit<HasProblems>) => {
    const { namespace, target, ref } = policy;
    const isRoot = namespace === settingOf(read, settings.visibility).rootNamespace;
    // There, it has no effect, whatever else there is.
    if (isRoot && target.kind === 'labels') return;
    const [labels = {}] = selectorsOf(target);
    const winner = oldestFor(read, policies.peers, namespace, labels, (other) => other.target.kind === target.kind);
    if (winner === undefined || compareAge(winner, policy) >= 0) return;
    const whom = isRoot ? 'the whole mesh' : target.kind === 'labels' ? 'the same workloads' : `namespace ${namespace}`;
    const message = `has no effect: ${printWinner(printRef(winner.ref), winner, policy)} is for ${whom}, too, and only one of them is used. Merge the two, or select other workloads.`;
    const field = target.kind === 'labels' ? 'spec.selector' : 'spec';
    emit(key, { problems: [{ object: ref, field, reason: 'Conflicted', message }] });
  });
}
