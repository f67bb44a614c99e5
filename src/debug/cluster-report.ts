import type { MeshClusterStatus } from '../clustermesh/reader.ts';
import type { ClusterPhase, ClusterStatus } from '../clusters/clusters.ts';

/** A cluster as `/debug/clusterz` shows it: Istio's three fields, and ours. Times: RFC 3339. */
export interface ClusterReport {
  readonly id: string;
  /**
   * What names it: `namespace/name` of a Secret, or the path of a file; empty for the cluster in which this runs. Istio's
   * field name.
   */
  readonly secretName: string;
  readonly syncStatus: SyncStatus;
  /** What is read of it: an API server, or an etcd of Cilium's ClusterMesh. */
  readonly kind: 'Kubernetes' | 'ClusterMesh';
  /**
   * `synced`: it was read whole once; if it is away now, `trouble` says so. `refused`: the Secret or file says nothing about
   * it that can be used.
   */
  readonly phase: ClusterPhase | 'refused';
  readonly since?: string;
  /** What of it is known, by kind. */
  readonly objects?: Readonly<Record<string, number>>;
  /** What no discovery selector matches; absent: there are none. */
  readonly leftOut?: { readonly namespaces: number; readonly names: readonly string[]; readonly objects: number };
  /** Since it was last heard from. */
  readonly stalenessSeconds?: number;
  /** Objects that were skipped because they cannot be read. */
  readonly unreadable?: number;
  /** How much is kept of it, and how much may be. Bytes. */
  readonly memory?: { readonly used: number; readonly most: number };
  /** What the account of its kubeconfig may not do besides reading, and what to grant. */
  readonly missingRights?: readonly string[];
  /** What keeps it from being up to date, and what to do. */
  readonly trouble?: { readonly reason: string; readonly since: string };
  /** What of its Secret or file has no effect, with the field. */
  readonly refusals?: readonly string[];
  /** As Cilium's own status shows it. */
  readonly clusterMesh?: MeshClusterStatus;
  /** What is told of it to the others of a ClusterMesh. Only of the cluster in which this runs, and if they are to be told. */
  readonly clusterMeshExport?: ExportReport;
}

/** How far the services of this cluster have been written into an etcd that others read. */
export interface ExportReport {
  /** Says how to reach the etcd. */
  readonly file: string;
  /** `standby`: another replica writes. */
  readonly phase: 'standby' | 'connecting' | 'writing' | 'written';
  readonly endpoint?: string;
  /** Keys that are there, and those that are still to be written or deleted. */
  readonly keys: number;
  readonly pending: number;
  /** Keys that the etcd does not take, and why; the first few. */
  readonly refused: readonly { readonly key: string; readonly reason: string }[];
  readonly refusedInAll: number;
  /** Why it is not known what else is there: what is stale stays until its lease ends. */
  readonly unlisted?: string;
  /** Why there is no connection. */
  readonly trouble?: { readonly reason: string; readonly since: string };
}

/** In the words of Istio. */
export type SyncStatus = 'synced' | 'syncing' | 'timeout' | 'closed';

/** Of a cluster that an API server is read of. */
export function reportOf({ id, owner, phase, since, figures, trouble }: ClusterStatus): ClusterReport {
  return {
    ...{ id, secretName: owner, syncStatus: syncStatusOf(phase), kind: 'Kubernetes', phase },
    since: since.toISOString(),
    ...figures,
    ...(trouble && { trouble: { reason: trouble.reason, since: trouble.since.toISOString() } }),
  };
}

/** Of a cluster of which nothing is known except why. */
export function refusedReport(
  { id, secretName, kind }: Pick<ClusterReport, 'id' | 'secretName' | 'kind'>,
  refusals: readonly string[],
): ClusterReport {
  return { id, secretName, syncStatus: 'closed', kind, phase: 'refused', refusals };
}

function syncStatusOf(phase: ClusterReport['phase']): SyncStatus {
  if (phase === 'synced' || phase === 'swapping') return 'synced';
  if (phase === 'connecting' || phase === 'syncing') return 'syncing';
  return phase === 'timed out' ? 'timeout' : 'closed';
}
