import { isObject, type Json } from '../../api/json.ts';
import type { KubernetesObject } from '../../api/object.ts';
import type { Clock } from '../../base/clock.ts';
import type { ApiError } from '../client/api-error.ts';
import type { Budget } from '../client/budget.ts';
import type { KubeApi } from '../client/client.ts';
import { Informer } from './informer.ts';
import type { Log } from '../client/log.ts';
import type { Outages } from '../client/outages.ts';

export interface NamedObjectsOptions {
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  readonly outages: Outages;
  /** Only these entries of `data` are kept. */
  readonly entries: readonly string[];
  /** And only this annotation. */
  readonly annotation: string;
  readonly sink: NamedObjectSink;
  /** See `InformerOptions`. */
  readonly budget?: Budget;
  readonly longestEvent?: number;
  readonly signal: AbortSignal;
}

export interface NamedContent {
  readonly data: Json;
  readonly annotations: Json;
}

export interface NamedObjectSink {
  /** What the object contains now; undefined: it does not exist. Called again with every change. */
  found(key: string, content: NamedContent | undefined): void;
  /** The object cannot be read; tried again until it can. What was found before stays valid. */
  failed(key: string, error: ApiError): void;
  /** The objects that name it name too many. */
  refused(key: string): void;
}

export interface NamedObject {
  readonly kind: 'Secret' | 'ConfigMap';
  readonly namespace: string;
  readonly name: string;
  /** Namespaces of the objects that name it: it counts for one of them. */
  readonly by: readonly string[];
}

/**
 * Each is a watch, as for the kubelet, which never reads other Secrets either. So many may the objects of a namespace
 * name in that namespace, and nobody else can take these away from them;
 */
export const mostOwn = 500;
/** so many elsewhere, */
export const mostForeign = 1_000;
/** and so many may those of all namespaces name elsewhere. */
export const mostForeignOfAll = 5_000;

interface Watched {
  readonly object: NamedObject;
  /** The namespace for which it counts, and what ends its watch, or undefined if there are too many. */
  readonly place: { readonly by: string; readonly end: AbortController } | undefined;
}

/** Follows single Secrets and ConfigMaps, by name; others are never read. */
export class NamedObjects {
  private readonly options: NamedObjectsOptions;
  private readonly watched = new Map<string, Watched>();
  private readonly own = new Map<string, number>();
  private readonly foreign = new Map<string, number>();
  private foreignOfAll = 0;
  private isFilling = false;

  constructor(options: NamedObjectsOptions) {
    this.options = options;
    options.signal.addEventListener('abort', () => {
      for (const { place } of this.watched.values()) place?.end.abort();
    });
  }

  /** To be called again when others name it. */
  want(key: string, object: NamedObject): void {
    const { sink, signal } = this.options;
    if (signal.aborted) return;
    const known = this.watched.get(key);
    if (known?.place !== undefined) this.count(known.object, known.place.by, -1);
    const by = this.payerOf(object);
    const end = known?.place?.end ?? new AbortController();
    this.watched.set(key, { object, place: by === undefined ? undefined : { by, end } });
    if (by !== undefined) this.count(object, by, 1);
    if (known?.place !== undefined && by === undefined) end.abort();
    if (known?.place === undefined && by !== undefined) void this.follow(key, object, end.signal);
    if (by === undefined) sink.refused(key);
    if (known?.place !== undefined) this.fillSoon();
  }

  unwant(key: string): void {
    const known = this.watched.get(key);
    this.watched.delete(key);
    if (known?.place === undefined) return;
    known.place.end.abort();
    this.count(known.object, known.place.by, -1);
    this.fillSoon();
  }

  /** Names that had no room have it now. Many may leave at once. */
  private fillSoon(): void {
    if (this.isFilling) return;
    this.isFilling = true;
    queueMicrotask(() => {
      this.isFilling = false;
      for (const [key, { object, place }] of this.watched)
        if (place === undefined && this.payerOf(object) !== undefined) this.want(key, object);
    });
  }

  /** The namespace for which the object counts. */
  private payerOf({ namespace, by }: NamedObject): string | undefined {
    if (by.includes(namespace) && (this.own.get(namespace) ?? 0) < mostOwn) return namespace;
    if (this.foreignOfAll >= mostForeignOfAll) return undefined;
    return by.find((one) => one !== namespace && (this.foreign.get(one) ?? 0) < mostForeign);
  }

  private count({ namespace }: NamedObject, by: string, change: 1 | -1): void {
    const counts = by === namespace ? this.own : this.foreign;
    if (by !== namespace) this.foreignOfAll += change;
    const count = (counts.get(by) ?? 0) + change;
    if (count > 0) counts.set(by, count);
    else counts.delete(by);
  }

  private async follow(key: string, { kind, namespace, name }: NamedObject, signal: AbortSignal): Promise<void> {
    const { outages, sink } = this.options;
    const plural = kind === 'Secret' ? 'secrets' : 'configmaps';
    const informer = new Informer({
      ...this.options,
      name: key,
      type: { group: '', version: 'v1', plural },
      namespace,
      query: { fieldSelector: `metadata.name=${name}` },
      confidential: true,
      shape: {
        trim: (raw) => this.trim(raw),
        same: (a, b) => JSON.stringify(contentOf(a)) === JSON.stringify(contentOf(b)),
      },
      sink: {
        replace: ([object]) => sink.found(key, object && contentOf(object)),
        upsert: (object) => sink.found(key, contentOf(object)),
        delete: () => sink.found(key, undefined),
        failed: (error) => sink.failed(key, error),
      },
    });
    await informer.run({ signal });
    outages.end(key);
  }

  private trim(raw: Json): KubernetesObject {
    const { name, namespace, uid, resourceVersion, annotations } = isObject(raw['metadata']) ? raw['metadata'] : {};
    const { annotation } = this.options;
    const text = isObject(annotations) ? annotations[annotation] : undefined;
    const data: Json = {};
    if (isObject(raw['data']))
      for (const entry of this.options.entries) if (Object.hasOwn(raw['data'], entry)) data[entry] = raw['data'][entry];
    return {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: {
        ...{ name, namespace, uid, resourceVersion },
        annotations: typeof text === 'string' ? { [annotation]: text } : {},
      },
      data,
    } as unknown as KubernetesObject;
  }
}

function contentOf({ metadata, data }: KubernetesObject & { readonly data?: Json }): NamedContent {
  return { data: data ?? {}, annotations: metadata.annotations ?? {} };
}
