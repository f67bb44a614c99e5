import { isObject, type Json } from '../api/json.ts';
import type { KubernetesObject } from '../api/object.ts';
import type { Clock } from '../clock.ts';
import type { ApiError } from './api-error.ts';
import type { KubeApi } from './client.ts';
import { Informer } from './informer.ts';
import type { Log } from './log.ts';
import type { Outages } from './outages.ts';
import { collectionPath } from './paths.ts';
import { Recovery } from './recovery.ts';

export interface NamedObjectsOptions {
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  readonly outages: Outages;
  /** Only these entries of `data` are kept. */
  readonly entries: readonly string[];
  readonly sink: NamedObjectSink;
  readonly signal: AbortSignal;
}

export interface NamedObjectSink {
  /** What the object contains now; undefined: it does not exist. Called again with every change. */
  found(key: string, content: { readonly data: Json } | undefined): void;
  /** The object cannot be read; tried again until it can. What was found before stays valid. */
  failed(key: string, error: ApiError): void;
  /** There are too many of its namespace. */
  refused(key: string): void;
}

export interface NamedObject {
  readonly kind: 'Secret' | 'ConfigMap';
  readonly namespace: string;
  readonly name: string;
}

/** Each is a watch, as for the kubelet, which never reads other Secrets either. */
export const mostOfNamespace = 500;

interface Watched {
  readonly object: NamedObject;
  /** Ends its watch; undefined: there are too many. */
  readonly end: AbortController | undefined;
}

/** Follows single Secrets and ConfigMaps, by name; others are never read. */
export class NamedObjects {
  private readonly options: NamedObjectsOptions;
  private readonly watched = new Map<string, Watched>();
  private readonly counts = new Map<string, number>();

  constructor(options: NamedObjectsOptions) {
    this.options = options;
    options.signal.addEventListener('abort', () => {
      for (const { end } of this.watched.values()) end?.abort();
    });
  }

  want(key: string, object: NamedObject): void {
    const { sink, signal } = this.options;
    if (signal.aborted || this.watched.has(key)) return;
    const count = this.counts.get(object.namespace) ?? 0;
    if (count >= mostOfNamespace) {
      this.watched.set(key, { object, end: undefined });
      sink.refused(key);
      return;
    }
    this.counts.set(object.namespace, count + 1);
    const end = new AbortController();
    this.watched.set(key, { object, end });
    void this.follow(key, object, end.signal);
  }

  unwant(key: string): void {
    const known = this.watched.get(key);
    if (known === undefined) return;
    this.watched.delete(key);
    if (known.end === undefined) return;
    known.end.abort();
    const { namespace } = known.object;
    const left = this.counts.get(namespace)! - 1;
    if (left > 0) this.counts.set(namespace, left);
    else this.counts.delete(namespace);
    this.takeWaiting(namespace);
  }

  /** One that had no room has it now. */
  private takeWaiting(namespace: string): void {
    for (const [key, { object, end }] of this.watched) {
      if (end !== undefined || object.namespace !== namespace) continue;
      this.watched.delete(key);
      this.want(key, object);
      return;
    }
  }

  private async follow(key: string, { kind, namespace, name }: NamedObject, signal: AbortSignal): Promise<void> {
    const { clock, random, outages, sink } = this.options;
    const plural = kind === 'Secret' ? 'secrets' : 'configmaps';
    const informer = new Informer({
      ...this.options,
      name: key,
      path: collectionPath({ group: '', version: 'v1', plural }, namespace),
      query: { fieldSelector: `metadata.name=${name}` },
      confidential: true,
      shape: {
        trim: (raw) => this.trim(raw),
        same: (a, b) => JSON.stringify(dataOf(a)) === JSON.stringify(dataOf(b)),
      },
      sink: {
        replace: ([object]) => sink.found(key, object && { data: dataOf(object) }),
        upsert: (object) => sink.found(key, { data: dataOf(object) }),
        delete: () => sink.found(key, undefined),
        failed: (error) => sink.failed(key, error),
      },
      installed: () => Promise.resolve(true),
      recovery: new Recovery({ clock, random, hold: () => () => undefined }),
    });
    await informer.run({ signal });
    outages.end(key);
  }

  private trim(raw: Json): KubernetesObject {
    const { name, namespace, uid, resourceVersion } = raw['metadata'] as Json;
    const data: Json = {};
    if (isObject(raw['data']))
      for (const entry of this.options.entries) if (Object.hasOwn(raw['data'], entry)) data[entry] = raw['data'][entry];
    return {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name, namespace, uid, resourceVersion },
      data,
    } as unknown as KubernetesObject;
  }
}

function dataOf(object: KubernetesObject): Json {
  return (object as KubernetesObject & { readonly data: Json }).data;
}
