import { kindsToRead } from '../api/kinds.ts';
import type { Clock } from '../base/clock.ts';
import type { Config } from '../config/config.ts';
import type { PeerAddress } from '../debug/peer-address.ts';
import type { Engine } from '../engine/engine.ts';
import type { Log } from '../kube/client/log.ts';
import type { TokenIssuers } from '../secure/token-issuer.ts';
import { followClusterMesh } from './cluster-mesh.ts';
import type { FollowedClusters } from './followed-clusters.ts';
import type { KubeconfigEvents } from './kubeconfig-source.ts';
import type { RemoteClusterOptions } from './remote-cluster.ts';
import type { RootDistribution } from './root-distribution.ts';
import { type KubeconfigPlace, type RemoteClusters, followRemoteClusters } from './remote-clusters.ts';

/** All clusters that objects come from, except the own one. */
export interface OtherClusters extends FollowedClusters {
  /** Who has an address, as far as clusters of a ClusterMesh say. */
  identitiesOf(address: string): readonly PeerAddress[];
  /** Changes of kubeconfigs. */
  events(): KubeconfigEvents;
  /** Who reviews the tokens of clusters that kubeconfigs name. */
  readonly tokens: TokenIssuers;
  readonly readNamespace: RemoteClusters['readNamespace'];
}

/** @param from where kubeconfigs are, or undefined if there are none. */
export function followOtherClusters(
  { mesh, revision, insecureRemoteClusters, clusterMesh }: Config,
  engine: Engine,
  from: KubeconfigPlace | undefined,
  surroundings: {
    /** Absent: nothing is written there. */
    readonly distribution?: RootDistribution;
    readonly credentials: RemoteClusterOptions['credentials'];
    readonly heapBytes: number;
    readonly log: Log;
    readonly clock: Clock;
    readonly signal: AbortSignal;
  },
): OtherClusters {
  const { clusterId, rootNamespace } = mesh;
  const shared = { ...surroundings, engine, random: Math.random };
  const remote =
    from &&
    followRemoteClusters({
      ...{ ...shared, from, clusterId, rootNamespace, ownKinds: kindsToRead(mesh) },
      ...(revision !== undefined && { revision }),
      rules: { allowInsecure: insecureRemoteClusters },
    });
  const { directory, own, importsServices = false } = clusterMesh ?? {};
  const meshed = own && directory !== undefined && followClusterMesh({ ...shared, directory, own, importsServices });
  const both = [remote, meshed].filter((each) => each !== undefined && each !== false);
  return {
    ready: Promise.all(both.map(({ ready }) => ready)).then(() => undefined),
    waitingFor: () => both.flatMap((each) => each.waitingFor()),
    reports: () => both.flatMap((each) => each.reports()),
    identitiesOf: (address) => (meshed ? meshed.identitiesOf(address) : []),
    syncTimeouts: () => both.reduce((sum, each) => sum + each.syncTimeouts(), 0),
    tokens: { issuerOf: (cluster) => remote?.tokens.issuerOf(cluster) },
    readNamespace: (cluster, name, caller) =>
      remote?.readNamespace(cluster, name, caller) ?? Promise.resolve(undefined),
    events: () => remote?.events() ?? { add: 0, update: 0, delete: 0 },
    async end() {
      await Promise.all(both.map((each) => each.end()));
    },
  };
}
