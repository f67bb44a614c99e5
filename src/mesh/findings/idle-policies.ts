import type { HasProblems } from '../../api/problem.ts';
import type { Collection, Emit, Graph } from '../../cache/graph.ts';
import { printSelector } from '../../model/labels.ts';
import { type PolicyObject, selectorsOf } from '../../model/policy-target.ts';
import type { Policies } from '../objects/policies.ts';
import type { Workloads } from '../objects/workloads.ts';
import { type Settings, settingOf } from '../settings.ts';
import { declarePeerConflicts } from './peer-conflicts.ts';
import type { SelectsNobody } from './selection.ts';

export interface IdlePolicyDeps {
  readonly policies: Policies;
  readonly selectsNobody: SelectsNobody;
  readonly settings: Settings;
  readonly workloads: Workloads;
}

/**
 * What owners of policies are told that have no effect: another one is used, or they select nobody. For labels in the root
 * namespace, which select in all namespaces, nothing is said.
 */
export function declareIdlePolicies(graph: Graph, deps: IdlePolicyDeps): readonly Collection<HasProblems>[] {
  const { policies, selectsNobody, settings } = deps;
  const kinds: readonly Collection<PolicyObject>[] = [
    policies.peers.models,
    policies.requests.models,
    policies.authorization.models,
  ];
  const idle = kinds.map((models) =>
    graph.derive(`idle ${models.name}`, models, (key, { ref, namespace, target }, read, emit: Emit<HasProblems>) => {
      const field = target.kind === 'gateways' ? 'spec' : 'spec.selector';
      const report = (message: string): void =>
        emit(key, { problems: [{ object: ref, field, reason: 'Ineffective', message }] });
      const selectors = selectorsOf(target);
      if (target.kind === 'namespace' || selectors.length === 0) return;
      const isRoot = namespace === settingOf(read, settings.visibility).rootNamespace;
      if (isRoot && ref.kind === 'PeerAuthentication')
        report(
          'has no effect at all: in the root namespace, a PeerAuthentication with a selector is not used. Move it to the namespace of the workloads.',
        );
      if (isRoot && target.kind === 'labels') return;
      if (!selectsNobody(read, namespace, selectors)) return;
      report(
        target.kind === 'gateways'
          ? `has no effect: no Gateway ${target.names.join(', ')} has known proxies in namespace ${namespace}. Correct the names, if there is to be one.`
          : `has no effect: no known workload in namespace ${namespace} has the labels ${printSelector(target.labels)}. Correct the labels, if such a workload is to exist.`,
      );
    }),
  );
  return [...idle, declarePeerConflicts(graph, deps)];
}
