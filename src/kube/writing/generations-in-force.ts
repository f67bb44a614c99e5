import { isDeepStrictEqual } from 'node:util';
import { nameKey, parseNameKey } from '../../api/keys.ts';
import { isObject, type Json } from '../../api/json.ts';
import { type KubernetesObject, revisionOf } from '../../api/object.ts';
import { sleep, type Clock } from '../../base/clock.ts';
import { type ApiError, errorOfTransport, isRefused } from '../client/api-error.ts';
import { Backoff } from '../../base/backoff.ts';
import type { KubeApi } from '../client/client.ts';
import { DueWrites } from './due-writes.ts';
import { Informer } from '../reading/informer.ts';
import type { Log } from '../client/log.ts';
import type { Outages } from '../client/outages.ts';
import { collectionPath, objectPath } from '../client/paths.ts';
import { isBefore } from '../client/resource-version.ts';

/** What is to be in an object of the kind GenerationInForce. */
export interface GenerationInForce {
  /** The object that it is about, and goes with. */
  readonly owner: {
    readonly apiVersion: string;
    readonly kind: string;
    readonly name: string;
    readonly uid: string;
  };
  /** Of the owner; empty if it names none. */
  readonly revision: string;
  readonly spec: Json;
}

export interface GenerationsInForceOptions {
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  readonly outages: Outages;
  /** `namespace/name` of all that is there or to be there. */
  readonly keys: () => Iterable<string>;
  /** Revision of the object that it is about; undefined: that object does not exist. */
  readonly revision: (key: string) => string | undefined;
  /** What is to be there, or nothing. Undecided: it stays as it is. */
  readonly wanted: (key: string) => GenerationInForce | 'nothing' | 'undecided';
  /** What is there, or undefined if there is nothing. */
  readonly found: (key: string, there: KubernetesObject | undefined) => void;
  readonly signal: AbortSignal;
}

interface Entry {
  readonly backoff: Backoff;
  /** Ends the wait after a failure. */
  cancel: (() => void) | undefined;
  /** It waits because the server does not take it, not because the server cannot be reached. */
  isRefused: boolean;
  /** What we wrote, until the informer has something newer; `gone`: the object with this uid was deleted. */
  fresh: KubernetesObject | { readonly gone: string | undefined } | undefined;
  /** What was written, and what the server made of it. */
  written: { readonly wanted: object; readonly there: KubernetesObject } | undefined;
}

const type = { group: 'fairlead.dev', version: 'v1alpha1', plural: 'generationsinforce' };
const KIND = 'GenerationInForce';

/** How long it is waited for if the rest of the cluster can be read. Milliseconds. */
const PATIENCE_MS = 60_000;

/**
 * Keeps the generations that are in force in place of the newest ones: reads them, and while this replica leads for the
 * revision of the object that one is about, writes those that differ. Bounded by the number of objects.
 */
export class GenerationsInForce {
  readonly #options: GenerationsInForceOptions;
  readonly #informer: Informer;
  readonly #due: DueWrites;
  readonly #entries = new Map<string, Entry>();
  /** By revision; the empty string is for objects that name none. */
  readonly #terms = new Map<string, AbortSignal>();
  #refused: (() => void) | undefined;

