import { isDeepStrictEqual } from 'node:util';
import type { SourceKindName } from '../api/kinds.ts';
import type { ObjectSink } from '../api/source.ts';
import { type Clock, sleep } from '../base/clock.ts';
import { Connection, type RemoteSource, type SourceFigures, type Trouble } from './connection.ts';
import type { StagedSink } from './staged-sink.ts';

/** A cluster that somebody wants to be read. */
export interface WantedCluster<Access> {
  /** Who names it. */
  readonly owner: string;
  /** Absent: the owner's description is refused; what it said before goes on. */
  readonly access?: Access;
}

export interface ClustersOptions<Access, Source extends RemoteSource = RemoteSource> {
  /** See `StartSource`. */
  readonly start: (id: string, access: Access, sink: ObjectSink, signal: AbortSignal) => Source;
  readonly sinkOf: (id: string) => ObjectSink;
  /** What the sink has of the cluster is, or is no longer, to be served. */
  readonly served: (id: string, isServed: boolean) => void;
  /** What sources deliver, in the order in which it is swapped. */
  readonly kinds: readonly SourceKindName[];
  /** Holds back what sinks are told until the returned function is called: a swap is one commit. */
  readonly hold: () => () => void;
  readonly clock: Clock;
  readonly random: () => number;
  /** Milliseconds for which a new cluster holds up {@link Clusters.ready}. */
  readonly patience?: number;
}

export type ClusterPhase = 'connecting' | 'syncing' | 'synced' | 'timed out' | 'swapping' | 'closing';

export interface ClusterStatus {
  readonly id: string;
  readonly owner: string;
  readonly phase: ClusterPhase;
  /** When the phase began, except that `syncing` counts from `connecting`. */
  readonly since: Date;
  /** Of the connection that is being made if there is one, else of that in use. */
  readonly trouble?: Trouble;
  /** Of what is served. */
  readonly figures?: SourceFigures;
}

interface Cluster<Access, Source extends RemoteSource> {
  readonly id: string;
  readonly sink: ObjectSink;
  owner: string;
  /** What is served comes from it. */
  current: Connection<Access, Source> | undefined;
  /** Takes its place once everything was read. */
  next: Connection<Access, Source> | undefined;
  /** The first reading took too long. */
  isLate: boolean;
  since: Date;
  cancelWait: () => void;
}

/** As Istio's PILOT_REMOTE_CLUSTER_TIMEOUT. Milliseconds. */
const PATIENCE = 30_000;

/**
 * The other clusters. Each is read by a source of its own, and none waits for another:
 *
 * - What a source reads is served once it was read whole, in one step. If the access changes, the old source serves
 *   until then, however long that takes.
 * - A source that is away keeps what was known.
 * - A cluster that nobody wants any more loses everything at once.
 */
