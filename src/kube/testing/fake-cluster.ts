import { ApiError, errorOfAnswer } from '../client/api-error.ts';
import { TOO_LARGE } from '../client/body.ts';
import type { CallOptions, KubeApi } from '../client/client.ts';
import { isObject, type Json } from '../../api/json.ts';
import { FakeWatch } from './fake-watch.ts';

interface Change {
  readonly revision: number;
  readonly before: Json | undefined;
  readonly after: Json | undefined;
}

interface Collection {
  readonly path: string;
  readonly kind: string;
  /** Revision at which its history begins. */
  since: number;
  readonly objects: Map<string, Json>;
  readonly changes: Change[];
}

interface Watcher {
  readonly collection: Collection;
  readonly matches: (object: Json) => boolean;
  readonly stream: FakeWatch;
}

export type Answer = { readonly status: number; readonly body: Json | string } | { readonly stream: FakeWatch };

export interface FakeRequest {
  readonly method: string;
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
}

/**
 * An API server as far as this layer can see: revisions, paged lists of one revision, watches with bookmarks and
 * compaction, optimistic writes, status subresources, discovery. Methods that inject faults say so.
 */
export class FakeCluster implements KubeApi {
  readonly requests: FakeRequest[] = [];
  private revision = 100;
  private compacted = 0;
  private uids = 0;
  private readonly collections = new Map<string, Collection>();
  private readonly watchers = new Set<Watcher>();
  private readonly snapshots = new Map<string, { readonly revision: number; readonly rest: readonly Json[] }>();
  private failures: { readonly status: number; readonly body: Json | string }[] = [];
  /** Paths of collections that the client is not allowed to see. */
  readonly denied = new Set<string>();
  /** Paths of collections in which the client is not allowed to create anything. */
  readonly uncreatable = new Set<string>();
  /** Paths of collections for which every request fails. */
  readonly broken = new Set<string>();
  /** Clients do not read responses longer than this. */
  largest = Infinity;
  /** Called before each request is answered. */
  onRequest: (request: FakeRequest) => void = () => undefined;
  /** Answers to objects that are created but not kept, such as reviews; by path of the collection. */
  readonly virtual = new Map<string, (object: Json) => Json>();
  /** Called when a patch is accepted. */
  onPatch: (before: Json, after: Json) => void = () => undefined;

  /** Adds a collection: `/api/v1/pods`, `/apis/networking.istio.io/v1/gateways`. */
  install(path: string, kind: string): this {
    this.collections.set(path, { path, kind, since: this.revision, objects: new Map(), changes: [] });
    return this;
  }

  /** As if a CRD were deleted: first its objects, then its watches. */
  uninstall(path: string): void {
    const collection = this.collection(path);
    for (const key of [...collection.objects.keys()]) this.commit(collection, key, undefined);
    this.collections.delete(path);
    for (const { stream, collection: of } of this.watchers) if (of === collection) stream.finish();
  }

  /** Creates or replaces an object, as a user would; with `anew`, under a new uid. */
  apply(path: string, object: Json & { readonly metadata: Json }, { anew = false } = {}): Json {
    const collection = this.collection(path);
    const key = keyOf(object);
    if (anew && collection.objects.has(key)) this.commit(collection, key, undefined);
    const before = collection.objects.get(key);
    const {
      metadata: was = {},
      spec,
      status,
    } = (before ?? {}) as { metadata?: Json; spec?: unknown; status?: unknown };
    const changed = before !== undefined && JSON.stringify(spec) !== JSON.stringify(object['spec']);
    const metadata = {
      creationTimestamp: '2029-01-01T00:00:00Z',
      uid: was['uid'] ?? `uid-${++this.uids}`,
      generation: ((was['generation'] as number | undefined) ?? 1) + (changed ? 1 : 0),
      ...object.metadata,
    };
    return this.commit(collection, key, { ...(status === undefined ? {} : { status }), ...object, metadata });
  }

