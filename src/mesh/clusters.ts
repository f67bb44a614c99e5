import type { Collection, Graph } from '../cache/graph.ts';
import type { NetworkGateways } from '../model/network.ts';
import type { MeshService } from '../model/service.ts';
import { type Inputs, ONE, optionsOf } from './inputs.ts';
import { type ClusterNamespaces, clusterNamespaces } from './objects/cluster-namespaces.ts';
import type { ExportVerdict } from './objects/exports.ts';
import type { GlobalServices } from './objects/global-services.ts';
import type { Networks } from './objects/networks.ts';
import { type SharedEndpointsDeps, sharedClusters } from './objects/shared-endpoints.ts';
import type { TrustDomains } from './objects/trust-domains.ts';
import type { Workloads } from './objects/workloads.ts';
import { replicasOf } from './replicas.ts';

/** What is known of the clusters of the mesh, and of what they share. */
export interface MeshClusters {
  readonly namespaces: ClusterNamespaces;
  /** Names (`namespace/name`) of the other Pods of the release of this one that are ready. */
  replicasOf(pod: string): readonly string[];
  /** Whether there is such a Pod, with an address, and it has not ended. */
  isRunning(pod: string): boolean;
  /** Of the mesh config; `cluster.local` before the first commit. */
  trustDomain(): string;
  /** The same of the accounts of a cluster, or undefined if it is not served. */
  trustDomainOf(cluster: string): string | undefined;
  /** By network. */
  readonly networkGateways: Collection<NetworkGateways>;
  /** See {@link sharedClusters}. */
  sharedBy(service: MeshService): readonly string[] | undefined;
  /** What ServiceExports mean, by object. */
  readonly exports: Collection<ExportVerdict>;
  /** What the other clusters of a ClusterMesh are to know of this one, by `namespace/name`. */
  readonly global: GlobalServices;
}

interface ClusterDeps extends SharedEndpointsDeps {
  readonly inputs: Inputs;
  readonly networks: Networks;
  readonly trustDomains: TrustDomains;
  readonly workloads: Workloads;
  readonly global: GlobalServices;
}

export function meshClusters(graph: Graph, deps: ClusterDeps): MeshClusters {
  const { inputs, settings, networks, trustDomains, workloads, services, global } = deps;
  const trustDomain = (): string => settings.security.get(ONE)?.trustDomain ?? 'cluster.local';
  return {
    namespaces: clusterNamespaces(graph, inputs),
    replicasOf: (pod) => replicasOf(pod, workloads, inputs),
    isRunning: (pod) => workloads.pods.get(pod) !== undefined,
    trustDomain,
    trustDomainOf(cluster) {
      if (cluster === optionsOf(graph.present, inputs).clusterId) return trustDomain();
      return inputs.remoteClusters.get(cluster) && trustDomains.of(graph.present, cluster);
    },
    networkGateways: networks.gateways,
    sharedBy: (service) => sharedClusters(service, graph.present, deps),
    exports: services.exports.verdicts,
    global,
  };
}
