import { setMaxListeners } from 'node:events';
import type { Kind, KindName } from '../../api/kinds.ts';
import type { KubernetesObject } from '../../api/object.ts';
import type { ObjectSink } from '../../api/source.ts';
import type { Budget } from '../client/budget.ts';
import { checked } from './checked.ts';
import type { KubeApi, Query } from '../client/client.ts';
import type { Clock } from '../../base/clock.ts';
import { Informer, type InformerSink } from './informer.ts';
import { type InformerStats, joinedStats } from './informer-stats.ts';
import { Interner } from './interner.ts';
import { JoinedObjects } from './joined-objects.ts';
import type { Log } from '../client/log.ts';
import type { Outages } from '../client/outages.ts';
import { Recovery } from './recovery.ts';
import { shapeOf } from './trim.ts';

export interface ClusterReaderOptions {
  readonly api: KubeApi;
  readonly sink: ObjectSink;
  readonly kinds: readonly Kind<KindName>[];
  /** Where the ConfigMap with the mesh config is. */
  readonly rootNamespace: string;
  /** Names that it may have; no other is read. */
  readonly meshConfigs: readonly string[];
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
  private readonly readings: readonly Reading[];

  constructor(options: ClusterReaderOptions) {
    this.options = options;
    const { clock, random, hold = () => () => undefined } = options;
    this.recovery = new Recovery({ clock, random, hold });
    this.readings = options.kinds.flatMap((kind) => this.readingsOf(kind));
  }

  /** Resolves once the signal has fired and nothing runs any more. */
  async run({ signal }: { readonly signal: AbortSignal }): Promise<void> {
    setMaxListeners(0, signal);
    await Promise.all(this.readings.map(({ informer }) => informer.run({ signal })));
  }

  /** Every kind was read once, or is not installed. Stays true whatever happens to the API server later. */
  ready(): boolean {
    return this.readings.every(({ informer }) => informer.synced);
  }

  /** Resolves once every kind was read, or is not installed, or is optional and forbidden. */
  async whenReady(): Promise<void> {
    await Promise.all(
      this.readings.map(({ informer: { whenSynced }, forbidden }) =>
        forbidden === undefined ? whenSynced : Promise.race([whenSynced, forbidden]),
      ),
    );
  }

  /** Kinds that have not been read yet, with the reason if known: `Pod (403 Forbidden)`. Empty when {@link ready}. */
  waitingFor(): readonly string[] {
    return this.readings.flatMap(({ title, informer }) => {
      const { synced, trouble } = informer.stats();
      return synced ? [] : [trouble === undefined ? title : `${title} (${trouble})`];
    });
  }

  /** The latest copy of the object from the server, including its status conditions. */
  latest(kind: KindName, namespace: string, name: string): KubernetesObject | undefined {
    for (const reading of this.readings) {
      const found = reading.kind === kind ? reading.informer.latest(namespace, name) : undefined;
      if (found !== undefined) return found;
    }
    return undefined;
  }

  stats(): KindStats {
    const byKind = Map.groupBy(this.readings, ({ kind }) => kind);
    return Object.fromEntries(
      Array.from(byKind, ([kind, readings]) => [kind, joinedStats(readings.map(({ informer }) => informer.stats()))]),
    );
  }

  private readingsOf(kind: Kind<KindName>): readonly Reading[] {
    const { sink, meshConfigs: names } = this.options;
    const { name } = kind;
    const at = ({ metadata }: KubernetesObject): [string, string] => [metadata.namespace ?? '', metadata.name];
    const whole: InformerSink = {
      replace: (objects) => sink.replace(name, objects),
      upsert: (object) => sink.upsert(name, object),
      delete: (object) => sink.delete(name, ...at(object)),
    };
    if (name !== 'ConfigMap') return [this.readingOf(kind, name, queries[name], whole)];
    const joined = new JoinedObjects(names, whole);
    return names.map((each) =>
      this.readingOf(
        kind,
        names.length === 1 ? name : `${name} ${each}`,
        { fieldSelector: `metadata.name=${each}` },
        {
          ...joined.of(each),
          failed: ({ code }) => {
            if (code === 403 && this.options.optional?.has(name) === true) joined.forbidden(each);
          },
        },
      ),
    );
  }

  private readingOf(kind: Kind<KindName>, title: string, query: Query | undefined, to: InformerSink): Reading {
    const {
      sink,
      observed,
      optional,
      rootNamespace,
      meshConfigs: __,
      foreign,
      idle,
      pageSize: _,
      ...shared
    } = this.options;
    const { pageSize = foreign && FOREIGN_PAGE } = this.options;
    const shape = shapeOf(kind, this.interner);
    const forbidden = optional?.has(kind.name) === true ? Promise.withResolvers<void>() : undefined;
    const informer = new Informer({
      ...shared,
      name: title,
      type: kind,
      namespace: kind.name === 'ConfigMap' ? rootNamespace : '',
      ...(query && { query }),
      shape: foreign === undefined ? shape : checked(kind, shape),
      ...(foreign && { budget: foreign.budget, longestEvent: FOREIGN_RESPONSE }),
      sink: {
        ...to,
        caughtUp: () => sink.caughtUp?.(kind.name),
        failed: (error) => {
          to.failed?.(error);
          if (error.code === 403) forbidden?.resolve();
        },
        ...((kind.custom || kind.isReported === true) &&
          observed && {
            touched: ({ metadata }: KubernetesObject) => observed(kind.name, metadata.namespace ?? '', metadata.name),
          }),
      },
      ...(servingKinds.has(kind.name) && { doubtsLists: true }),
      recovery: this.recovery,
      ...(pageSize === undefined ? {} : { pageSize }),
      ...(idle === undefined ? {} : { idle }),
    });
    return { kind: kind.name, title, informer, ...(forbidden && { forbidden: forbidden.promise }) };
  }
}

interface Reading {
  readonly kind: KindName;
  /** For people. */
  readonly title: string;
  readonly informer: Informer;
  /** Resolves if it is forbidden, and nobody is to wait for it. */
  readonly forbidden?: Promise<void>;
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
