import { setMaxListeners } from 'node:events';
import { CoreV1Api } from '@kubernetes/client-node';
import dotI, { type OperatorLogger } from '@dot-i/k8s-operator';
import { kinds as allKinds, type Kind, type KindName } from '../api/kinds.ts';
import type { KubernetesObject } from '../api/object.ts';
import type { ObjectSink } from '../api/source.ts';
import type { KubeClient, Query } from './client.ts';
import { systemClock, type Clock } from '../clock.ts';
import { Informer, type InformerStats } from './informer.ts';
import { Interner } from './interner.ts';
import { sayWhatIsLate } from './late-kinds.ts';
import type { Log } from './log.ts';
import { Outages } from './outages.ts';
import { Recovery } from './recovery.ts';
import { shapeOf } from './trim.ts';

// As the default export, Node gives the CommonJS module; bundlers and vitest give its class.
const Framework = 'default' in dotI ? dotI.default : dotI;

/**
 * The framework's constructor reads $KUBECONFIG or ~/.kube/config and throws if that file is broken, even if another
 * configuration is in use. This class keeps it from finding either.
 */
abstract class Base extends Framework {
  constructor(logger: OperatorLogger) {
    const { KUBECONFIG, HOME } = process.env;
    delete process.env['KUBECONFIG'];
    delete process.env['HOME'];
    try {
      super(logger);
    } finally {
      if (KUBECONFIG !== undefined) process.env['KUBECONFIG'] = KUBECONFIG;
      if (HOME !== undefined) process.env['HOME'] = HOME;
    }
  }
}

export interface FairleadOperatorOptions {
  readonly client: KubeClient;
  readonly sink: ObjectSink;
  readonly log: Log;
  /** Stops everything, like `stop()`. */
  readonly signal: AbortSignal;
  /** Where the ConfigMap `istio` is. */
  readonly rootNamespace: string;
  readonly kinds?: readonly Kind<KindName>[];
  /** The server's copy of a custom object changed, even if only in its status: see {@link FairleadOperator.latest}. */
  readonly observed?: (kind: KindName, namespace: string, name: string) => void;
  /** Holds back what the sink is told from now on until the returned function is called: see {@link Recovery}. */
  readonly hold?: () => () => void;
  /** Shared by all clients of the same API server, so that each outage is logged once. */
  readonly outages?: Outages;
  readonly clock?: Clock;
  readonly random?: () => number;
  readonly pageSize?: number;
  /** Milliseconds without a byte after which a watch counts as dead. */
  readonly idle?: number;
}

export interface OperatorStats {
  /** Lists after the first of each kind. */
  readonly relists: number;
  readonly malformedObjects: number;
  /** That of the stalest kind. */
  readonly stalenessSeconds: number;
  readonly kinds: Readonly<Partial<Record<KindName, InformerStats>>>;
}

/**
 * The operator: the lifecycle and the logger of @dot-i/k8s-operator. It does not use the framework's watch, which never
 * delivers deletions that happened while it was down, and ends the process if the server responds with an error.
 */
export class FairleadOperator extends Base {
  private readonly options: FairleadOperatorOptions;
  private readonly ending = new AbortController();
  private readonly clock: Clock;
  private readonly random: () => number;
  private readonly outages: Outages;
  private readonly recovery: Recovery;
  private readonly interner = new Interner();
  private readonly informers = new Map<KindName, Informer>();
  private readonly running: Promise<void>[] = [];

  constructor(options: FairleadOperatorOptions) {
    super(options.log);
    this.options = options;
    this.clock = options.clock ?? systemClock;
    this.random = options.random ?? Math.random;
    this.outages = options.outages ?? new Outages({ log: options.log, clock: this.clock, signal: this.ending.signal });
    const { hold = () => () => undefined } = options;
    this.recovery = new Recovery({ clock: this.clock, random: this.random, hold });
    this.kubeConfig = options.client.config;
    this.k8sApi = this.kubeConfig.makeApiClient(CoreV1Api);
    setMaxListeners(0, this.ending.signal);
    for (const kind of options.kinds ?? allKinds) this.informers.set(kind.name, this.informerOf(kind));
  }