  constructor(options: GenerationsInForceOptions) {
    this.#options = options;
    const { api, clock, random, log, outages } = options;
    this.#due = new DueWrites({ next: (key) => this.#next(key), ended: (key) => this.#mark(key), clock });
    outages.onReached(() => {
      for (const [key, entry] of this.#entries)
        if (entry.cancel !== undefined && !entry.isRefused) this.#wake(key, entry);
    });
    this.#informer = new Informer({
      name: KIND,
      type,
      shape: { trim, same: (a, b) => isDeepStrictEqual(contentOf(a), contentOf(b)) },
      sink: this.#sink(),
      api,
      clock,
      random,
      log,
      outages,
    });
  }

  /** Runs until the signal fires. */
  follow(): Promise<void> {
    return this.#informer.run({ signal: this.#options.signal });
  }

  get isRead(): boolean {
    return this.#informer.synced;
  }

  /**
   * Resolves once everything is read, or is not installed. A replica that is not ready helps nobody: resolves with the
   * trouble when that is not allowed, or has failed for a minute (both from now on).
   */
  async read(): Promise<string | undefined> {
    const { clock, signal } = this.#options;
    const end = new AbortController();
    const refused = new Promise<void>((resolve) => (this.#refused = resolve));
    const patience = sleep(clock, PATIENCE_MS, { signal: AbortSignal.any([signal, end.signal]) });
    await Promise.race([this.#informer.whenSynced, refused, patience]);
    end.abort();
    const { synced, trouble = 'no answer' } = this.#informer.stats();
    return synced ? undefined : trouble;
  }

  /** Something else may be wanted. */
  changed(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) this.#mark(key);
    else this.#wake(key, entry);
  }

  /** Writes what is about objects of this revision until the signal fires. */
  lead(term: AbortSignal, revision: string): void {
    if (term.aborted) return;
    this.#terms.set(revision, term);
    term.addEventListener(
      'abort',
      () => {
        if (this.#terms.get(revision) !== term) return;
        this.#terms.delete(revision);
        if (this.#terms.size === 0) this.#end();
      },
      { once: true },
    );
    this.#markAll();
  }

  /** Resolves once no write is in progress. */
  idle(): Promise<void> {
    return this.#due.idle();
  }

  #sink(): ConstructorParameters<typeof Informer>[0]['sink'] {
    let known = new Set<string>();
    const { found } = this.#options;
    const tell = (object: KubernetesObject): void => {
      const key = keyOf(object);
      known.add(key);
      found(key, object);
      this.#seen(key, object);
    };
    const gone = (key: string): void => {
      const entry = this.#entries.get(key);
      if (entry !== undefined) entry.fresh = undefined;
      known.delete(key);
      found(key, undefined);
      this.#seen(key, undefined);
    };
    return {
      replace: (objects) => {
        const keys = new Set(objects.map(keyOf));
        for (const key of new Set([...known, ...this.#entries.keys()])) if (!keys.has(key)) gone(key);
        known = keys;
        for (const object of objects) tell(object);
        // Perhaps it has just been installed.
        this.#markAll();
      },
      upsert: tell,
      delete: (object) => gone(keyOf(object)),
      // The newest copy is wanted for its version only.
      touched: () => undefined,
      failed: ({ code }) => {
        if (code === 403) this.#refused?.();
      },
    };
  }

  #markAll(): void {
    for (const key of this.#options.keys()) this.#mark(key);
  }

  #mark(key: string): void {
    if (this.#terms.size > 0) this.#due.add(parseNameKey(key).namespace, key);
  }

  #end(): void {
    this.#due.clear();
    for (const [key, { cancel }] of this.#entries) {
      cancel?.();
      this.#options.outages.end(nameFor(key));
    }
    this.#entries.clear();
  }

  /** The server has something else there. If somebody keeps overwriting what we write, we back off. */
  #seen(key: string, there: KubernetesObject | undefined): void {
    const entry = this.#entries.get(key);
    if (this.#due.isBusy(key) || entry?.cancel !== undefined) return;
    const wanted = this.#options.wanted(key);
    const isOurs = typeof wanted === 'object' && isDeepStrictEqual(entry?.written?.wanted, comparable(wanted));
    if (entry !== undefined && isOurs && !isSame(entry, wanted, there)) this.#park(key, entry);
    else this.#mark(key);
  }

  #next(key: string): (() => Promise<void>) | undefined {
    const { installed, synced } = this.#informer.stats();
    const entry = this.#entries.get(key);
    if (!installed || !synced || entry?.cancel !== undefined) return undefined;
    const there = this.#there(key);
    const wanted = this.#options.wanted(key);
    if (wanted === 'undecided') return undefined;
    if (wanted === 'nothing' ? there === undefined : isSame(entry, wanted, there)) {
      this.#options.outages.end(nameFor(key));
      if (wanted === 'nothing' && this.#latest(key) === undefined) this.#entries.delete(key);
      return undefined;
    }
    const revision = this.#options.revision(key) ?? (there && revisionOf(there));
    const term = revision === undefined ? undefined : this.#terms.get(revision);
    if (term === undefined) return undefined;
    const own = entry ?? this.#newEntry(key);
    return () => this.#write(key, own, wanted, there, term);
  }

  #newEntry(key: string): Entry {
    const backoff = new Backoff({ base: 1_000, cap: 300_000, random: this.#options.random });
    const entry: Entry = { backoff, cancel: undefined, isRefused: false, fresh: undefined, written: undefined };
    this.#entries.set(key, entry);
    return entry;
  }

  async #write(
    key: string,
    entry: Entry,
    wanted: GenerationInForce | 'nothing',
    there: KubernetesObject | undefined,
    term: AbortSignal,
  ): Promise<void> {
    const { api, outages } = this.#options;
    const { namespace, name } = parseNameKey(key);
    const path = objectPath(type, namespace, name);
    const signal = AbortSignal.any([term, this.#options.signal]);
    try {
      if (wanted === 'nothing') {
        const uid = there?.metadata.uid;
        await api.remove(path, { preconditions: { uid: uid ?? '' } }, { signal });
        entry.fresh = { gone: uid };
        entry.written = undefined;
      } else {
        const body = bodyOf(namespace, name, wanted, there);
        const answer =
          there === undefined
            ? await api.post(collectionPath(type, namespace), body, { signal })
            : await api.put(path, body, { signal });
        const written = trim(answer as Json);
        entry.fresh = written;
        entry.written = { wanted: comparable(wanted), there: written };
      }
      outages.end(nameFor(key));
    } catch (cause) {
      if (signal.aborted) return;
      const error = errorOfTransport(cause);
      if (error.code === 404 && wanted === 'nothing') entry.fresh = { gone: there?.metadata.uid };
      else this.#failed(key, entry, error);
    }
  }

  #failed(key: string, entry: Entry, error: ApiError): void {
    entry.fresh = undefined;
    // 409: somebody else was faster, and the informer will say so.
    if (error.code !== 409) this.#options.outages.begin(nameFor(key), error);
    this.#park(key, entry, error);
  }

  #park(key: string, entry: Entry, error?: ApiError): void {
    entry.isRefused = error !== undefined && isRefused(error);
    entry.cancel = this.#options.clock.after(entry.backoff.next(error?.retryAfter), () => {
      entry.cancel = undefined;
      this.#mark(key);
    });
  }

  /** Looks at it now, if it waits. */
  #wake(key: string, entry: Entry): void {
    entry.cancel?.();
    entry.cancel = undefined;
    entry.backoff.reset();
    this.#mark(key);
  }

  #latest(key: string): KubernetesObject | undefined {
    const { namespace, name } = parseNameKey(key);
    return this.#informer.latest(namespace, name);
  }

  /** As far as we know, which may be more than the informer has heard. */
  #there(key: string): KubernetesObject | undefined {
    const latest = this.#latest(key);
    const entry = this.#entries.get(key);
    const fresh = entry?.fresh;
    if (entry === undefined || fresh === undefined) return latest;
    if ('gone' in fresh) {
      if (latest === undefined || latest.metadata.uid === fresh.gone) return undefined;
    } else if (latest === undefined || isBefore(versionOf(latest), versionOf(fresh))) return fresh;
    entry.fresh = undefined;
    return latest;
  }
}

