import { setMaxListeners } from 'node:events';
import type { Kind, KindName } from '../api/kinds.ts';
import type { KubernetesObject } from '../api/object.ts';
import type { ObjectSink } from '../api/source.ts';
import type { Budget } from './budget.ts';
import { checked } from './checked.ts';
import type { KubeApi, Query } from './client.ts';
import type { Clock } from '../clock.ts';
import { Informer } from './informer.ts';
import type { InformerStats } from './informer-stats.ts';
import { Interner } from './interner.ts';
import type { Log } from './log.ts';
import type { Outages } from './outages.ts';
import { Recovery } from './recovery.ts';
import { shapeOf } from './trim.ts';

export interface ClusterReaderOptions {
  readonly api: KubeApi;
  readonly sink: ObjectSink;
  readonly kinds: readonly Kind<KindName>[];
  /** Where the ConfigMap with the mesh config is. */
  readonly rootNamespace: string;
  /** Its name; absent: `istio`. */
  readonly meshConfig?: string;
  /** Kinds that need not be readable: nobody waits for those that are forbidden. */
  readonly optional?: ReadonlySet<KindName>;
  /** The server's copy of an object with conditions changed, even if only in its status: see {@link ClusterReader.latest}. */
  readonly observed?: ((kind: KindName, namespace: string, name: string) => void) | undefined;
  /** Others run the server: what it may send, and make us keep, is limited. */
  readonly foreign?: { readonly budget: Budget };
  /** Holds back what the sink is told from now on until the returned function is called: see {@link Recovery}. */
  readonly hold?: (() => () => void) | undefined;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  readonly outages: Outages;
  readonly pageSize?: number | undefined;
  /** Milliseconds without a byte after which a watch counts as dead. */
  readonly idle?: number | undefined;
}

export type KindStats = Readonly<Partial<Record<KindName, InformerStats>>>;

/** Reads one cluster: an informer for each kind. */
export class ClusterReader {
  private readonly options: ClusterReaderOptions;
  private readonly recovery: Recovery;
  private readonly interner = new Interner();
  private readonly informers = new Map<KindName, Informer>();
  private readonly forbidden = new Map<KindName, PromiseWithResolvers<void>>();

  constructor(options: ClusterReaderOptions) {
    this.options = options;
    const { clock, random, hold = () => () => undefined } = options;
    this.recovery = new Recovery({ clock, random, hold });
    for (const kind of options.optional ?? []) this.forbidden.set(kind, Promise.withResolvers());
    for (const kind of options.kinds) this.informers.set(kind.name, this.informerOf(kind));
  }

  /** Resolves once the signal has fired and nothing runs any more. */
  async run({ signal }: { readonly signal: AbortSignal }): Promise<void> {
    setMaxListeners(0, signal);
    await Promise.all(Array.from(this.informers.values(), (informer) => informer.run({ signal })));
  }

  /** Every kind was read once, or is not installed. Stays true whatever happens to the API server later. */
  ready(): boolean {
    return [...this.informers.values()].every((informer) => informer.synced);
  }

  /** Resolves once every kind was read, or is not installed, or is optional and forbidden. */
  async whenReady(): Promise<void> {
    const { forbidden } = this;
    const read = Array.from(this.informers, ([kind, { whenSynced }]) => {
      const until = forbidden.get(kind)?.promise;
      return until === undefined ? whenSynced : Promise.race([whenSynced, until]);
    });
    await Promise.all(read);
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

  stats(): KindStats {
    return Object.fromEntries(Array.from(this.informers, ([kind, informer]) => [kind, informer.stats()]));
  }

  private informerOf(kind: Kind<KindName>): Informer {
    const { sink, observed, rootNamespace, meshConfig = 'istio', foreign, idle, pageSize: _, ...shared } = this.options;
    const { pageSize = foreign && FOREIGN_PAGE } = this.options;
    const shape = shapeOf(kind, this.interner);
    const at = ({ metadata }: KubernetesObject): [string, string] => [metadata.namespace ?? '', metadata.name];
    const query: Query | undefined =
      kind.name === 'ConfigMap' ? { fieldSelector: `metadata.name=${meshConfig}` } : queries[kind.name];
    const forbidden = this.forbidden.get(kind.name);
    return new Informer({
      ...shared,
      name: kind.name,
      type: kind,
      namespace: kind.name === 'ConfigMap' ? rootNamespace : '',
      ...(query && { query }),
      shape: foreign === undefined ? shape : checked(kind, shape),
      ...(foreign && { budget: foreign.budget, longestEvent: FOREIGN_RESPONSE }),
      sink: {
        replace: (objects) => sink.replace(kind.name, objects),
        upsert: (object) => sink.upsert(kind.name, object),
        delete: (object) => sink.delete(kind.name, ...at(object)),
        caughtUp: () => sink.caughtUp?.(kind.name),
        ...(forbidden && {
          failed: ({ code }) => {
            if (code === 403) forbidden.resolve();
          },
        }),
        ...((kind.custom || kind.isReported === true) &&
          observed && { touched: (object: KubernetesObject) => observed(kind.name, ...at(object)) }),
      },
      ...(servingKinds.has(kind.name) && { doubtsLists: true }),
      recovery: this.recovery,
      ...(pageSize === undefined ? {} : { pageSize }),
      ...(idle === undefined ? {} : { idle }),
    });
  }
}

/** Maximum bytes of a response of a server that others run, and of an event: twice what etcd takes. */
export const FOREIGN_RESPONSE = 4 * 1024 * 1024;
/** Objects; a page of so many Pods is about 1 MB. */
const FOREIGN_PAGE = 100;

/** Kinds that are read only in part. */
const queries: Readonly<Partial<Record<KindName, Query>>> = {
  Pod: { fieldSelector: 'status.phase!=Failed' },
};

/** What endpoints are made from: most of it does not vanish at once. */
const servingKinds: ReadonlySet<KindName> = new Set(['Pod', 'EndpointSlice', 'Endpoints']);