  object(path: string, namespace: string, name: string): Json | undefined {
    return this.collection(path).objects.get(`${namespace}/${name}`);
  }

  objects(path: string): Json[] {
    return [...this.collection(path).objects.values()];
  }

  delete(path: string, namespace: string, name: string): void {
    this.commit(this.collection(path), `${namespace}/${name}`, undefined);
  }

  get(path: string, options: CallOptions): Promise<unknown> {
    return this.call('GET', path, undefined, options);
  }
  post(path: string, body: unknown, options: CallOptions): Promise<unknown> {
    return this.call('POST', path, body, options);
  }
  put(path: string, body: unknown, options: CallOptions): Promise<unknown> {
    return this.call('PUT', path, body, options);
  }
  patch(path: string, body: unknown, options: CallOptions): Promise<unknown> {
    return this.call('PATCH', path, body, options);
  }
  remove(path: string, body: unknown, options: CallOptions): Promise<unknown> {
    return this.call('DELETE', path, body, options);
  }

  async stream(path: string, { query = {}, signal }: CallOptions): Promise<AsyncIterable<Uint8Array>> {
    await Promise.resolve();
    signal.throwIfAborted();
    const answer = this.answer({ method: 'GET', path, query: texts(query) }, undefined);
    if (!('stream' in answer)) throw errorOfAnswer(answer.status, textOf(answer.body));
    signal.addEventListener('abort', () => answer.stream.fail(new Error('aborted')), { once: true });
    return answer.stream;
  }

  /** Drops the history so far: resuming from an older revision gets 410. */
  compact(): void {
    this.compacted = this.revision;
    for (const { changes } of this.collections.values()) changes.length = 0;
  }

  /** As if a backup were restored: revisions start again at a lower number. */
  restore(revision: number): void {
    this.revision = revision;
    this.compacted = 0;
    for (const collection of this.collections.values()) {
      collection.changes.length = 0;
      collection.since = revision;
    }
  }

  /** Answers the next requests with this failure. */
  failNext(status: number, times = 1, body: Json | string = ''): void {
    for (let i = 0; i < times; i++) this.failures.push({ status, body });
  }

  recover(): void {
    this.failures = [];
  }

  /** Sends a bookmark to every open watch. */
  bookmark(): void {
    for (const { stream, collection } of this.watchers)
      stream.send(JSON.stringify({ type: 'BOOKMARK', object: { kind: collection.kind, metadata: this.listMeta() } }));
  }

  /** The streams of all open watches. */
  watches(): FakeWatch[] {
    return Array.from(this.watchers, ({ stream }) => stream);
  }

  /** The response to one request: the whole server except the wire. */
  answer(request: FakeRequest, body: unknown): Answer {
    this.requests.push(request);
    this.onRequest(request);
    const failure = this.failures.shift();
    if (failure !== undefined) return failure;
    const { method, path, query } = request;
    if (path === '/apis' || /^\/apis\/[^/]+\/[^/]+$/.test(path)) return this.discovery(path);
    const target = this.target(path);
    if (target === undefined) return { status: 404, body: '404 page not found' };
    const { collection, namespace, name, sub } = target;
    if (this.denied.has(collection.path)) return failed(403, 'Forbidden', `${collection.path} is forbidden`);
    if (this.broken.has(collection.path)) return failed(500, 'InternalError', `${collection.path} is broken`);
    const virtual = method === 'POST' ? this.virtual.get(collection.path) : undefined;
    if (virtual !== undefined) return { status: 201, body: virtual(body as Json) };
    if (method === 'POST' && this.uncreatable.has(collection.path))
      return failed(403, 'Forbidden', `${collection.path} is forbidden`);
    if (method === 'POST') return this.create(collection, namespace, body);
    if (name === '') {
      const { fieldSelector = '', labelSelector = '' } = query;
      const matches = matcherOf(namespace, fieldSelector, labelSelector);
      return query['watch'] === undefined
        ? this.list(collection, matches, query)
        : this.watch(collection, matches, query['resourceVersion'] ?? '');
    }
    const key = `${namespace}/${name}`;
    const before = collection.objects.get(key);
    if (before === undefined) return failed(404, 'NotFound', `${name} not found`);
    if (method === 'GET') return { status: 200, body: before };
    const given = isObject(body) ? body : {};
    const asked = method === 'DELETE' ? given['preconditions'] : given['metadata'];
    const { uid, resourceVersion: wanted } = isObject(asked) ? asked : {};
    if (method === 'DELETE' && uid !== undefined && uid !== (before['metadata'] as Json)['uid'])
      return failed(409, 'Conflict', 'the object is another one');
    if (wanted !== undefined && wanted !== (before['metadata'] as Json)['resourceVersion'])
      return failed(409, 'Conflict', 'the object has been modified');
    if (method === 'DELETE') {
      this.commit(collection, key, undefined);
      return { status: 200, body: { kind: 'Status', status: 'Success' } };
    }
    const after = method === 'PATCH' ? (merge(before, given) as Json) : given;
    const next = sub === 'status' ? { ...before, status: after['status'] } : { ...before, ...after };
    if (method === 'PATCH') this.onPatch(before, next);
    return { status: 200, body: this.commit(collection, key, next) };
  }

