import { setMaxListeners } from 'node:events';
import { isDeepStrictEqual } from 'node:util';
import { Backoff } from '../base/backoff.ts';
import { type Clock, sleep } from '../base/clock.ts';
import type { EtcdConnection } from '../etcd/connection.ts';
import { type KeyRange, keysUnder, singleKey } from '../etcd/keys.ts';
import { ListWatch, type ListWatchSink, type ListWatchStats } from '../etcd/list-watch.ts';
import { IdleResetBackoff } from '../base/idle-reset-backoff.ts';
import { failureOf, type MeshFailure, printFailure } from './advice.ts';
import { type ClusterConfig, decodeClusterConfig, limitProblem } from './cluster-config.ts';
import { Heartbeat, LONGEST_SILENCE } from './heartbeat.ts';
import {
  canaryKey,
  canaryPrefix,
  clusterConfigKey,
  HEARTBEAT,
  kindOfCanary,
  prefixOf,
  type StoredKind,
  storedKinds,
  type Tree,
} from './keys.ts';
import type { Decoded } from './member.ts';
import type { MeshCluster } from './names.ts';

/** What a session reads for, and where it puts it. */
export interface SessionOptions {
  /** The name of the cluster that is read. */
  readonly name: string;
  readonly own: MeshCluster;
  readonly connection: EtcdConnection;
  /** Reserves the cluster's id, and gives back a former one. Returns why it cannot have it. */
  readonly admit: (cluster: MeshCluster) => string | undefined;
  /** What the cluster's keys of a kind go to; undefined: they are not read. */
  readonly sinkOf: (
    kind: StoredKind,
    prefix: string,
    cluster: MeshCluster,
    config: ClusterConfig,
  ) => ListWatchSink<unknown> | undefined;
  readonly clock: Clock;
  readonly random: () => number;
}

/** What is read, besides the kinds. */
type Part = 'heartbeat' | 'cluster config' | 'canaries' | StoredKind;

interface KeyLimits {
  readonly mostKeys: number;
  readonly mostBytes: number;
}

/** Keys, and bytes of keys and values, of one cluster that are read: about what clusters of 5,000 nodes have. */
const limits: Readonly<Record<StoredKind, KeyLimits>> = {
  nodes: { mostKeys: 10_000, mostBytes: 32 << 20 },
  services: { mostKeys: 20_000, mostBytes: 64 << 20 },
  endpointslices: { mostKeys: 40_000, mostBytes: 64 << 20 },
  identities: { mostKeys: 65_536, mostBytes: 32 << 20 },
  ip: { mostKeys: 100_000, mostBytes: 64 << 20 },
};
/** Of what says how to read the rest. */
const SMALL = { mostKeys: 100, mostBytes: 1 << 20 };

/** Milliseconds between two attempts to get an id that another cluster has, and between changes of a config. */
const FIRST_DELAY = 1_000;
const LONGEST_DELAY = 30_000;

/** What is read over one connection to another cluster's etcd, until that ends or falls silent. */
export class Session {
  readonly since: Date;
  readonly #options: SessionOptions;
  readonly #heartbeat: Heartbeat;
  readonly #silent = Promise.withResolvers<MeshFailure>();
  readonly #watches = new Map<Part, ListWatch<unknown>>();
  #config: ClusterConfig | undefined;
  /** Why the cluster is not read although its etcd is. */
  #refusal: { readonly reason: string; readonly since: Date } | undefined;
  /** Ends what is read because of one cluster config. */
  #reading = new AbortController();
  #read: Promise<void> = Promise.resolve();
  /** With each change, everything may be drained, and is read again. */
  readonly #spacing: IdleResetBackoff;

