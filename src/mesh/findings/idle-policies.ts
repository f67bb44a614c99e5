import type { Collection, Emit, Graph, Index, Reader } from '../../cache/graph.ts';
import { type Labels, printSelector, selects } from '../../model/labels.ts';
import { type PolicyObject, selectorsOf } from '../../model/policy-target.ts';
import type { WorkloadClass, WorkloadClasses } from '../clients/workload-classes.ts';
import { labelKeys, selectorKey } from '../objects/label-keys.ts';
import type { Policies } from '../objects/policies.ts';
import type { Sidecars } from '../objects/sidecars.ts';
import { type Workloads, selectedWorkloads } from '../objects/workloads.ts';
import { type Settings, settingOf } from '../settings.ts';
import { declarePeerConflicts } from './peer-conflicts.ts';
import type { HasProblems } from './problems.ts';

export interface IdlePolicyDeps {
  readonly policies: Policies;
  readonly sidecars: Sidecars;
  readonly workloads: Workloads;
  readonly workloadClasses: WorkloadClasses;
  readonly settings: Settings;
}

/** Of more workloads that share a label, it is not known whether a selector with several labels has none. */
const mostCompared = 1_000;

/**
 * What owners of policies and Sidecars are told that have no effect: another one is used, or they select nobody. For a namespace of which no workload is known, nothing: files may
 * be without Pods. Nor for labels in the root namespace, which select in all namespaces.
 */
export function declareIdlePolicies(graph: Graph, deps: IdlePolicyDeps): readonly Collection<HasProblems>[] {
  const { policies, workloads, workloadClasses, settings } = deps;
  const known = graph.derive(
    'namespaces with workloads',
    graph.index('workloads by namespace', [workloads.pods, workloads.entries], (_, { namespace }) => [namespace]),
    (key, _, __, emit: Emit<true>) => emit(key, true),
  );
  // In a directory, proxies have no Pods.
  const connected: Index<WorkloadClass> = graph.index(
    'workload classes by label',
    workloadClasses.classes,
    (_, { namespace, labels }) => labelKeys(namespace, labels),
  );
  const maySelect = (read: Reader, namespace: string, selector: Labels): boolean => {
    const found = selectedWorkloads(read, workloads, namespace, selector);
    if (found.length > mostCompared || found.some(({ labels }) => selects(selector, labels))) return true;
    const key = selectorKey(namespace, selector);
    return key === undefined || read.group(connected, key).some(({ value }) => selects(selector, value.labels));
  };
  const kinds: readonly Collection<PolicyObject>[] = [
    policies.peers.models,
    policies.requests.models,
    policies.authorization.models,
  ];
  const idleSidecars = graph.derive(
    'idle sidecars',
    deps.sidecars.models,
    (key, { ref, namespace, workloadSelector: selector }, read, emit: Emit<HasProblems>) => {
      if (selector === undefined || Object.keys(selector).length === 0) return;
      if (namespace === settingOf(read, settings.visibility).rootNamespace) return;
      if (read.get(known, namespace) === undefined || maySelect(read, namespace, selector)) return;
      const message = `has no effect: no workload in namespace ${namespace} has the labels ${printSelector(selector)}. Correct it, or delete the Sidecar.`;
      emit(key, { problems: [{ object: ref, field: 'spec.workloadSelector', reason: 'Ineffective', message }] });
    },
  );
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
          'has no effect: in the root namespace, a PeerAuthentication applies to the whole mesh. Remove the selector, or move it to the namespace of the workloads.',
        );
      if (isRoot && target.kind === 'labels') return;
      if (read.get(known, namespace) === undefined) return;
      if (selectors.some((selector) => maySelect(read, namespace, selector))) return;
      const what =
        target.kind === 'gateways'
          ? `no Gateway ${target.names.join(', ')} has proxies in namespace ${namespace}`
          : `no workload in namespace ${namespace} has the labels ${printSelector(target.labels)}`;
      report(`has no effect: ${what}. Correct it, or delete the policy.`);
    }),
  );
  return [...idle, idleSidecars, declarePeerConflicts(graph, deps)];
}
