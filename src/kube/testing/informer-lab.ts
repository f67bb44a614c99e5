import { kinds, type Kind, type KindName } from '../../api/kinds.ts';
import type { KubernetesObject } from '../../api/object.ts';
import { Informer, type InformerOptions } from '../reading/informer.ts';
import { Interner } from '../reading/interner.ts';
import type { Json } from '../../api/json.ts';
import { Outages } from '../client/outages.ts';
import { collectionPath } from '../client/paths.ts';
import { shapeOf } from '../reading/trim.ts';
import { FakeClock } from '../../testing/fake-clock.ts';
import { FakeCluster } from './fake-cluster.ts';
import { RecordingLog } from './recording-log.ts';
import { RecordingSink } from './recording-sink.ts';

/** One informer against an in-memory cluster; the test controls time. */
export class InformerLab {
  readonly clock = new FakeClock();
  readonly cluster = new FakeCluster();
  readonly log = new RecordingLog();
  readonly outages = new Outages({ log: this.log, clock: this.clock });
  readonly sink = new RecordingSink();
  readonly touched: KubernetesObject[] = [];
  onTouched: (object: KubernetesObject) => void = () => undefined;
  readonly kind: Kind<KindName>;
  readonly path: string;
  readonly informer: Informer;
  private readonly ending = new AbortController();
  private running: Promise<void> | undefined;

  constructor(kind: KindName = 'VirtualService', options: Partial<InformerOptions> = {}) {
    this.kind = kinds.find((k) => k.kind === kind)!;
    this.path = collectionPath(this.kind);
    const { cluster, clock, log, outages, sink } = this;
    this.informer = new Informer({
      name: kind,
      type: this.kind,
      shape: shapeOf(this.kind, new Interner()),
      sink: {
        replace: (objects) => sink.replace(kind, objects),
        upsert: (object) => sink.upsert(kind, object),
        delete: ({ metadata }) => sink.delete(kind, metadata.namespace ?? '', metadata.name),
        caughtUp: () => sink.caughtUp(kind),
        touched: (object) => {
          this.touched.push(object);
          this.onTouched(object);
        },
      },
      api: cluster,
      clock,
      random: () => 0.5,
      log,
      outages,
      ...options,
    });
  }

  install(): this {
    this.cluster.install(this.path, this.kind.kind);
    return this;
  }

  async start(): Promise<this> {
    this.running = this.informer.run({ signal: this.ending.signal });
    await this.clock.settle();
    return this;
  }

  async stop(): Promise<void> {
    this.ending.abort();
    await this.running;
  }

  put(name: string, host = name, more: Json = {}): Json {
    const metadata = { name, namespace: 'default' };
    return this.cluster.apply(this.path, { metadata, spec: { hosts: [host] }, ...more });
  }

  delete(name: string): void {
    this.cluster.delete(this.path, 'default', name);
  }

  /** Name -> first host, as the sink has it. */
  served(): Record<string, unknown> {
    const entries = [...this.sink.of(this.kind.name).values()].map((object) => {
      const { spec } = object as unknown as { spec?: { hosts?: unknown[] } };
      return [object.metadata.name, spec?.hosts?.[0]] as const;
    });
    return Object.fromEntries(entries.sort());
  }

  /** Requests since the last call: `list`, `watch`, `get`. */
  requests(): string[] {
    return this.cluster.requests.splice(0).map(({ path, query }) => {
      if (path !== this.path) return `get ${path}`;
      if (query['watch'] !== undefined) return 'watch';
      return query['limit'] === '1' ? 'probe' : query['continue'] === undefined ? 'list' : 'next page';
    });
  }
}