  constructor(options: SessionOptions) {
    const { clock, random } = options;
    this.#options = options;
    this.since = clock.date();
    this.#spacing = new IdleResetBackoff({ base: FIRST_DELAY, cap: LONGEST_DELAY, clock, random });
    this.#heartbeat = new Heartbeat(clock, () =>
      this.#silent.resolve({
        reason: `its heartbeat has been silent for ${LONGEST_SILENCE / 60_000} minutes`,
        next: 'check that its clustermesh-apiserver writes to this etcd',
      }),
    );
  }

  /** Its etcd has answered. */
  get isConnected(): boolean {
    return this.#watches.get('heartbeat')?.stats().current ?? false;
  }

  /** What the cluster says of itself now, or undefined if there is nothing yet, or nothing that can be used. */
  get config(): ClusterConfig | undefined {
    return this.#config;
  }

  /** When it last showed that it is alive. Milliseconds of `clock.now()`. */
  get heardAt(): number {
    return this.#heartbeat.heardAt;
  }

  /** What the cluster must have written before a kind is read, or undefined if there is nothing. */
  canaryOf(kind: StoredKind): string | undefined {
    if (this.#config?.syncedCanaries !== true || this.#watches.has(kind)) return undefined;
    return canaryKey(kind, this.#config.cached ? 'cache' : 'state', this.#options.name);
  }

  statsOf(part: Part): ListWatchStats | undefined {
    return this.#watches.get(part)?.stats();
  }

  /** What keeps it from being up to date. */
  troubles(): readonly { readonly reason: string; readonly since: Date }[] {
    const troubles = Array.from(this.#watches, ([part, watch]) => {
      const { trouble, beyond } = watch.stats();
      if (trouble !== undefined)
        return { reason: `${part}: ${printFailure(failureOf(trouble.error))}`, since: trouble.since };
      return beyond === 0 ? undefined : { reason: `${part}: ${beyond} are too many, and ignored`, since: this.since };
    }).filter((trouble) => trouble !== undefined);
    return [...(this.#refusal === undefined ? [] : [this.#refusal]), ...troubles];
  }

  /** Resolves with why it has ended; undefined: the signal has fired. */
  async run({ signal }: { readonly signal: AbortSignal }): Promise<MeshFailure | undefined> {
    const { connection, name } = this.#options;
    const end = new AbortController();
    setMaxListeners(0, end.signal);
    const { promise: aborted, resolve: abort } = Promise.withResolvers<undefined>();
    const onAbort = (): void => abort(undefined);
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
    const tasks = [
      this.#watch('heartbeat', singleKey(HEARTBEAT), this.#heartbeat, SMALL, end.signal),
      this.#watch('cluster config', singleKey(clusterConfigKey(name)), this.#configSink(), SMALL, end.signal),
    ];
    const failure = await Promise.race([connection.ended.then(failureOf), this.#silent.promise, aborted]);
    signal.removeEventListener('abort', onAbort);
    end.abort();
    this.#heartbeat.end();
    this.#reading.abort();
    await Promise.all([...tasks, this.#read]);
    return failure;
  }

  /** Follows the keys, over the connection, until the signal fires. */
  #watch<T>(part: Part, keys: KeyRange, sink: ListWatchSink<T>, limits: KeyLimits, signal: AbortSignal): Promise<void> {
    const { connection, clock, random } = this.#options;
    const watch = new ListWatch<T>({ ...{ keys, sink, clock, random }, ...limits });
    this.#watches.set(part, watch as ListWatch<unknown>);
    return watch.run(connection, { signal });
  }

  #configSink(): ListWatchSink<Decoded<ClusterConfig>> {
    return {
      read: ({ value }) => decodeClusterConfig(value),
      replace: (entries, unread) => {
        const [config] = entries.values();
        if (config !== undefined) this.#configured(config);
        else if (unread.size > 0) this.#configured({ wrong: 'is too long to be read' });
        else
          this.#refuse(`${clusterConfigKey(this.#options.name)} does not exist; check that the cluster has this name`);
        return undefined;
      },
      upsert: (_, config) => this.#configured(config),
      // It hangs on a lease, and is written again.
      delete: () => undefined,
    };
  }

  #configured(decoded: Decoded<ClusterConfig>): void {
    if ('wrong' in decoded) return this.#refuse(`cluster config: ${decoded.wrong}`);
    const config = decoded.value;
    if (isDeepStrictEqual(config, this.#config)) return;
    const problem = limitProblem(config, this.#options.own);
    if (problem !== undefined) return this.#refuse(`cluster config: ${problem}`);
    this.#reading.abort();
    this.#refusal = undefined;
    this.#config = config;
    const reading = (this.#reading = new AbortController());
    setMaxListeners(0, reading.signal);
    this.#read = this.#read.then(() => this.#follow(config, reading.signal));
  }

  /** What is known stays, and nothing more is read. */
  #refuse(reason: string): void {
    this.#reading.abort();
    this.#config = undefined;
    this.#refusal = { reason, since: this.#refusal?.since ?? this.#options.clock.date() };
  }

  async #follow(config: ClusterConfig, signal: AbortSignal): Promise<void> {
    const { name, own, sinkOf, clock } = this.#options;
    const cluster = { name, id: config.id, limit: own.limit };
    for (const kind of ['canaries', ...storedKinds] as const) this.#watches.delete(kind);
    const delay = signal.aborted ? 0 : this.#spacing.next();
    if (delay > 0) await sleep(clock, delay, { signal });
    await this.#admit(cluster, signal);
    const tree: Tree = config.cached ? 'cache' : 'state';
    const running = new Map<StoredKind, Promise<void>>();
    const start = (kind: StoredKind | undefined): void => {
      if (kind === undefined || running.has(kind) || signal.aborted) return;
      const prefix = prefixOf(kind, tree, name);
      const sink = sinkOf(kind, prefix, cluster, config);
      if (sink !== undefined) running.set(kind, this.#watch(kind, keysUnder(prefix), sink, limits[kind], signal));
    };
    if (config.syncedCanaries) {
      const sink = canarySink((key) => start(kindOfCanary(key, tree, name)));
      await this.#watch('canaries', keysUnder(canaryPrefix(name)), sink, SMALL, signal);
    } else for (const kind of storedKinds) start(kind);
    await Promise.all(running.values());
  }

  /** Returns when the cluster has its id, or the signal has fired. */
  async #admit(cluster: MeshCluster, signal: AbortSignal): Promise<void> {
    const { admit, clock, random } = this.#options;
    const backoff = new Backoff({ base: FIRST_DELAY, cap: LONGEST_DELAY, random });
    while (!signal.aborted) {
      const problem = admit(cluster);
      if (problem === undefined) {
        this.#refusal = undefined;
        return;
      }
      this.#refusal = { reason: problem, since: this.#refusal?.since ?? clock.date() };
      await sleep(clock, backoff.next(), { signal });
    }
  }
}

/** Calls back for each canary that is there. Some that go away again change nothing: what they announced is there. */
function canarySink(seen: (key: string) => void): ListWatchSink<undefined> {
  return {
    read: () => undefined,
    replace(entries) {
      for (const key of entries.keys()) seen(key);
      return undefined;
    },
    upsert: (key) => seen(key),
    delete: () => undefined,
  };
}
