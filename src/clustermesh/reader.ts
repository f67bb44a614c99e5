/**
 * Reads one cluster, over one connection after the other (`session.ts`); what is known outlives them (`watch-store.ts`).
 * `config-directory.ts` says which clusters there are, `keys.ts` and `*-value.ts` what their etcds hold, `objects.ts` and
 * `backend-pods.ts` what that means as objects. Whatever an etcd says is untrusted: each value is whole and of its cluster,
 * or refused in a sentence.
 */
import type { ObjectSink } from '../api/source.ts';
import { Backoff } from '../base/backoff.ts';
import { type Clock, sleep } from '../base/clock.ts';
import type { RemoteSource, SourceFigures, Trouble } from '../clusters/connection.ts';
import type { EtcdAccess } from '../etcd/access.ts';
import { connectEtcd, type EtcdConnection } from '../etcd/connection.ts';
import { errorOf } from '../etcd/error.ts';
import type { ListWatchSink } from '../etcd/list-watch.ts';
import { failureOf, type MeshFailure, printFailure } from './advice.ts';
import type { ClusterConfig } from './cluster-config.ts';
import type { ClusterIds } from './cluster-ids.ts';
import type { StoredKind } from './keys.ts';
import type { MeshCluster } from './names.ts';
import { BackendPods } from './backend-pods.ts';
import { decodeNode, type RemoteNode } from './node-value.ts';
import { nodeAt, nodeStore } from './node-objects.ts';
import { PeerIdentities, type PeerIdentity } from './peer-identities.ts';
import { type ServedObjects, servedValues, type ServingKind, servingStore } from './served-objects.ts';
import { Session } from './session.ts';
import { type StoreStats, WatchStore } from './watch-store.ts';

export interface MeshReaderOptions {
  /** The name of the cluster that is read. */
  readonly name: string;
  readonly own: MeshCluster;
  readonly access: EtcdAccess;
  readonly ids: ClusterIds;
  /** Takes what {@link deliveredKinds} names. */
  readonly sink: ObjectSink;
  /** Deliver Services, too: for those that no Service of the own cluster has the name of. */
  readonly importsServices: boolean;
  /** Is told when it cannot be read any more, or for another reason; and, with nothing, when it can again. */
  readonly told?: (failure?: string) => void;
  readonly clock: Clock;
  readonly random: () => number;
  /** See `EtcdOptions`. */
  readonly keepAlive?: { readonly time: number; readonly timeout: number };
}

/** What becomes of a cluster of the mesh here. */
export const deliveredKinds = ['Service', 'EndpointSlice', 'Pod', 'Node'] as const;

/** Another cluster of the mesh, as Cilium's own status shows it. Times: RFC 3339. */
export interface MeshClusterStatus {
  readonly connected: boolean;
  readonly endpoint?: string;
  /** Of the etcd. */
  readonly etcdClusterId?: string;
  /** What the cluster says of itself; absent: not known now. */
  readonly config?: ClusterConfig;
  /** What is wanted of the cluster but not written there, and what to do. */
  readonly lacks?: string;
  readonly resources: Readonly<Partial<Record<StoredKind, ResourceStatus>>>;
  /** How often a connection could not be made, or ended. */
  readonly failures: number;
  readonly lastFailure?: MeshFailure & { readonly at: string };
}

export interface ResourceStatus extends StoreStats {
  /** The list over the present connection is complete. */
  readonly current: boolean;
  /** Keys outside the prefix. */
  readonly strays: number;
  /** Entries that are too many. */
  readonly beyond: number;
}

/** A cluster of the mesh that is being read. */
export interface MeshSource extends RemoteSource {
  details(): MeshClusterStatus;
  /** Who has an address there, or undefined if nobody is known to have it. */
  whose(address: string): PeerAtNode | undefined;
  readonly peers: PeerIdentities;
}

export interface PeerAtNode extends PeerIdentity {
  /** Empty if it is not known. */
  readonly node: string;
}

/** Milliseconds. Without Pods, back ends are served as well, but have no labels and no mutual TLS. */
const PODS_PATIENCE = 10_000;
/** Milliseconds between two connections. */
const FIRST_DELAY = 1_000;
const LONGEST_DELAY = 60_000;
/** Milliseconds after which a connection has worked. */
const WORKS_AFTER = 30_000;

