import type { Node, Pod } from '../../api/core.ts';
import { sourceOfKey } from '../../api/object.ts';
import type { Collection, Emit, Graph, Index, Reader } from '../../cache/graph.ts';
import { clusterOfSource, isClusterMesh } from '../../model/cluster-mesh.ts';
import type { Workload } from '../../model/endpoint.ts';
import type { Labels } from '../../model/labels.ts';
import { type ReconciledWorkloadEntry, reconcilePod, reconcileWorkloadEntry } from '../../reconcilers/core/workload.ts';
import { type Inputs, siblingKey } from '../inputs.ts';
import { type InForce, declareReconciled } from './in-force.ts';
import { labelKeys, selectorKey } from './label-keys.ts';
import type { Networks } from './networks.ts';
import type { TrustDomains } from './trust-domains.ts';
import { type Settings, settingOf } from '../settings.ts';

export interface Workloads {
  readonly pods: Collection<Workload>;
  /** WorkloadEntries as parsed. */
  readonly parsedEntries: Collection<ReconciledWorkloadEntry & InForce>;
  readonly entries: Collection<Workload>;
  /** Pods by address, whether ready or not; several if they share their node's address. Sorted by namespace and name. */
  readonly podsByAddress: Index<Workload>;
  /** WorkloadEntries by `namespace/address`; sorted by name. */
  readonly entriesByAddress: Index<Workload>;
  /** By `namespace|label=value`; see {@link selectedWorkloads}. */
  readonly byLabel: Index<Workload>;
}

export interface WorkloadDeps {
  readonly settings: Settings;
  readonly networks: Networks;
  readonly trustDomains: TrustDomains;
}

export function declareWorkloads(
  graph: Graph,
  inputs: Inputs,
  { settings, networks, trustDomains }: WorkloadDeps,
): Workloads {
  const pods = graph.derive('pods', inputs.objects.Pod, (key, object, read, emit: Emit<Workload>) => {
    const pod = object as Pod;
    const nodeName = pod.spec?.nodeName;
    const node = nodeName ? read.get(inputs.objects.Node, siblingKey(key, '', nodeName)) : undefined;
    const cluster = clusterOfSource(sourceOfKey(key));
    const workload = reconcilePod(pod, {
      cluster,
      trustDomain: trustDomains.of(read, cluster),
      network: (address) => networks.of(read, cluster, address),
      node: node as Node | undefined,
    });
    if (workload !== undefined) emit(key, workload);
  });
  const parsedEntries = declareReconciled<ReconciledWorkloadEntry>(
    graph,
    'workloadEntries',
    'WorkloadEntry',
    inputs,
    (key, object, read) => {
      // As Istio: also in other clusters, a WorkloadEntry is configuration of this mesh.
      const { trustDomain } = settingOf(read, settings.visibility);
      return reconcileWorkloadEntry(object, {
        cluster: clusterOfSource(sourceOfKey(key)),
        trustDomain,
      });
    },
    { workloads: [] },
  );
  const entries = graph.derive('entryWorkloads', parsedEntries, (key, { workloads }, _, emit: Emit<Workload>) => {
    for (const workload of workloads) emit(`${key}#entry`, workload);
  });
  const both = [pods, entries];
  return {
    pods,
    parsedEntries,
    entries,
    podsByAddress: graph.index('pods by address', pods, (_, pod) => pod.addresses),
    entriesByAddress: graph.index('workload entries by address', entries, (_, entry) => addressKeys(entry)),
    // Of a ClusterMesh, only Pods behind global services are known: nothing else is to depend on which these are.
    byLabel: graph.index('workloads by label', both, (key, w) =>
      isClusterMesh(sourceOfKey(key)) ? [] : labelKeys(w.namespace, w.labels),
    ),
  };
}

function addressKeys({ namespace, addresses }: Workload): string[] {
  return addresses.map((address) => `${namespace}/${address}`);
}

/** Workloads of a namespace that may match a selector, by kind, then name. The caller checks the other labels. */
export function selectedWorkloads(
  read: Reader,
  workloads: Workloads,
  namespace: string,
  selector: Labels,
): readonly Workload[] {
  const key = selectorKey(namespace, selector);
  if (key === undefined) return [];
  return read.group(workloads.byLabel, key).map((member) => member.value);
}
