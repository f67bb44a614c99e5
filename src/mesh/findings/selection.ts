import type { Emit, Graph, Index, Reader } from '../../cache/graph.ts';
import { type Labels, selects } from '../../model/labels.ts';
import type { WorkloadClass, WorkloadClasses } from '../clients/workload-classes.ts';
import { labelKeys, selectorKey } from '../objects/label-keys.ts';
import { type Workloads, selectedWorkloads } from '../objects/workloads.ts';

export interface SelectionDeps {
  readonly workloads: Workloads;
  readonly workloadClasses: WorkloadClasses;
}

/**
 * Whether no workload of a namespace has the labels. False if it is not known: nothing is said about a namespace of which
 * no workload is known, because files may be without Pods.
 */
export type SelectsNobody = (read: Reader, namespace: string, selectors: readonly Labels[]) => boolean;

/** If more workloads share a label, they are not compared: a selector with several labels counts as selecting some. */
const mostCompared = 1_000;

export function declareSelection(graph: Graph, { workloads, workloadClasses }: SelectionDeps): SelectsNobody {
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
  return (read, namespace, selectors) =>
    read.get(known, namespace) !== undefined && !selectors.some((selector) => maySelect(read, namespace, selector));
}