/** Reads a cluster of the mesh from its etcd, over one connection after the other, until the signal fires. */
export function readMeshCluster(options: MeshReaderOptions, { signal }: { readonly signal: AbortSignal }): MeshSource {
  const reader = new MeshReader(options);
  return {
    ready: reader.ready(signal),
    ended: reader.run(signal),
    trouble: () => reader.trouble(),
    figures: () => reader.figures(),
    details: () => reader.status(),
    whose: (address) => reader.whose(address),
    peers: reader.peers,
  };
}

class MeshReader {
  readonly #options: MeshReaderOptions;
  readonly peers: PeerIdentities;
  readonly #serving: WatchStore<ServedObjects>;
  readonly #nodes: WatchStore<RemoteNode>;
  /** In which of its kinds the services are read. */
  #servingKind: ServingKind = 'services';
  #id: { readonly id: number; readonly release: () => void } | undefined;
  #connection: EtcdConnection | undefined;
  #session: Session | undefined;
  /** When it last showed that it is alive. Milliseconds of `clock.now()`. */
  #heardAt: number;
  #failures = 0;
  /** What keeps it from being read, as far as anybody was told. */
  #told: string | undefined;
  #lastFailure: (MeshFailure & { readonly at: Date }) | undefined;
  /** Since when there has been no session. */
  #lostAt: Date;

  constructor(options: MeshReaderOptions) {
    const { sink, clock } = options;
    this.#options = options;
    this.#heardAt = clock.now();
    this.#lostAt = clock.date();
    const pods = new BackendPods({ sink, identityAt: (address) => this.peers.identityAt(address) });
    this.peers = new PeerIdentities({
      clock,
      onRange: (range) => pods.changeAddress(range),
      onIdentity: (id) => pods.changeIdentity(id),
      onReplaced: () => pods.replaceAll(),
    });
    this.#serving = servingStore(sink, pods, clock);
    this.#nodes = nodeStore(sink, clock);
  }

  /** Resolves once it was read what is served; what is known of the Pods behind that may take a little longer. */
  async ready(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    await this.#serving.whenSynced;
    const isOver = new AbortController();
    await Promise.race([
      Promise.all(this.#stores().map(([, { whenSynced }]) => whenSynced)),
      sleep(clock, PODS_PATIENCE, { signal: AbortSignal.any([signal, isOver.signal]) }),
    ]);
    isOver.abort();
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, random } = this.#options;
    const backoff = new Backoff({ base: FIRST_DELAY, cap: LONGEST_DELAY, random });
    while (!signal.aborted) {
      const began = clock.now();
      const failure = await this.#connect(signal);
      if (signal.aborted || failure === undefined) break;
      this.#failures++;
      this.#lastFailure = { ...failure, at: clock.date() };
      this.#tell(printFailure(failure));
      if (clock.now() - began >= WORKS_AFTER) backoff.reset();
      await sleep(clock, backoff.next(), { signal });
    }
    this.#id?.release();
  }

