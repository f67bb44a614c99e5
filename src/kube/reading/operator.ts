import { CoreV1Api } from '@kubernetes/client-node';
import dotI, { type OperatorLogger } from '@dot-i/k8s-operator';
import { kinds as allKinds, type Kind, type KindName } from '../../api/kinds.ts';
import type { KubernetesObject } from '../../api/object.ts';
import type { ObjectSink } from '../../api/source.ts';
import type { KubeClient } from '../client/client.ts';
import { ClusterReader, type KindStats } from './cluster-reader.ts';
import { systemClock, type Clock } from '../../base/clock.ts';
import { logSlowKinds } from './slow-kinds.ts';
import type { Log } from '../client/log.ts';
import { Outages } from '../client/outages.ts';

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
  /** Where the ConfigMap with the mesh config is. */
  readonly rootNamespace: string;
  /**
   * It has ended although nobody stopped it, and reads nothing any more: a bug, since it tries again whatever an API
   * server does.
   */
  readonly failed?: (error: unknown) => void;
  /** Names that it may have. */
  readonly meshConfigs: readonly string[];
  readonly kinds?: readonly Kind<KindName>[];
  /** The server's copy of a custom object changed, even if only in its status: see {@link FairleadOperator.latest}. */
  readonly observed?: (kind: KindName, namespace: string, name: string) => void;
  /** Holds back what the sink is told from now on until the returned function is called. */
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
  readonly kinds: KindStats;
}

/**
 * The operator: the lifecycle and the logger of @dot-i/k8s-operator. It does not use the framework's watch, which never
 * delivers deletions that happened while it was down, and ends the process if the server responds with an error.
 */
export class FairleadOperator extends Base {
  private readonly options: FairleadOperatorOptions;
  private readonly ending = new AbortController();
  private readonly clock: Clock;
  private readonly reader: ClusterReader;
  private running: Promise<void> | undefined;

  constructor(options: FairleadOperatorOptions) {
    super(options.log);
    this.options = options;
    const { client, sink, rootNamespace, meshConfigs, observed, hold, log, pageSize, idle } = options;
    const { clock = systemClock, random = Math.random, kinds = allKinds } = options;
    this.clock = clock;
    const outages = options.outages ?? new Outages({ log, clock, signal: this.ending.signal });
    this.kubeConfig = client.config;
    this.k8sApi = this.kubeConfig.makeApiClient(CoreV1Api);
    const shared = { clock, random, log, outages };
    this.reader = new ClusterReader({
      ...{ ...shared, api: client, sink, kinds, rootNamespace, meshConfigs },
      ...{ observed, hold, pageSize, idle },
    });
  }

  protected override async init(): Promise<void> {
    const { signal } = this.options;
    if (signal.aborted) return this.stop();
    signal.addEventListener('abort', () => this.stop(), { once: true, signal: this.ending.signal });
    this.running = this.reader
      .run({ signal: this.ending.signal })
      .then(() => {
        if (!this.ending.signal.aborted) throw new Error('reading ended');
      })
      .catch((error: unknown) => this.options.failed?.(error));
    const { clock } = this;
    logSlowKinds({ waitingFor: () => this.waitingFor(), clock, log: this.options.log, signal: this.ending.signal });
  }

  /** See {@link ClusterReader.ready}. */
  ready(): boolean {
    return this.reader.ready();
  }

  whenReady(): Promise<void> {
    return this.reader.whenReady();
  }

  waitingFor(): readonly string[] {
    return this.reader.waitingFor();
  }

  latest(kind: KindName, namespace: string, name: string): KubernetesObject | undefined {
    return this.reader.latest(kind, namespace, name);
  }

  stats(): OperatorStats {
    const kinds = this.reader.stats();
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
    await this.running;
    await this.options.client.close();
  }
}