  protected override async init(): Promise<void> {
    const { signal } = this.options;
    if (signal.aborted) return this.stop();
    signal.addEventListener('abort', () => this.stop(), { once: true, signal: this.ending.signal });
    for (const informer of this.informers.values()) this.running.push(informer.run({ signal: this.ending.signal }));
    const { clock } = this;
    sayWhatIsLate({ waitingFor: () => this.waitingFor(), clock, log: this.options.log, signal: this.ending.signal });
  }

  /** Every kind was read once, or is not installed. Stays true whatever happens to the API server later. */
  ready(): boolean {
    return [...this.informers.values()].every((informer) => informer.synced);
  }

  /** Resolves once {@link ready} is true. */
  async whenReady(): Promise<void> {
    await Promise.all(Array.from(this.informers.values(), (informer) => informer.whenSynced));
  }

  /** Kinds that have not been read yet, with the reason if known: `Pod (403 Forbidden)`. Empty when {@link ready}. */
  waitingFor(): readonly string[] {
    return [...this.informers].flatMap(([kind, informer]) => {
      const { synced, trouble } = informer.stats();
      return synced ? [] : [trouble === undefined ? kind : `${kind} (${trouble})`];
    });
  }

  /** The latest copy of the object from the server, including its status conditions. */
  latest(kind: KindName, namespace: string, name: string): KubernetesObject | undefined {
    return this.informers.get(kind)?.latest(namespace, name);
  }

  stats(): OperatorStats {
    const kinds = Object.fromEntries(Array.from(this.informers, ([kind, informer]) => [kind, informer.stats()]));
    const all = Object.values(kinds);
    return {
      relists: all.reduce((sum, { lists }) => sum + Math.max(0, lists - 1), 0),
      malformedObjects: all.reduce((sum, { malformed }) => sum + malformed, 0),
      stalenessSeconds: Math.max(0, ...all.map(({ stalenessSeconds }) => stalenessSeconds)),
      kinds,
    };
  }

  /** Stops all watches. Never ends the process. */
  override stop(): void {
    this.ending.abort();
  }

  /** {@link stop}, then closes the client's connections. Must be the last call. */
  async shutdown(): Promise<void> {
    this.stop();
    await Promise.all(this.running);
    await this.options.client.close();
  }

  private informerOf(kind: Kind<KindName>): Informer {
    const { client, sink, observed, rootNamespace, log, pageSize, idle } = this.options;
    const { clock, random, outages, recovery } = this;
    const at = ({ metadata }: KubernetesObject): [string, string] => [metadata.namespace ?? '', metadata.name];
    const query = queries[kind.name];
    return new Informer({
      name: kind.name,
      type: kind,
      namespace: kind.name === 'ConfigMap' ? rootNamespace : '',
      ...(query && { query }),
      shape: shapeOf(kind, this.interner),
      sink: {
        replace: (objects) => sink.replace(kind.name, objects),
        upsert: (object) => sink.upsert(kind.name, object),
        delete: (object) => sink.delete(kind.name, ...at(object)),
        caughtUp: () => sink.caughtUp?.(kind.name),
        ...(kind.custom && observed && { touched: (object) => observed(kind.name, ...at(object)) }),
      },
      ...(servingKinds.has(kind.name) && { doubtsLists: true }),
      api: client,
      clock,
      random,
      log,
      outages,
      recovery,
      ...(pageSize === undefined ? {} : { pageSize }),
      ...(idle === undefined ? {} : { idle }),
    });
  }
}

/** Kinds that are read only in part. */
const queries: Readonly<Partial<Record<KindName, Query>>> = {
  ConfigMap: { fieldSelector: 'metadata.name=istio' },
  Pod: { fieldSelector: 'status.phase!=Failed' },
};

/** What endpoints are made from: most of it does not vanish at once. */
const servingKinds: ReadonlySet<KindName> = new Set(['Pod', 'EndpointSlice', 'Endpoints']);
