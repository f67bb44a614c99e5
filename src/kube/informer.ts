import { isSame } from './comparison.ts';
import type { KubernetesObject } from '../api/object.ts';
import { ApiError, errorOfTransport, needsList } from './api-error.ts';
import { Backoff } from '../backoff.ts';
import type { KubeApi, Query } from './client.ts';
import { sleep, type Clock } from '../clock.ts';
import { deliver } from './deliver.ts';
import { installedVersion } from './discovery.ts';
import { Doubt } from '../doubt.ts';
import { isObject, type Json } from '../api/json.ts';
import type { InformerStats } from './informer-stats.ts';
import { list } from './list.ts';
import type { Log } from './log.ts';
import type { Outages } from './outages.ts';
import { collectionPath, type ResourceType } from './paths.ts';
import { Recovery } from './recovery.ts';
import { isBefore } from './resource-version.ts';
import { Unreadable } from './unreadable.ts';
import { watch, type WatchEvent } from './watch.ts';

/** Receives an informer's objects. All calls are synchronous. */
export interface InformerSink {
  /** All existing objects: called after each complete list, never with part of one. */
  replace(objects: readonly KubernetesObject[]): void;
  upsert(object: KubernetesObject): void;
  delete(object: KubernetesObject): void;
  /**
   * The server's copy of an object changed or was deleted, even if only in fields that `same` ignores:
   * {@link Informer.latest} has it. Omit if {@link Informer.latest} is not used.
   */
  touched?(object: KubernetesObject): void;
  /** The watch has a bookmark: the sink was told everything that the server had sent so far. */
  caughtUp?(): void;
  /** A request failed, and is tried again. */
  failed?(error: ApiError): void;
}

/** Which parts of an object are kept, and which of these matter. */
export interface Shape {
  /** Must not throw for an object that the API server accepted. `version`: that it was read in; absent: the first. */
  trim(raw: Json, version?: string): KubernetesObject;
  /** Whether the two are equal in everything that the sink is told about. */
  same(a: KubernetesObject, b: KubernetesObject): boolean;
}

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
  /** Milliseconds without a byte after which a watch counts as dead. */
  readonly idle?: number;
  /** Longest delay between two attempts, in milliseconds. */
  readonly maxDelay?: number;
}

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
  /** What the sink was told. */
  private told = new Map<string, KubernetesObject>();
  /** Newer copies that differ from what the sink was told only in fields that `same` ignores. */
  private newer = new Map<string, KubernetesObject>();
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
    this.backoff = new Backoff({ base: 200, cap: maxDelay, random });
    this.missing = new Backoff({ base: 1_000, cap: maxDelay, random });
    this.expired = new Backoff({ base: 100, cap: maxDelay, random });
    this.pageSize = this.fullPage = pageSize;
    this.heardAt = clock.now();
  }

  /** The latest copy of the object from the server. */
  latest(namespace: string, name: string): KubernetesObject | undefined {
    const key = `${namespace}/${name}`;
    return this.newer.get(key) ?? this.told.get(key);
  }

  stats(): InformerStats {
    return {
      ...this.counts,
      malformed: this.unreadable.count,
      synced: this.synced,
      installed: this.isInstalled,
      objects: this.told.size,
      doubted: this.doubt.kept,
      ...(this.trouble !== undefined && { trouble: this.trouble }),
      stalenessSeconds: Math.max(0, (this.options.clock.now() - this.heardAt) / 1000),
    };
  }

  async run({ signal }: { readonly signal: AbortSignal }): Promise<void> {
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
    const { pageSize: pageSizeBefore } = this;
    const version = await list({
      api,
      path: collectionPath(this.type, this.options.namespace),
      ...(query === undefined ? {} : { query }),
      pageSize: pageSizeBefore,
      signal,
      onRestart: () => (found = new Map()),
      onSmaller: (pageSize) => {
        this.pageSize = pageSize;
        this.heard();
        log.warn('List page too large, reading smaller pages', { kind: name, pageSize });
      },
      onItem: (item) => {
        this.heard();
        const key = keyOf(item);
        // An unreadable item stays as it was.
        const object = this.read(item) ?? (key === undefined ? undefined : this.latestOf(key));
        if (key !== undefined && object !== undefined) found.set(key, object);
      },
    });
    if (this.pageSize === pageSizeBefore) this.pageSize = Math.min(2 * pageSizeBefore, this.fullPage);
    this.counts.lists++;
    this.heard();
    this.options.outages.end(name);
    if (!this.isInstalled) log.info('Kind is now installed', { kind: name });
    this.isInstalled = true;
    this.missing.reset();
    this.swap(this.doubt.complete(found, this.told));
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
    if (!this.synced || this.told.size > 0) this.swap(this.doubt.complete(new Map(), this.told));
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
    const { sink, shape } = this.options;
    const key = keyOf(raw);
    if (key === undefined) return this.unreadable.add(raw);
    const before = this.told.get(key);
    if (type === 'DELETED') {
      if (before === undefined) return;
      deliver(() => sink.delete(before));
      this.told.delete(key);
      this.newer.delete(key);
      deliver(() => sink.touched?.(before));
      return;
    }
    const object = this.read(raw);
    if (object === undefined) return;
    if (
      before !== undefined &&
      before.metadata.uid === object.metadata.uid &&
      isSame(() => shape.same(before, object))
    ) {
      if (sink.touched === undefined) return;
      this.newer.set(key, object);
      deliver(() => sink.touched?.(object));
      return;
    }
    deliver(() => {
      if (before !== undefined && before.metadata.uid !== object.metadata.uid) sink.delete(before);
      sink.upsert(object);
    });
    this.told.set(key, object);
    this.newer.delete(key);
    deliver(() => sink.touched?.(object));
  }

  private swap(found: Map<string, KubernetesObject>): void {
    const { sink, shape } = this.options;
    const newer = new Map<string, KubernetesObject>();
    const touched = [...this.told].flatMap(([key, object]) => (found.has(key) ? [] : [object]));
    for (const [key, object] of found) {
      const before = this.told.get(key);
      if (before === undefined) continue;
      touched.push(object);
      if (before.metadata.uid !== object.metadata.uid || !isSame(() => shape.same(before, object))) continue;
      found.set(key, before);
      if (sink.touched !== undefined) newer.set(key, object);
    }
    deliver(() => sink.replace([...found.values()]));
    this.told = found;
    this.newer = newer;
    deliver(() => touched.forEach((object) => sink.touched?.(object)));
  }

  private latestOf(key: string): KubernetesObject | undefined {
    return this.newer.get(key) ?? this.told.get(key);
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
