import { readFile } from 'node:fs/promises';
import { setMaxListeners } from 'node:events';
import { CoreV1Api, loadYaml, type V1CustomResourceDefinition } from '@kubernetes/client-node';
import dotI, {
  ResourceEventType,
  ResourceMetaImpl,
  type OperatorLogger,
  type ResourceEvent,
  type ResourceMeta,
} from '@dot-i/k8s-operator';
import { kinds as allKinds, type Kind, type KindName } from '../api/kinds.ts';
import type { KubernetesObject } from '../api/object.ts';
import type { ObjectSink } from '../api/source.ts';
import { ApiError } from './api-error.ts';
import type { KubeClient, Query } from './client.ts';
import { systemClock, type Clock } from './clock.ts';
import { isInstalled } from './discovery.ts';
import { EventQueue } from './event-queue.ts';
import { Informer, type InformerSink, type InformerStats, type Shape } from './informer.ts';
import { Interner } from './interner.ts';
import { isObject } from '../api/json.ts';
import { sayWhatIsLate } from './late-kinds.ts';
import type { Log } from './log.ts';
import { Outages } from './outages.ts';
import { collectionPath, objectPath, type ResourceType } from './paths.ts';
import { Recovery } from './recovery.ts';
import { shapeOf, wholeShape } from './trim.ts';

// Node gives the CommonJS module as default export, bundlers and vitest its class.
const Framework = 'default' in dotI ? dotI.default : dotI;

/**
 * The framework's constructor reads $KUBECONFIG or ~/.kube/config and throws when that is broken, also when the
 * configuration in use is another one. It is to find neither.
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
  /** Ends everything, as `stop()` does. */
  readonly signal: AbortSignal;
  /** Where the ConfigMap `istio` is. */
  readonly rootNamespace: string;
  readonly kinds?: readonly Kind[];
  /** The server's copy of an object of a custom kind changed, if only in its status: see {@link FairleadOperator.latest}. */
  readonly observed?: (kind: KindName, namespace: string, name: string) => void;
  /** What the sink is told from now on takes no effect before the result is called: see {@link Recovery}. */
  readonly hold?: () => () => void;
  /** Shared with others that talk to the same API server: its troubles are said once. */
  readonly outages?: Outages;
  readonly clock?: Clock;
  readonly random?: () => number;
  readonly pageSize?: number;
  /** Milliseconds without a byte after which a watch counts as dead. */
  readonly idle?: number;
}

export interface OperatorStats {
  /** Lists after the first one of each kind. */
  readonly relists: number;
  readonly oddObjects: number;
  /** Of the kind that was heard of longest ago. */
  readonly stalenessSeconds: number;
  readonly kinds: Readonly<Partial<Record<KindName, InformerStats>>>;
}