  private async call(method: string, path: string, body: unknown, options: CallOptions): Promise<unknown> {
    await Promise.resolve();
    options.signal.throwIfAborted();
    const answer = this.answer({ method, path, query: texts(options.query ?? {}) }, structuredClone(body));
    if ('stream' in answer) throw new Error('not a stream');
    if (answer.status >= 300) throw errorOfAnswer(answer.status, textOf(answer.body));
    if (textOf(answer.body).length > this.largest)
      throw new ApiError('too long', { code: 200, reason: TOO_LARGE, retryable: true });
    return structuredClone(answer.body);
  }

  private discovery(path: string): Answer {
    const found = [...this.collections.keys()];
    if (path === '/apis') {
      const groups = new Set(found.filter((p) => p.startsWith('/apis/')).map((p) => p.split('/')[2]));
      return { status: 200, body: { kind: 'APIGroupList', groups: [...groups].map((name) => ({ name })) } };
    }
    const plurals = found.filter((p) => p.startsWith(`${path}/`)).map((p) => p.slice(path.length + 1));
    if (plurals.length === 0) return { status: 404, body: '404 page not found' };
    return { status: 200, body: { kind: 'APIResourceList', resources: plurals.map((name) => ({ name })) } };
  }

  private target(path: string): { collection: Collection; namespace: string; name: string; sub: string } | undefined {
    const parts = path.split('/').slice(1);
    const root = parts.splice(0, parts[0] === 'api' ? 2 : 3);
    const namespaced = parts[0] === 'namespaces' && parts.length > 2;
    const namespace = namespaced ? (parts[1] ?? '') : '';
    const [plural = '', name = '', sub = ''] = namespaced ? parts.slice(2) : parts;
    const collection = this.collections.get(`/${root.join('/')}/${plural}`);
    return collection === undefined ? undefined : { collection, namespace, name, sub };
  }

  private create(collection: Collection, namespace: string, body: unknown): Answer {
    if (!isObject(body) || !isObject(body['metadata'])) return failed(400, 'BadRequest', 'no object');
    const object = { ...body, metadata: { namespace, ...body['metadata'] } };
    if (collection.objects.has(keyOf(object))) return failed(409, 'AlreadyExists', 'already exists');
    return { status: 201, body: this.apply(collection.path, object) };
  }

