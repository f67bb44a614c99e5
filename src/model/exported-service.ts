import type { MeshService } from './service.ts';

/** The domain of the hosts of multi-cluster services. */
export const clusterSetDomain = 'clusterset.local';

export const isClusterSetHost = (host: string): boolean => host.endsWith(`.svc.${clusterSetDomain}`);

/** A Service that some clusters export by ServiceExports of one name: how it is used from everywhere. */
export interface ExportedService {
  /** Whose endpoints are for all clusters. The oldest export first; at most one of each cluster. */
  readonly clusters: readonly string[];
  /** What their Services say together; where they differ, that of the oldest export. Absent if there are none. */
  readonly service?: ExportedParts;
  /** Why other clusters with such an export do not export it. */
  readonly refused: Readonly<Record<string, 'NoService' | 'InvalidServiceType'>>;
  readonly conflicts: readonly ExportConflict[];
}

export type ExportedParts = Pick<
  MeshService,
  | 'ports'
  | 'exportTo'
  | 'persistentSession'
  | 'trafficDistribution'
  | 'nodeLocal'
  | 'publishesNotReady'
  | 'subjectAltNames'
  | 'origins'
>;

/** The Services of clusters that export it differ in something. The reasons are those of the API. */
export interface ExportConflict {
  readonly reason:
    | 'PortConflict'
    | 'TypeConflict'
    | 'SessionAffinityConflict'
    | 'SessionAffinityConfigConflict'
    | 'InternalTrafficPolicyConflict'
    | 'TrafficDistributionConflict'
    | 'IPFamilyConflict';
  /** Clusters that are not like the first. */
  readonly clusters: readonly string[];
}
