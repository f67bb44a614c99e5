/**
 * Joins `src/clusters/` with Secrets (`secrets.ts`) or files (`files.ts`), API servers and the graph. One cluster:
 * `remote-cluster.ts`; `remote-account.ts` asks its API server about tokens and rights, and `root-distribution.ts` writes roots
 * there. What an API server of others may send is limited (decision 0084): `kube/client/budget.ts` and `pace.ts`, `kube/reading/checked.ts`.
 */
import type { Kind, KindName } from '../api/kinds.ts';
import type { Json } from '../api/json.ts';
import type { Clock } from '../base/clock.ts';
import { type ClusterStatus, Clusters } from '../clusters/clusters.ts';
import type { ClusterAccess, KubeconfigRules } from '../clusters/kubeconfig.ts';
import { Kubeconfigs } from '../clusters/kubeconfigs.ts';
import { type OwnedClusters, type OwnerRefusal, ownedClusters } from '../clusters/owned-clusters.ts';
import { printOwner } from '../clusters/owner.ts';
import { printRefusal } from '../clusters/refusal.ts';
import { type ClusterReport, refusedReport, reportOf } from '../debug/cluster-report.ts';
import type { Engine } from '../engine/engine.ts';
import type { LeftOut } from '../sources/namespace-filter.ts';
import { Budget } from '../kube/client/budget.ts';
import type { KubeApi } from '../kube/client/client.ts';
import type { EventRecorder } from '../kube/writing/event-recorder.ts';
import type { Log } from '../kube/client/log.ts';
import type { Outages } from '../kube/client/outages.ts';
import { followRemoteKubeconfigs } from './files.ts';
import type { FollowedClusters } from './followed-clusters.ts';
import type { KubeconfigEvents } from './kubeconfig-source.ts';
import type { TokenIssuers } from '../secure/token-issuer.ts';
import { type RemoteClusterOptions, type RemoteKubernetes, readRemoteCluster, remoteKinds } from './remote-cluster.ts';
import type { RootDistribution } from './root-distribution.ts';
import { followRemoteSecrets } from './secrets.ts';

export interface RemoteClustersOptions {
  /** Where their kubeconfigs are. */
  readonly from: KubeconfigPlace;
  readonly engine: Pick<Engine, 'clusterSink' | 'serveCluster' | 'committer'>;
  readonly clusterId: string;
  readonly rootNamespace: string;
  readonly revision?: string;
  /** What is read of the own cluster. */
  readonly ownKinds: readonly Kind<KindName>[];
  readonly rules: KubeconfigRules;
  readonly distribution?: RootDistribution;
  readonly credentials: RemoteClusterOptions['credentials'];
  /** How large the heap of this process may become. */
  readonly heapBytes: number;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  readonly signal: AbortSignal;
}

export type KubeconfigPlace =
  | {
      readonly kind: 'Secrets';
      /** The own API server. */
      readonly api: KubeApi;
      readonly outages: Outages;
      /** Tells the owner of a Secret. */
      readonly report: EventRecorder['report'];
    }
  | { readonly kind: 'Files'; readonly directory: string };

export interface RemoteClusters extends FollowedClusters {
  /** Changes of what names clusters. */
  events(): KubeconfigEvents;
  /** Who reviews their tokens. */
  readonly tokens: TokenIssuers;
  /** As it is now; undefined if it is not there, or its API server cannot say soon. Never rejects. */
  readNamespace(cluster: string, name: string, caller: string): Promise<Json | undefined>;
}

/**
 * What is kept of one cluster and of all of them, and what is computed from it, may take this part of the heap. During a
 * swap, a cluster counts twice.
 */
const SHARE_OF_ONE = 8;
const SHARE_OF_ALL = 2;