  private list(collection: Collection, matches: (object: Json) => boolean, query: FakeRequest['query']): Answer {
    const token = query['continue'] ?? '';
    const snapshot = this.snapshots.get(token);
    if (token !== '' && (snapshot === undefined || snapshot.revision < this.compacted))
      return failed(410, 'Expired', 'The provided continue parameter is too old');
    const revision = snapshot?.revision ?? this.revision;
    const all = snapshot?.rest ?? [...collection.objects.values()].filter(matches);
    const limit = Number(query['limit'] ?? all.length);
    const rest = all.slice(limit);
    const next = rest.length === 0 ? {} : { continue: `${this.snapshots.size + 1}` };
    if (rest.length > 0) this.snapshots.set(`${this.snapshots.size + 1}`, { revision, rest });
    const metadata = { resourceVersion: String(revision), ...next };
    return {
      status: 200,
      body: { kind: `${collection.kind}List`, apiVersion: 'v1', metadata, items: all.slice(0, limit) },
    };
  }

  private watch(collection: Collection, matches: (object: Json) => boolean, from: string): Answer {
    if (Number(from) < Math.max(this.compacted, collection.since))
      return failed(410, 'Expired', 'too old resource version');
    const stream = new FakeWatch(() => this.watchers.delete(watcher));
    const watcher: Watcher = { collection, matches, stream };
    this.watchers.add(watcher);
    for (const change of collection.changes) if (change.revision > Number(from)) tell(watcher, change);
    return { stream };
  }

  private commit(collection: Collection, key: string, object: Json | undefined): Json {
    const before = collection.objects.get(key);
    if (object === undefined && before === undefined) return {};
    const revision = ++this.revision;
    const metadata = { ...(object?.['metadata'] as Json), resourceVersion: String(revision) };
    const after = object === undefined ? undefined : { ...object, metadata };
    if (after === undefined) collection.objects.delete(key);
    else collection.objects.set(key, after);
    const change = { revision, before, after };
    collection.changes.push(change);
    for (const watcher of this.watchers) if (watcher.collection === collection) tell(watcher, change);
    return after ?? {};
  }

  private listMeta(): Json {
    return { resourceVersion: String(this.revision) };
  }

  private collection(path: string): Collection {
    const collection = this.collections.get(path);
    if (collection === undefined) throw new Error(`${path} is not installed`);
    return collection;
  }
}

function tell({ matches, stream }: Watcher, { revision, before, after }: Change): void {
  const had = before !== undefined && matches(before);
  const has = after !== undefined && matches(after);
  if (!had && !has) return;
  const type = !has ? 'DELETED' : had ? 'MODIFIED' : 'ADDED';
  const object = has ? after : before!;
  const metadata = { ...(object['metadata'] as Json), resourceVersion: String(revision) };
  stream.send(JSON.stringify({ type, object: { ...object, metadata } }));
}

/** @param labels one `name=value`, or none. */
function matcherOf(namespace: string, selector: string, labels: string): (object: Json) => boolean {
  const [label = '', wanted] = labels.split('=');
  const [, path = '', operator, value] = /^([\w.]+)(!=|=)(.*)$/.exec(selector) ?? [];
  return (object) => {
    if (namespace !== '' && (object['metadata'] as Json)['namespace'] !== namespace) return false;
    const { labels: has = {} } = object['metadata'] as { readonly labels?: Json };
    if (wanted !== undefined && has[label] !== wanted) return false;
    if (operator === undefined) return true;
    const found = path.split('.').reduce<unknown>((at, key) => (isObject(at) ? at[key] : undefined), object);
    return (found === value) === (operator === '=');
  };
}

/** RFC 7386. */
function merge(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const merged: Json = isObject(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch))
    if (value === null) delete merged[key];
    else merged[key] = merge(merged[key], value);
  return merged;
}

function failed(code: number, reason: string, message: string): Answer {
  return { status: code, body: { kind: 'Status', status: 'Failure', code, reason, message } };
}

function keyOf(object: Json): string {
  const { namespace = '', name } = object['metadata'] as { namespace?: string; name: string };
  return `${namespace}/${name}`;
}

function texts(query: NonNullable<CallOptions['query']>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]])),
  );
}

function textOf(body: Json | string): string {
  return typeof body === 'string' ? body : JSON.stringify(body);
}
