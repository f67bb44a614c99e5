import type { ClusterReport } from '../debug/cluster-report.ts';

/** Other clusters, from the first reading to the end. */
export interface FollowedClusters {
  /** Resolves once every cluster was read, or had its time. */
  readonly ready: Promise<void>;
  /** What {@link ready} is waiting for, for people. */
  waitingFor(): readonly string[];
  reports(): readonly ClusterReport[];
  /** How often the first reading of a cluster took too long. */
  syncTimeouts(): number;
  /** Resolves once the signal has fired and nothing runs any more. */
  end(): Promise<void>;
}