function bodyOf(
  namespace: string,
  name: string,
  { owner, revision, spec }: GenerationInForce,
  there: KubernetesObject | undefined,
): Json {
  return {
    apiVersion: `${type.group}/${type.version}`,
    kind: KIND,
    metadata: {
      name,
      namespace,
      ...(there && { uid: there.metadata.uid, resourceVersion: versionOf(there) }),
      ...(revision !== '' && { labels: { 'istio.io/rev': revision } }),
      ownerReferences: [owner],
    },
    spec,
  };
}

/** What is compared. */
function contentOf(object: KubernetesObject): object {
  const [owner] = (object.metadata.ownerReferences ?? []) as readonly { readonly uid?: string }[];
  return { owner: owner?.uid, revision: revisionOf(object), spec: (object as { readonly spec?: unknown }).spec };
}

function comparable({ owner, revision, spec }: GenerationInForce): object {
  return { owner: owner.uid, revision, spec };
}

function isSame(entry: Entry | undefined, to: GenerationInForce, there: KubernetesObject | undefined): boolean {
  if (there === undefined) return false;
  const found = contentOf(there);
  const wanted = comparable(to);
  if (isDeepStrictEqual(found, wanted)) return true;
  // The same write would have the same result.
  const { written } = entry ?? {};
  return (
    written !== undefined &&
    isDeepStrictEqual(written.wanted, wanted) &&
    isDeepStrictEqual(found, contentOf(written.there))
  );
}

function trim(raw: Json): KubernetesObject {
  const { metadata, spec } = raw as unknown as KubernetesObject & { readonly spec?: unknown };
  const { name, namespace, uid, resourceVersion, ownerReferences } = metadata;
  const owners: readonly unknown[] = Array.isArray(ownerReferences) ? ownerReferences : [];
  const revision = revisionOf({ apiVersion: '', kind: KIND, metadata });
  return {
    apiVersion: '',
    kind: KIND,
    metadata: {
      name,
      ...(namespace !== undefined && { namespace }),
      ...(uid !== undefined && { uid }),
      ...(resourceVersion !== undefined && { resourceVersion }),
      ...(revision !== '' && { labels: { 'istio.io/rev': revision } }),
      ownerReferences: owners.filter(isObject),
    },
    spec: isObject(spec) ? spec : {},
  } as unknown as KubernetesObject;
}

function keyOf({ metadata }: KubernetesObject): string {
  return nameKey(metadata.namespace ?? '', metadata.name);
}

function versionOf({ metadata }: KubernetesObject): string {
  return metadata.resourceVersion ?? '';
}

/** For the log of outages. */
function nameFor(key: string): string {
  return `${KIND}/${key}`;
}
