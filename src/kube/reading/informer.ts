import type { KubernetesObject } from '../../api/object.ts';
import { errorOfTransport, needsList } from '../client/api-error.ts';
import { Backoff } from '../../base/backoff.ts';
import { type Budget, OVER_BUDGET } from '../client/budget.ts';
import type { KubeApi, Query } from '../client/client.ts';
import { sleep, type Clock } from '../../base/clock.ts';
import { deliver } from './deliver.ts';
import { installedVersion } from './discovery.ts';
import { Doubt } from '../../base/doubt.ts';
import { isObject, type Json } from '../../api/json.ts';
import type { InformerStats } from './informer-stats.ts';
import { list } from './list.ts';
import type { Log } from '../client/log.ts';
import type { Outages } from '../client/outages.ts';
import { collectionPath, type ResourceType } from '../client/paths.ts';
import { Recovery } from './recovery.ts';
import { isBefore } from '../client/resource-version.ts';
import { type InformerSink, type Shape, SinkState } from './sink-state.ts';
import { Unreadable } from './unreadable.ts';
import { watch, type WatchEvent } from './watch.ts';

export type { InformerSink, Shape } from './sink-state.ts';

export interface InformerOptions {
  /** For logs: a kind or a resource id. */
  readonly name: string;
  /** `versions`: what is read if there is no such version; absent: nothing else. */
  readonly type: ResourceType & { readonly versions?: readonly string[] };
  /** Absent: all. */
  readonly namespace?: string;
  readonly query?: Query;
  readonly shape: Shape;
  /** Nothing of the objects may be logged. */
  readonly confidential?: true;
  /** A list that lacks more than half of the objects must be confirmed by another one: see {@link Doubt}. */
  readonly doubtsLists?: true;
  readonly sink: InformerSink;
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  readonly outages: Outages;
  /** Absent: alone. */
  readonly recovery?: Recovery;
  readonly pageSize?: number;
  /** Maximum bytes of an event. */
  readonly longestEvent?: number;
  /** For what is kept; absent: any amount. */
  readonly budget?: Budget;
  /** Milliseconds without a byte after which a watch counts as dead. */
  readonly idle?: number;
  /** Longest delay between two attempts, in milliseconds. */
  readonly maxDelay?: number;
}

/** Between two attempts to read more than fits into the budget. Milliseconds. */
const OVER_BUDGET_DELAY = 60_000;

/** A watch has caught up once it has been open for this long, in milliseconds. */
const CATCH_UP = 200;

/**
 * Keeps one collection in sync with the API server: list, watch from there, resume where the watch ended, list again
 * only if the server cannot resume. Runs until its signal fires. Whatever happens in between, what the sink was told
 * stays valid until the server says otherwise.
 */
export class Informer {
  private readonly options: InformerOptions;
  /** In the version that the server has. */
  private type: ResourceType;
  private readonly recovery: Recovery;
  private readonly backoff: Backoff;
  private readonly missing: Backoff;
  /** For lists that the server demands: it is up, so the first one need not wait long. */
  private readonly expired: Backoff;
  /**
   * Objects per list page: halved after a page that was too large; doubled after a list without such a page, up to the
   * initial value.
   */
  private pageSize: number;
  private readonly fullPage: number;
  private readonly told: SinkState;
  private readonly doubt: Doubt;
  /** The resourceVersion to resume from; undefined: list first. */
  private version: string | undefined;
  private readonly unreadable: Unreadable;
  private isInstalled = true;
  private heardAt: number;
  private trouble: string | undefined;
  private onSynced: () => void = () => undefined;
  private readonly counts = { lists: 0, watches: 0, events: 0, errors: 0 };
  synced = false;
  /** Resolves once the collection was read, or found not to be installed. */
  readonly whenSynced: Promise<void> = new Promise((resolve) => (this.onSynced = resolve));

  constructor(options: InformerOptions) {
    const { clock, random, maxDelay = 10_000, pageSize = 500 } = options;
    this.options = options;
    this.type = options.type;
    this.recovery = options.recovery ?? new Recovery({ clock, random, hold: () => () => undefined });
    this.unreadable = new Unreadable(options);
    this.doubt = new Doubt({
      ...options,
      onDoubt: (counts) =>
        options.log.warn('Most objects vanished, keeping them until another list agrees', {
          kind: options.name,
          ...counts,
        }),
    });
    this.told = new SinkState({ ...options, ration: options.budget?.ration() });
    this.backoff = new Backoff({ base: 200, cap: maxDelay, random });
    this.missing = new Backoff({ base: 1_000, cap: maxDelay, random });
    this.expired = new Backoff({ base: 100, cap: maxDelay, random });
    this.pageSize = this.fullPage = pageSize;
    this.heardAt = clock.now();
  }

