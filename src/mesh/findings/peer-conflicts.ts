import { printRef } from '../../api/object.ts';
import type { HasProblems, Problem } from '../../api/problem.ts';
import type { Collection, Emit, Graph, Reader } from '../../cache/graph.ts';
import { compareAge, printWinner } from '../../model/age.ts';
import { type Labels, selects } from '../../model/labels.ts';
import type { PeerAuthenticationModel } from '../../model/peer-authentication.ts';
import { selectorsOf } from '../../model/policy-target.ts';
import { type Policies, comparedPolicies, oldestFor } from '../objects/policies.ts';
import { type Workloads, selectedWorkloads } from '../objects/workloads.ts';
import { type Settings, settingOf } from '../settings.ts';

/**
 * What owners of PeerAuthentications are told that are never in force: of those for the same workloads, only the oldest
 * is, and they are not merged.
 */
export function declarePeerConflicts(
  graph: Graph,
  {
    policies,
    settings,
    workloads,
  }: { readonly policies: Policies; readonly settings: Settings; readonly workloads: Workloads },
): Collection<HasProblems> {
  return graph.derive('conflicts of peers', policies.peers.models, (key, policy, read, emit: Emit<HasProblems>) => {
    const { namespace, target, ref } = policy;
    const isRoot = namespace === settingOf(read, settings.visibility).rootNamespace;
    // There, it has no effect, whatever else there is.
    if (isRoot && target.kind === 'labels') return;
    const [labels = {}] = selectorsOf(target);
    const winner = oldestFor(read, policies.peers, namespace, labels, (other) => other.target.kind === target.kind);
    if (winner === undefined || compareAge(winner, policy) >= 0) {
      const problem = target.kind === 'labels' ? lostWorkload(read, policy, target.labels) : undefined;
      if (problem !== undefined) emit(key, { problems: [problem] });
      return;
    }
    const whom = isRoot ? 'the whole mesh' : target.kind === 'labels' ? 'the same workloads' : `namespace ${namespace}`;
    const message = `has no effect: ${printWinner(printRef(winner.ref), winner, policy)} is for ${whom}, too, and only one of them is used. Merge the two, or select other workloads.`;
    const field = target.kind === 'labels' ? 'spec.selector' : 'spec';
    emit(key, { problems: [{ object: ref, field, reason: 'Conflicted', message }] });
  });

  /** Where an older policy that selects other workloads, too, is in force. */
  function lostWorkload(read: Reader, policy: PeerAuthenticationModel, selector: Labels): Problem | undefined {
    const { namespace, ref: object } = policy;
    const own = selectedWorkloads(read, workloads, namespace, selector).slice(0, mostWorkloads);
    for (const { name, labels } of own.filter((workload) => selects(selector, workload.labels))) {
      const [winner] = (comparedPolicies(read, policies.peers, [namespace], labels) ?? [])
        .filter((other) => other.target.kind === 'labels')
        .sort(compareAge);
      if (winner === undefined || winner.key === policy.key) continue;
      const message = `is not used for workload ${name}: ${printWinner(printRef(winner.ref), winner, policy)} selects it, too, and a workload has one PeerAuthentication by a selector. Merge the two, or select other workloads.`;
      return { object, field: 'spec.selector', reason: 'Ineffective', message };
    }
    return undefined;
  }
}

/** Workloads that are looked at whenever one of them changes. */
const mostWorkloads = 100;
