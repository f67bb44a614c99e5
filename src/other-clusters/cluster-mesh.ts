/**
 * Joins `src/clustermesh/` with the directory that names the clusters of a ClusterMesh and the readers of their etcds;
 * `cluster-mesh-export.ts` writes this cluster's services for them (decision 0085).
 */
import type { Clock } from '../base/clock.ts';
import { Clusters } from '../clusters/clusters.ts';
import { type Refusal, printRefusal } from '../clusters/refusal.ts';
import { ClusterIds } from '../clustermesh/cluster-ids.ts';
import { ConfigDirectory } from '../clustermesh/config-directory.ts';
import type { MeshCluster } from '../clustermesh/names.ts';
import { deliveredKinds, type MeshSource, readMeshCluster } from '../clustermesh/reader.ts';
import { type ClusterReport, refusedReport, reportOf } from '../debug/cluster-report.ts';
import type { PeerAddress } from '../debug/peer-address.ts';
import type { Engine } from '../engine/engine.ts';
import type { EtcdAccess } from '../etcd/access.ts';
import type { Log } from '../kube/client/log.ts';
import { clusterMeshSource } from '../model/cluster-mesh.ts';
import type { FollowedClusters } from './followed-clusters.ts';

export interface ClusterMeshOptions {
  /** Has a file for each other cluster. */
  readonly directory: string;
  readonly own: MeshCluster;
  /** Serve what no Service of the own cluster has the name of, too. */
  readonly importsServices: boolean;
  readonly engine: Pick<Engine, 'clusterSink' | 'committer'>;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  readonly signal: AbortSignal;
}

export interface ClusterMesh extends FollowedClusters {
  /** Of each cluster that knows the address. */
  identitiesOf(address: string): readonly PeerAddress[];
}

/** The other clusters of Cilium's ClusterMesh: their endpoints are of the global Services here. */
export function followClusterMesh(options: ClusterMeshOptions): ClusterMesh {
  const { directory, own, engine, clock, random, log, signal } = options;
  const ids = new ClusterIds(own);
  const sources = new Sources();
  const clusters = new Clusters<EtcdAccess>({
    start(name, access, sink, ending) {
      const told = (failure?: string): void =>
        failure === undefined
          ? log.info('ClusterMesh: cluster is read again', { cluster: name })
          : log.warn('ClusterMesh: cluster cannot be read, retrying until it works', { cluster: name, failure });
      const { importsServices } = options;
      const reader = { name, own, access, ids, sink, importsServices, told, clock, random };
      return sources.add(name, readMeshCluster(reader, { signal: ending }));
    },
    sinkOf: (name) => engine.clusterSink(clusterMeshSource(name)),
    // Proxies are in clusters with an API server.
    served: () => undefined,
    kinds: deliveredKinds,
    hold: () => engine.committer.hold(),
    clock,
    random,
  });
  const told = new Set<string>();
  const config = new ConfigDirectory({
    directory,
    ownCluster: own.name,
    clock,
    onChange() {
      const refusals = refusalsOf(config);
      for (const text of told) if (!refusals.includes(text)) told.delete(text);
      for (const text of refusals) if (!told.has(text)) log.warn('ClusterMesh: file refused', { problem: text });
      for (const text of refusals) told.add(text);
      clusters.want(
        new Map(
          Array.from(config.clusters, ([name, { access }]) => [name, { owner: name, ...(access && { access }) }]),
        ),
      );
    },
    signal,
  });
  const named = config.look();
  const following = named.then(() => config.follow());
  return {
    ready: clusters.whenReady({ named, signal }),
    waitingFor: () => clusters.waitingFor(clusterMeshSource),
    reports: () => reportsOf(directory, clusters, config, sources),
    identitiesOf: (address) =>
      sources.all().flatMap(([cluster, source]) => {
        const found = source.whose(address);
        return found === undefined ? [] : [{ cluster, ...found }];
      }),
    syncTimeouts: () => clusters.syncTimeouts,
    async end() {
      await following;
      await clusters.end();
    },
  };
}

/** The source of each cluster that is in use, or about to be. */
class Sources {
  readonly #byCluster = new Map<string, MeshSource[]>();

  add(cluster: string, source: MeshSource): MeshSource {
    const all = this.#byCluster.get(cluster) ?? [];
    this.#byCluster.set(cluster, [...all, source]);
    void source.ended.finally(() => {
      const left = (this.#byCluster.get(cluster) ?? []).filter((each) => each !== source);
      if (left.length > 0) this.#byCluster.set(cluster, left);
      else this.#byCluster.delete(cluster);
    });
    return source;
  }

  /** Of several, the one that is in use. */
  all(): readonly (readonly [cluster: string, source: MeshSource])[] {
    return [...this.#byCluster].flatMap(([cluster, [first]]) =>
      first === undefined ? [] : [[cluster, first] as const],
    );
  }
}

function refusalsOf({ clusters, refusals }: ConfigDirectory): readonly string[] {
  return [
    ...refusals.map((refusal) => refusalText(refusal.file, refusal)),
    ...[...clusters].flatMap(([name, { refused }]) => (refused === undefined ? [] : [refusalText(name, refused)])),
  ];
}

function reportsOf(
  directory: string,
  clusters: Clusters<EtcdAccess>,
  config: ConfigDirectory,
  sources: Sources,
): readonly ClusterReport[] {
  const details = new Map(sources.all().map(([cluster, source]) => [cluster, source.details()]));
  const known = clusters.statuses().map((status): ClusterReport => {
    const refused = config.clusters.get(status.id)?.refused;
    const clusterMesh = details.get(status.id);
    return {
      ...reportOf(status),
      ...namesOf(directory, status.id),
      ...(clusterMesh && { clusterMesh }),
      ...(refused && { refusals: [refusalText(status.id, refused)] }),
    };
  });
  const there = new Set(known.map(({ id }) => id));
  const refusedOnly = [...config.clusters].flatMap(([name, { refused }]) =>
    refused === undefined || there.has(clusterMeshSource(name)) ? [] : [{ file: name, ...refused }],
  );
  return [
    ...known,
    ...[...config.refusals, ...refusedOnly].map((refusal) =>
      refusedReport(namesOf(directory, refusal.file), [refusalText(refusal.file, refusal)]),
    ),
  ];
}

function namesOf(directory: string, file: string): Pick<ClusterReport, 'id' | 'secretName' | 'kind'> {
  return { id: clusterMeshSource(file), secretName: `${directory}/${file}`, kind: 'ClusterMesh' };
}

function refusalText(file: string, refusal: Refusal): string {
  return `File ${file}: ${printRefusal(refusal)}`;
}