  /** The latest copy of the object from the server. */
  latest(namespace: string, name: string): KubernetesObject | undefined {
    return this.told.latest(`${namespace}/${name}`);
  }

  stats(): InformerStats {
    return {
      ...this.counts,
      malformed: this.unreadable.count,
      synced: this.synced,
      installed: this.isInstalled,
      objects: this.told.all.size,
      doubted: this.doubt.kept,
      ...(this.trouble !== undefined && { trouble: this.trouble }),
      stalenessSeconds: Math.max(0, (this.options.clock.now() - this.heardAt) / 1000),
    };
  }

  async run({ signal }: { readonly signal: AbortSignal }): Promise<void> {
    await this.follow(signal).finally(() => this.told.release());
  }

  private async follow(signal: AbortSignal): Promise<void> {
    const { clock, outages, name } = this.options;
    while (!signal.aborted) {
      try {
        if (this.version === undefined) await this.list(signal);
        else await this.watch(this.version, signal);
      } catch (cause) {
        if (signal.aborted) return;
        const error = errorOfTransport(cause);
        this.counts.errors++;
        this.trouble = error.code === 0 ? error.reason : `${error.code} ${error.reason}`;
        if (error.code === 404) {
          const found = await this.confirmInstalled(signal);
          if (found !== 'installed') {
            await sleep(clock, (found === 'missing' ? this.missing : this.expired).next(), { signal });
            continue;
          }
        }
        if (error.reason === OVER_BUDGET) {
          // What was known stays. Reading it all again and again would cost others, too.
          this.version = undefined;
          outages.begin(name, error);
          await sleep(clock, OVER_BUDGET_DELAY, { signal });
          continue;
        }
        if (this.version !== undefined && needsList(error)) {
          this.version = undefined;
          await sleep(clock, this.expired.next(error.retryAfter), { signal });
          continue;
        }
        this.options.sink.failed?.(error);
        outages.begin(name, error);
        const woken = await this.recovery.wait(name, this.backoff.next(error.retryAfter), { signal });
        if (woken) this.backoff.reset();
      }
    }
  }

  private async list(signal: AbortSignal): Promise<void> {
    const { api, query, log, name } = this.options;
    let found = new Map<string, KubernetesObject>();
    let bytes = 0;
    const { pageSize: pageSizeBefore, told } = this;
    const version = await list({
      api,
      path: collectionPath(this.type, this.options.namespace),
      ...(query === undefined ? {} : { query }),
      pageSize: pageSizeBefore,
      signal,
      onRestart() {
        found = new Map();
        bytes = 0;
      },
      onSmaller: (pageSize) => {
        this.pageSize = pageSize;
        this.heard();
        log.warn('List page too large, reading smaller pages', { kind: name, pageSize });
      },
      onItem: (item) => {
        this.heard();
        const key = keyOf(item);
        // An unreadable item stays as it was.
        const object = this.read(item) ?? (key === undefined ? undefined : told.latest(key));
        if (key === undefined || object === undefined) return;
        if (this.options.budget !== undefined) told.reading((bytes += told.size(object)));
        found.set(key, object);
      },
    }).catch((error: unknown) => {
      told.dropped();
      throw error;
    });
    if (this.pageSize === pageSizeBefore) this.pageSize = Math.min(2 * pageSizeBefore, this.fullPage);
    this.counts.lists++;
    this.heard();
    this.options.outages.end(name);
    if (!this.isInstalled) log.info('Kind is now installed', { kind: name });
    this.isInstalled = true;
    this.missing.reset();
    told.swap(this.doubt.complete(found, told.all));
    this.version = version;
    this.sync();
  }