/**
 * The operator: lifecycle, logger, event vocabulary and finalizer flow of @dot-i/k8s-operator. All that talks to the API
 * server is replaced, because the framework's watch never delivers what was deleted while it was down and ends the
 * process when the server answers with an error.
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
  private readonly queues: EventQueue[] = [];
  private readonly running: Promise<void>[] = [];
  /** Resource ids of the framework -> what they stand for. */
  private readonly types = new Map<string, ResourceType>();

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
    for (const kind of options.kinds ?? allKinds) this.informers.set(kind.kind, this.informerOf(kind));
  }

  protected override async init(): Promise<void> {
    const { signal } = this.options;
    if (signal.aborted) return this.stop();
    signal.addEventListener('abort', () => this.stop(), { once: true, signal: this.ending.signal });
    for (const informer of this.informers.values()) this.running.push(informer.run({ signal: this.ending.signal }));
    const { clock } = this;
    sayWhatIsLate({ waitingFor: () => this.waitingFor(), clock, log: this.options.log, signal: this.ending.signal });
  }

  /** Every kind was read once, or is not installed. Stays true, whatever happens to the API server later. */
  ready(): boolean {
    return [...this.informers.values()].every((informer) => informer.synced);
  }

  /** Fulfilled when {@link ready} is true. */
  async whenReady(): Promise<void> {
    await Promise.all(Array.from(this.informers.values(), (informer) => informer.whenSynced));
  }

  /** Kinds that were not read yet, and why where it is known: `Pod (403 Forbidden)`. Empty when {@link ready}. */
  waitingFor(): readonly string[] {
    return [...this.informers].flatMap(([kind, informer]) => {
      const { synced, trouble } = informer.stats();
      return synced ? [] : [trouble === undefined ? kind : `${kind} (${trouble})`];
    });
  }

  /** The object as the server last showed it, its status conditions included. */
  latest(kind: KindName, namespace: string, name: string): KubernetesObject | undefined {
    return this.informers.get(kind)?.latest(namespace, name);
  }

  stats(): OperatorStats {
    const kinds = Object.fromEntries(Array.from(this.informers, ([kind, informer]) => [kind, informer.stats()]));
    const all = Object.values(kinds);
    return {
      relists: all.reduce((sum, { lists }) => sum + Math.max(0, lists - 1), 0),
      oddObjects: all.reduce((sum, { odd }) => sum + odd, 0),
      stalenessSeconds: Math.max(0, ...all.map(({ stalenessSeconds }) => stalenessSeconds)),
      kinds,
    };
  }

  /** Ends all watches. Never ends the process. */
  override stop(): void {
    this.ending.abort();
  }

  /** {@link stop}, then waits for handlers that run, and closes the client's connections: the last call of all. */
  async shutdown(): Promise<void> {
    this.stop();
    await Promise.all(this.running);
    await Promise.all(this.queues.map((queue) => queue.idle()));
    await this.options.client.close();
  }

  /**
   * As in the framework, but lossless: an object that vanished while the watch was down is an event too, one that was
   * created anew is two, and a handler that rejects is called again.
   */
  protected override async watchResource(
    group: string,
    version: string,
    plural: string,
    onEvent: (event: ResourceEvent) => Promise<void>,
    namespace?: string,
  ): Promise<void> {
    const { signal } = this.ending;
    const { clock, random } = this;
    const type = { group, version, plural };
    const id = `${plural}.${group === '' ? version : `${group}/${version}`}`;
    this.types.set(id, type);
    const queue = new EventQueue({
      types: ResourceEventType,
      metaOf: (object) => ResourceMetaImpl.createWithId(id, object as never),
      onEvent,
      clock,
      random,
      log: this.options.log,
      signal,
    });
    this.queues.push(queue);
    const informer = this.informer(id, type, collectionPath(type, namespace), wholeShape, queue);
    this.running.push(informer.run({ signal }));
  }

  protected override getCustomResourceApiUri(
    group: string,
    version: string,
    plural: string,
    namespace?: string,
  ): string {
    return `${this.kubeConfig.getCurrentCluster()?.server ?? ''}${collectionPath({ group, version, plural }, namespace)}`;
  }

  /** Replaces the status. Null: the object is gone. Rejects on a conflict. */
  protected override async setResourceStatus(meta: ResourceMeta, status: unknown): Promise<ResourceMeta | null> {
    const { apiVersion, kind, name, namespace, resourceVersion } = meta;
    const body = { apiVersion, kind, metadata: { name, namespace, resourceVersion }, status };
    return this.written(meta, (path, call) => this.options.client.put(`${path}/status`, body, call));
  }

  /** A merge patch of the status. Null: the object is gone. Rejects on a conflict. */
  protected override async patchResourceStatus(meta: ResourceMeta, status: unknown): Promise<ResourceMeta | null> {
    const body = { metadata: { resourceVersion: meta.resourceVersion }, status };
    return this.written(meta, (path, call) => this.options.client.patch(`${path}/status`, body, call));
  }

  protected override async handleResourceFinalizer(
    event: ResourceEvent,
    finalizer: string,
    deleteAction: (event: ResourceEvent) => Promise<void>,
  ): Promise<boolean> {
    // The framework adds to the list that it is given.
    const copy = { ...event, object: structuredClone(event.object) };
    return super.handleResourceFinalizer(copy, finalizer, deleteAction);
  }

  /** Replaces the list that the event showed: with another one in between it rejects, and the event comes again. */
  protected override async setResourceFinalizers(meta: ResourceMeta, finalizers: string[]): Promise<void> {
    const body = { metadata: { resourceVersion: meta.resourceVersion, finalizers } };
    await this.written(meta, (path, call) => this.options.client.patch(path, body, call));
  }

  /** Creates the definition unless there is one of this name. */
  protected override async registerCustomResourceDefinition(
    crdFile: string,
  ): Promise<{ group: string; versions: V1CustomResourceDefinition['spec']['versions']; plural: string }> {
    const crd = loadYaml<V1CustomResourceDefinition>(await readFile(crdFile, 'utf8'));
    const type = { group: 'apiextensions.k8s.io', version: 'v1', plural: 'customresourcedefinitions' };
    if (!isObject(crd) || crd.apiVersion !== 'apiextensions.k8s.io/v1')
      throw new Error(`${crdFile} is not a CustomResourceDefinition of apiextensions.k8s.io/v1`);
    try {
      await this.options.client.post(collectionPath(type), crd, { signal: this.ending.signal });
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 409) throw error;
    }
    return { group: crd.spec.group, versions: crd.spec.versions, plural: crd.spec.names.plural };
  }

  private async written(
    meta: ResourceMeta,
    write: (path: string, call: { signal: AbortSignal }) => Promise<unknown>,
  ): Promise<ResourceMeta | null> {
    const type = this.types.get(meta.id);
    if (type === undefined) throw new Error(`${meta.id} is not watched`);
    try {
      const object = await write(objectPath(type, meta.namespace ?? '', meta.name), { signal: this.ending.signal });
      return ResourceMetaImpl.createWithId(meta.id, object as never);
    } catch (error) {
      if (error instanceof ApiError && error.code === 404) return null;
      throw error;
    }
  }

  private informerOf(kind: Kind): Informer {
    const { sink, observed, rootNamespace } = this.options;
    const at = ({ metadata }: KubernetesObject): [string, string] => [metadata.namespace ?? '', metadata.name];
    const path = collectionPath(kind, kind.kind === 'ConfigMap' ? rootNamespace : '');
    return this.informer(
      kind.kind,
      kind,
      path,
      shapeOf(kind, this.interner),
      {
        replace: (objects) => sink.replace(kind.kind, objects),
        upsert: (object) => sink.upsert(kind.kind, object),
        delete: (object) => sink.delete(kind.kind, ...at(object)),
        ...(kind.custom && observed !== undefined ? { touched: (object) => observed(kind.kind, ...at(object)) } : {}),
      },
      queries[kind.kind],
    );
  }

  private informer(
    name: string,
    type: ResourceType,
    path: string,
    shape: Shape,
    sink: InformerSink,
    query?: Query,
  ): Informer {
    const { client, log, pageSize, idle } = this.options;
    const { clock, random, outages, recovery } = this;
    return new Informer({
      name,
      path,
      ...(query === undefined ? {} : { query }),
      shape,
      sink,
      installed: (options) => isInstalled(client, type, options),
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

/** Kinds of which only a part is read. */
const queries: Readonly<Partial<Record<KindName, Query>>> = {
  ConfigMap: { fieldSelector: 'metadata.name=istio' },
  Pod: { fieldSelector: 'status.phase!=Failed' },
};