export class Clusters<Access, Source extends RemoteSource = RemoteSource> {
  readonly #options: ClustersOptions<Access, Source>;
  readonly #clusters = new Map<string, Cluster<Access, Source>>();
  readonly #closing = new Map<Promise<void>, ClusterStatus>();
  #timeouts = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(options: ClustersOptions<Access, Source>) {
    this.#options = options;
  }

  /** All of them: others are removed, and that first. */
  want(wanted: ReadonlyMap<string, WantedCluster<Access>>): void {
    for (const [id, cluster] of this.#clusters) {
      const now = wanted.get(id);
      if (now === undefined || (now.access === undefined && now.owner !== cluster.owner)) this.#remove(cluster);
    }
    for (const [id, { owner, access }] of wanted) if (access !== undefined) this.#reach(id, owner, access);
    this.#tellReady();
  }

  /** Every cluster was read once, or had its time. */
  ready(): boolean {
    return [...this.#clusters.values()].every(({ current, isLate }) => current !== undefined || isLate);
  }

  /** Resolves once {@link ready} is true, but not before it is known which clusters there are, or nobody has said so in time. */
  async whenReady({
    named,
    signal,
  }: {
    readonly named: Promise<unknown>;
    readonly signal: AbortSignal;
  }): Promise<void> {
    const { clock, patience = PATIENCE } = this.#options;
    const areNamed = new AbortController();
    await Promise.race([named, sleep(clock, patience, { signal: AbortSignal.any([signal, areNamed.signal]) })]);
    areNamed.abort();
    if (!this.ready()) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  /** What {@link ready} is waiting for, for people. */
  waitingFor(nameOf: (id: string) => string = (id) => id): readonly string[] {
    return this.statuses().flatMap(({ id, phase, trouble, figures }) => {
      if (phase !== 'connecting' && phase !== 'syncing') return [];
      const reasons = [...(trouble ? [trouble.reason] : []), ...(figures?.missingRights ?? [])];
      return [`cluster ${nameOf(id)}${reasons.length === 0 ? '' : ` (${reasons.join('; ')})`}`];
    });
  }

  /** Where what is served of a cluster comes from. Undefined: nothing is served of it yet; `unknown`: nobody wants it. */
  sourceOf(id: string): Source | 'unknown' | undefined {
    const cluster = this.#clusters.get(id);
    return cluster === undefined ? 'unknown' : cluster.current?.source;
  }

  /** In the order in which they were first wanted; then those that are being closed. */
  statuses(): readonly ClusterStatus[] {
    return [...Array.from(this.#clusters.values(), statusOf), ...this.#closing.values()];
  }

  /** How often the first reading of a cluster took too long. */
  get syncTimeouts(): number {
    return this.#timeouts;
  }

  /** Stops all sources. What was known stays. Resolves once nothing runs. */
  async end(): Promise<void> {
    for (const cluster of this.#clusters.values()) this.#close(cluster);
    this.#clusters.clear();
    this.#tellReady();
    await Promise.all(this.#closing.keys());
  }

  #tellReady(): void {
    if (this.ready()) for (const resolve of this.#waiting.splice(0)) resolve();
  }

  #reach(id: string, owner: string, access: Access): void {
    const cluster = this.#clusters.get(id) ?? this.#add(id, owner);
    cluster.owner = owner;
    if (cluster.next !== undefined && isDeepStrictEqual(cluster.next.access, access)) return;
    if (cluster.next !== undefined) this.#leave(cluster, cluster.next);
    cluster.next = undefined;
    if (cluster.current !== undefined && isDeepStrictEqual(cluster.current.access, access)) return;
    if (cluster.current !== undefined) cluster.since = this.#options.clock.date();
    const { start, clock, random } = this.#options;
    const next: Connection<Access, Source> = new Connection({
      access,
      start: (sink, signal) => start(id, access, sink, signal),
      clock,
      random,
      onWhole: (staged) => this.#swap(cluster, next, staged),
    });
    cluster.next = next;
  }

  #add(id: string, owner: string): Cluster<Access, Source> {
    const { clock, patience = PATIENCE } = this.#options;
    const cancelWait = clock.after(patience, () => {
      cluster.isLate = true;
      cluster.since = clock.date();
      this.#timeouts++;
      this.#tellReady();
    });
    const cluster: Cluster<Access, Source> = {
      id,
      sink: this.#options.sinkOf(id),
      owner,
      current: undefined,
      next: undefined,
      isLate: false,
      since: clock.date(),
      cancelWait,
    };
    this.#clusters.set(id, cluster);
    return cluster;
  }

  #swap(cluster: Cluster<Access, Source>, next: Connection<Access, Source>, staged: StagedSink): void {
    const release = this.#options.hold();
    try {
      staged.open(cluster.sink, this.#options.kinds);
      if (cluster.current === undefined) this.#options.served(cluster.id, true);
    } finally {
      release();
    }
    cluster.cancelWait();
    if (cluster.current !== undefined) this.#leave(cluster, cluster.current);
    cluster.current = next;
    cluster.next = undefined;
    cluster.since = this.#options.clock.date();
    this.#tellReady();
  }

  #remove(cluster: Cluster<Access, Source>): void {
    this.#clusters.delete(cluster.id);
    const wasServed = cluster.current !== undefined;
    this.#close(cluster);
    if (!wasServed) return;
    const release = this.#options.hold();
    try {
      for (const kind of this.#options.kinds) cluster.sink.replace(kind, []);
      this.#options.served(cluster.id, false);
    } finally {
      release();
    }
  }

  #close(cluster: Cluster<Access, Source>): void {
    cluster.cancelWait();
    for (const connection of [cluster.next, cluster.current])
      if (connection !== undefined) this.#leave(cluster, connection);
    cluster.next = cluster.current = undefined;
  }

  #leave({ id, owner }: Cluster<Access, Source>, connection: Connection<Access, Source>): void {
    const closed = connection.close().finally(() => this.#closing.delete(closed));
    this.#closing.set(closed, { id, owner, phase: 'closing', since: this.#options.clock.date() });
  }
}

function statusOf<Access, Source extends RemoteSource>(cluster: Cluster<Access, Source>): ClusterStatus {
  const { id, owner, since, current, next, isLate } = cluster;
  const trouble = (next ?? current)?.trouble();
  const figures = (current ?? next)?.figures();
  const phase =
    current !== undefined
      ? next === undefined
        ? 'synced'
        : 'swapping'
      : isLate
        ? 'timed out'
        : next?.isHeard === true
          ? 'syncing'
          : 'connecting';
  return { id, owner, phase, since, ...(trouble && { trouble }), ...(figures && { figures }) };
}