  private async watch(from: string, signal: AbortSignal): Promise<void> {
    const { api, clock, query, random, idle = 150_000, outages, name } = this.options;
    this.counts.watches++;
    const began = clock.now();
    const works = (): void => {
      this.backoff.reset();
      this.expired.reset();
      outages.end(name);
    };
    const timers: (() => void)[] = [];
    const again = new AbortController();
    const { until } = this.doubt;
    if (until !== undefined) timers.push(clock.after(Math.max(0, until - began), () => again.abort()));
    const end = await watch({
      api,
      clock,
      path: collectionPath(this.type, this.options.namespace),
      ...(query === undefined ? {} : { query }),
      resourceVersion: from,
      timeoutSeconds: Math.round(300 + 300 * random()),
      idle,
      longestEvent: this.options.longestEvent,
      signal: AbortSignal.any([signal, again.signal]),
      onOpen: () => {
        this.heard();
        // The server sends missed events at once.
        timers.push(clock.after(CATCH_UP, () => this.recovery.caughtUp(name)));
        // A quiet watch counts as working; one that keeps breaking immediately does not.
        timers.push(clock.after(5_000, works));
      },
      onHeard: () => this.heard(),
      onEvent: (event) => {
        const { version } = this;
        this.apply(event);
        // Repeated events without a new version are not progress.
        if (this.version !== version) works();
      },
    }).finally(() => timers.forEach((cancel) => cancel()));
    if (again.signal.aborted) this.version = undefined;
    if (end === 'aborted') return;
    if (end === 'silent') await this.checkVersion(from, signal);
    else if (this.version === from && clock.now() - began < 1_000) await sleep(clock, this.backoff.next(), { signal });
    else works();
  }

  /**
   * A watch from a revision that the server has not reached yet (etcd was restored from a backup) stays silent. Listing
   * a single item reveals it.
   */
  private async checkVersion(from: string, signal: AbortSignal): Promise<void> {
    const { api, query } = this.options;
    const page = await api.get(collectionPath(this.type, this.options.namespace), {
      query: { ...query, limit: 1 },
      signal,
    });
    this.heard();
    const metadata = isObject(page) && isObject(page['metadata']) ? page['metadata'] : {};
    const version = metadata['resourceVersion'];
    if (this.version === from && typeof version === 'string' && isBefore(version, from)) this.version = undefined;
  }

  private async confirmInstalled(signal: AbortSignal): Promise<'installed' | 'in another version' | 'missing'> {
    const { api, type, log, name, outages } = this.options;
    let version: string | undefined;
    try {
      version = await installedVersion(api, type, type.versions ?? [type.version], { signal });
    } catch {
      return 'installed';
    }
    if (version === this.type.version) return 'installed';
    this.type = { ...type, version: version ?? type.version };
    this.version = undefined;
    if (version !== undefined) return 'in another version';
    outages.end(name);
    this.heard();
    if (this.isInstalled) log.info('Kind is not installed, checking for it periodically', { kind: name });
    this.isInstalled = false;
    this.version = undefined;
    const { told } = this;
    if (!this.synced || told.all.size > 0) told.swap(this.doubt.complete(new Map(), told.all));
    this.sync();
    return 'missing';
  }

  private apply(event: WatchEvent): void {
    this.counts.events++;
    if (event.type === 'malformed') return this.unreadable.addLine(event.line, this.version);
    const metadata = event.object['metadata'];
    const version = isObject(metadata) ? metadata['resourceVersion'] : undefined;
    if (event.type === 'BOOKMARK') deliver(() => this.options.sink.caughtUp?.());
    else this.change(event.type, event.object);
    if (typeof version === 'string' && version !== '') this.version = version;
  }

  private change(type: 'ADDED' | 'MODIFIED' | 'DELETED', raw: Json): void {
    const key = keyOf(raw);
    if (key === undefined) return this.unreadable.add(raw);
    if (type === 'DELETED') return this.told.delete(key);
    const object = this.read(raw);
    if (object !== undefined) this.told.upsert(key, object);
  }

  private read(raw: unknown): KubernetesObject | undefined {
    if (isObject(raw) && keyOf(raw) !== undefined) {
      try {
        return this.options.shape.trim(raw, this.type.version);
      } catch {
        // Counted below: one unreadable object deserves no more.
      }
    }
    this.unreadable.add(raw);
    return undefined;
  }

  private heard(): void {
    const { clock, outages, name } = this.options;
    this.heardAt = clock.now();
    this.trouble = undefined;
    this.recovery.reached(name);
    outages.reached(name);
  }

  private sync(): void {
    this.recovery.caughtUp(this.options.name);
    this.synced = true;
    this.onSynced();
  }
}

/** `namespace/name`, or undefined without a name. */
function keyOf(raw: unknown): string | undefined {
  const metadata = isObject(raw) ? raw['metadata'] : undefined;
  if (!isObject(metadata)) return undefined;
  const { name, namespace = '' } = metadata;
  return typeof name === 'string' && name !== '' && typeof namespace === 'string' ? `${namespace}/${name}` : undefined;
}
