/** The fields of the Multi-Cluster Services API (`multicluster.x-k8s.io`) that Fairlead reads. */
import type { CoreServicePort } from './core.ts';
import type { KubernetesObject } from './object.ts';

/** A service of all clusters that export one of this name, as this cluster uses it. */
export interface ServiceImport extends KubernetesObject {
  readonly kind: 'ServiceImport';
  readonly spec?: {
    readonly type?: 'ClusterSetIP' | 'Headless';
    /** One for each IP family. Its controller may assign them later. */
    readonly ips?: readonly string[];
    readonly ports?: readonly Omit<CoreServicePort, 'targetPort' | 'nodePort'>[];
    readonly internalTrafficPolicy?: 'Cluster' | 'Local';
    readonly trafficDistribution?: string;
  };
}