  trouble(): Trouble | undefined {
    const session = this.#session;
    if (session === undefined) {
      if (this.#lastFailure === undefined) return { reason: 'connects to its etcd', since: this.#lostAt };
      return { reason: printFailure(this.#lastFailure), since: this.#lostAt };
    }
    const troubles = [...session.troubles(), ...this.#doubts()];
    const canary = session.canaryOf(servingKindOf(session.config));
    if (troubles.length === 0 && canary !== undefined)
      return { reason: `waits for ${canary}, which says that the services were written`, since: session.since };
    const [first] = troubles;
    if (first === undefined) return undefined;
    const since = troubles.reduce((least, each) => (each.since < least ? each.since : least), first.since);
    return { reason: troubles.map(({ reason }) => reason).join('; '), since };
  }

  figures(): SourceFigures {
    const { clock } = this.#options;
    const counts = this.#stores().map(([kind, store]) => [kind, store.stats().entries]);
    const heardAt = Math.max(this.#heardAt, this.#session?.heardAt ?? 0);
    return { objects: Object.fromEntries(counts), stalenessSeconds: Math.max(0, (clock.now() - heardAt) / 1_000) };
  }

  status(): MeshClusterStatus {
    const session = this.#session;
    const resources = this.#stores().map(([kind, store]) => {
      const { current = false, strays = 0, beyond = 0 } = session?.statsOf(kind) ?? {};
      return [kind, { ...store.stats(), current, strays, beyond }];
    });
    const config = session?.config;
    const clusterId = this.#connection?.clusterId;
    return {
      connected: session?.isConnected ?? false,
      ...(this.#connection && { endpoint: this.#connection.endpoint }),
      ...(clusterId !== undefined && { etcdClusterId: String(clusterId) }),
      ...(config && { config }),
      ...(this.#options.importsServices && config?.exports.services === false && { lacks: NO_SERVICES }),
      resources: Object.fromEntries(resources),
      failures: this.#failures,
      ...(this.#lastFailure && { lastFailure: { ...this.#lastFailure, at: this.#lastFailure.at.toISOString() } }),
    };
  }

  whose(address: string): PeerAtNode | undefined {
    const found = this.peers.identityOf(address);
    return found && { ...found, node: nodeAt(this.#nodes, found.host) };
  }

  /** Resolves with why there is no connection any more; undefined: the signal has fired. */
  async #connect(signal: AbortSignal): Promise<MeshFailure | undefined> {
    const { name, own, access, clock, random, keepAlive } = this.#options;
    let connection: EtcdConnection;
    try {
      connection = await connectEtcd({ access, clock, random, ...(keepAlive && { keepAlive }) }, { signal });
    } catch (error) {
      return signal.aborted ? undefined : failureOf(errorOf(error));
    }
    const session = new Session({
      ...{ name, own, connection, clock, random },
      admit: (cluster) => this.#admit(cluster),
      sinkOf: (kind, prefix, cluster, config) => this.#sinkOf(kind, prefix, cluster, config),
    });
    [this.#connection, this.#session] = [connection, session];
    try {
      return await session.run({ signal });
    } finally {
      connection.close();
      this.#heardAt = Math.max(this.#heardAt, session.heardAt);
      this.#lostAt = clock.date();
      this.#connection = this.#session = undefined;
    }
  }

  #tell(failure: string | undefined): void {
    if (failure === this.#told) return;
    this.#told = failure;
    this.#options.told?.(failure);
  }

  /** A cluster that has another id now is another cluster: nothing of the former one stays. */
  #admit(cluster: MeshCluster): string | undefined {
    if (this.#id?.id === cluster.id) {
      this.#tell(undefined);
      return undefined;
    }
    const reserved = this.#options.ids.reserve(cluster);
    this.#tell('problem' in reserved ? reserved.problem : undefined);
    if ('problem' in reserved) return reserved.problem;
    if (this.#id !== undefined) {
      this.#id.release();
      for (const [, store] of this.#stores()) store.drain();
    }
    this.#id = { id: cluster.id, release: reserved.release };
    return undefined;
  }

  #sinkOf(
    kind: StoredKind,
    prefix: string,
    cluster: MeshCluster,
    config: ClusterConfig,
  ): ListWatchSink<unknown> | undefined {
    const at = { prefix, cluster };
    switch (kind) {
      case 'nodes':
        return this.#nodes.reading({ ...at, decode: decodeNode });
      case 'identities':
        return this.peers.readIdentities(at);
      case 'ip':
        return this.peers.readIps(at);
      case 'services':
      case 'endpointslices':
    }
    if (kind !== servingKindOf(config)) return undefined;
    this.#servingKind = kind;
    return this.#serving.reading({ ...at, ...servedValues(kind, this.#options.importsServices) });
  }

  #stores(): readonly (readonly [
    StoredKind,
    Pick<WatchStore<unknown>, 'whenSynced' | 'stats' | 'drain' | 'doubtedSince'>,
  ])[] {
    return [['nodes', this.#nodes], [this.#servingKind, this.#serving], ...this.peers.stores()];
  }

  #doubts(): readonly Trouble[] {
    return this.#stores().flatMap(([kind, store]) => {
      const { doubtedSince: since } = store;
      if (since === undefined) return [];
      const { doubted, entries } = store.stats();
      return [
        { reason: `${kind}: ${doubted} of ${entries} vanished at once; they stay until another list agrees`, since },
      ];
    });
  }
}

const NO_SERVICES =
  'writes EndpointSlices alone, which have neither addresses nor ports of Services: what has no Service here is not served; have its Cilium write both (--clustermesh-service-v2=prefer-endpointslice)';

/** Of two kinds that say the same, the one that Cilium prefers. */
function servingKindOf(config: ClusterConfig | undefined): ServingKind {
  return config?.exports.services === false ? 'endpointslices' : 'services';
}