/** The clusters that Secrets of the root namespace, or files, name: what runs there is of this mesh, too. */
export function followRemoteClusters(options: RemoteClustersOptions): RemoteClusters {
  const { from, engine, rules, heapBytes, clock, random, signal } = options;
  const memory = new Budget({ most: heapBytes / SHARE_OF_ALL });
  const budget = (): Budget => new Budget({ most: heapBytes / SHARE_OF_ONE, within: memory });
  const sinks = new Map<string, ReturnType<Engine['clusterSink']>>();
  const clusters = new Clusters<ClusterAccess, RemoteKubernetes>({
    start: (id, access, sink, ending) =>
      readRemoteCluster(id, {
        ...{ ...options, access, sink, budget: budget(), signal: ending },
        leavesOut: (namespace) => sinks.get(id)?.leavesOut(namespace) === true,
      }),
    sinkOf(id) {
      const sink = engine.clusterSink(id);
      sinks.set(id, sink);
      return sink;
    },
    served: (id, isServed) => engine.serveCluster(id, isServed),
    kinds: remoteKinds(options.ownKinds).map(({ name }) => name),
    hold: () => engine.committer.hold(),
    clock,
    random,
  });
  const choice = new Choice(options, clusters);
  const kubeconfigs = new Kubeconfigs({
    rules,
    changed() {
      choice.make(kubeconfigs);
      const wanted = choice.clusters;
      for (const id of sinks.keys()) if (!wanted.has(id)) sinks.delete(id);
    },
    signal,
  });
  const source =
    from.kind === 'Secrets'
      ? followRemoteSecrets({ ...options, ...from, kubeconfigs })
      : followRemoteKubeconfigs({ ...from, kubeconfigs, signal });
  return {
    ready: clusters.whenReady({ named: source.known.then(() => kubeconfigs.idle()), signal }),
    waitingFor: () => [...source.waitingFor(), ...clusters.waitingFor()],
    reports: () => reportsOf(clusters.statuses(), choice.refusals, (id) => sinks.get(id)?.leftOut()),
    syncTimeouts: () => clusters.syncTimeouts,
    events: () => source.events(),
    async readNamespace(id, name, caller) {
      const from = clusters.sourceOf(id);
      return from === 'unknown' ? undefined : from?.readNamespace(name, caller);
    },
    tokens: {
      issuerOf(id) {
        const from = clusters.sourceOf(id);
        return from === 'unknown' ? undefined : (from?.tokens ?? 'unread');
      },
    },
    async end() {
      await source.ended;
      await kubeconfigs.idle();
      await clusters.end();
    },
  };
}

/** Which kubeconfigs are used. */
class Choice {
  readonly #options: RemoteClustersOptions;
  readonly #clusters: Clusters<ClusterAccess, RemoteKubernetes>;
  #owned: OwnedClusters = { clusters: new Map(), refusals: [] };

  constructor(options: RemoteClustersOptions, clusters: Clusters<ClusterAccess, RemoteKubernetes>) {
    this.#options = options;
    this.#clusters = clusters;
  }

  get clusters(): OwnedClusters['clusters'] {
    return this.#owned.clusters;
  }

  get refusals(): readonly OwnerRefusal[] {
    return this.#owned.refusals;
  }

  make(kubeconfigs: Kubeconfigs): void {
    const before = this.#owned;
    this.#owned = ownedClusters(kubeconfigs.all(), this.#options.clusterId, before.clusters);
    this.#tell(before.refusals);
    this.#clusters.want(
      new Map(
        Array.from(this.#owned.clusters, ([id, { owner, access }]) => [
          id,
          { owner: printOwner(owner), ...(access && { access }) },
        ]),
      ),
    );
  }

  #tell(former: readonly OwnerRefusal[]): void {
    const { from, log } = this.#options;
    const before = new Set(former.map(keyOf));
    for (const refusal of this.refusals) {
      const key = keyOf(refusal);
      if (before.has(key)) continue;
      const { owner, cluster } = refusal;
      const problem = printRefusal(refusal);
      if (owner.kind === 'Secret')
        log.warn('Secret of a remote cluster refused', { secret: printOwner(owner), problem });
      else log.warn('File with a kubeconfig refused', { file: printOwner(owner), cluster, problem });
      if (owner.kind !== 'Secret' || from.kind !== 'Secrets') continue;
      const { namespace, name, uid } = owner;
      const object = { apiVersion: 'v1', kind: 'Secret', namespace, name, uid };
      from.report({ key, object, reason: 'RemoteClusterRefused', message: problem });
    }
  }
}

function reportsOf(
  statuses: readonly ClusterStatus[],
  refusals: readonly OwnerRefusal[],
  leftOutOf: (id: string) => LeftOut | undefined,
): readonly ClusterReport[] {
  const byCluster = Map.groupBy(refusals, ({ cluster = '' }) => cluster);
  const textsOf = (id: string): string[] => (byCluster.get(id) ?? []).map(refusalText);
  const known = statuses.map((status): ClusterReport => {
    const texts = textsOf(status.id);
    const leftOut = leftOutOf(status.id);
    return {
      ...reportOf(status),
      ...(leftOut && { leftOut }),
      ...(texts.length > 0 && { refusals: texts }),
    };
  });
  const there = new Set(statuses.map(({ id }) => id));
  const refused = [...byCluster].flatMap(([id, [first]]) =>
    there.has(id) || first === undefined
      ? []
      : [refusedReport({ id, secretName: printOwner(first.owner), kind: 'Kubernetes' }, textsOf(id))],
  );
  return [...known, ...refused];
}

function refusalText(refusal: OwnerRefusal): string {
  const { owner } = refusal;
  return `${owner.kind} ${printOwner(owner)}: ${printRefusal(refusal)}`;
}

function keyOf({ owner, cluster = '', field, message }: OwnerRefusal): string {
  const who = owner.kind === 'Secret' ? owner.uid : `${owner.path} ${cluster}`;
  return `${who} ${field} ${message}`;
}
