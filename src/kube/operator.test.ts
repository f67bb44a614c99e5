import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ResourceEvent, ResourceMeta } from '@dot-i/k8s-operator';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { kinds } from '../api/kinds.ts';
import { KubeClient } from './client.ts';
import { PooledKubeConfig } from './credentials.ts';
import type { Json } from '../api/json.ts';
import { FairleadOperator, type FairleadOperatorOptions } from './operator.ts';
import { collectionPath } from './paths.ts';
import { FakeApiServer } from './testing/fake-api-server.ts';
import { RecordingLog } from './testing/recording-log.ts';
import { RecordingSink } from './testing/recording-sink.ts';

/** The protected parts, as a subclass of the framework sees them. */
class Probe extends FairleadOperator {
  readonly watch = this.watchResource.bind(this);
  readonly finalize = this.handleResourceFinalizer.bind(this);
  readonly setStatus = this.setResourceStatus.bind(this);
  readonly patchStatus = this.patchResourceStatus.bind(this);
  readonly register = this.registerCustomResourceDefinition.bind(this);
  readonly uri = this.getCustomResourceApiUri.bind(this);
}

const services = '/api/v1/services';
const pods = '/api/v1/pods';
const configMaps = '/api/v1/configmaps';
const gateways = '/apis/networking.istio.io/v1/gateways';

let server: FakeApiServer;
let sink: RecordingSink;
let log: RecordingLog;
let operator: Probe;
let ending: AbortController;

beforeEach(async () => {
  server = await new FakeApiServer().start();
  for (const kind of kinds) server.cluster.install(collectionPath(kind), kind.kind);
  sink = new RecordingSink();
  log = new RecordingLog();
  ending = new AbortController();
  operator = operatorOf();
});

afterEach(async () => {
  await operator.shutdown();
  await server.stop();
});

function operatorOf(options: Partial<FairleadOperatorOptions> = {}): Probe {
  const client = new KubeClient({ config: new PooledKubeConfig(() => server.kubeConfig()) });
  return new Probe({
    client,
    sink,
    log,
    signal: ending.signal,
    rootNamespace: 'istio-system',
    random: () => 0,
    ...options,
  });
}

function put(path: string, namespace: string, name: string, more: Json = {}): Json {
  return server.cluster.apply(path, { apiVersion: 'v1', kind: 'Thing', metadata: { namespace, name }, ...more });
}

describe('as a source', () => {
  test('it delivers every kind, and is ready then', async () => {
    for (const kind of kinds)
      if (kind.kind !== 'ConfigMap') put(collectionPath(kind), kind.namespaced ? 'shop' : '', 'x');
    expect(operator.ready()).toBe(false);
    await operator.start();
    await operator.whenReady();
    expect(operator.ready()).toBe(true);
    for (const kind of kinds)
      expect(sink.names(kind.kind)).toEqual(kind.kind === 'ConfigMap' ? [] : [kind.namespaced ? 'shop/x' : '/x']);
    expect(operator.stats()).toMatchObject({ relists: 0, oddObjects: 0, kinds: { Pod: { objects: 1, synced: true } } });
  });

  test('it reads one ConfigMap, and no Pod that failed', async () => {
    put(configMaps, 'istio-system', 'istio', { data: { mesh: 'a' } });
    put(configMaps, 'istio-system', 'other');
    put(configMaps, 'shop', 'istio');
    put(pods, 'shop', 'running', { status: { phase: 'Running' } });
    put(pods, 'shop', 'failed', { status: { phase: 'Failed' } });
    await operator.start();
    await operator.whenReady();
    expect(sink.names('ConfigMap')).toEqual(['istio-system/istio']);
    expect(sink.names('Pod')).toEqual(['shop/running']);
    put(pods, 'shop', 'running', { status: { phase: 'Failed' } });
    await sink.until((s) => s.names('Pod').length === 0);
  });

  test('it is ready without a kind that is not installed, and picks it up', async () => {
    server.cluster.uninstall(gateways);
    await operator.start();
    await operator.whenReady();
    expect(log.messages()).toEqual(['Kind is not installed, checking for it periodically']);
    server.cluster.install(gateways, 'Gateway');
    put(gateways, 'shop', 'g');
    await sink.until((s) => s.names('Gateway').length === 1);
  });

  test('a server that is absent at the start is waited for, and this is said once', async () => {
    await server.stop();
    await operator.start();
    await log.until('retrying');
    put(services, 'shop', 'a');
    await server.start();
    await operator.whenReady();
    expect(sink.names('Service')).toEqual(['shop/a']);
    expect(log.messages().filter((message) => message.includes('retrying'))).toHaveLength(1);
  });

  test('a server that goes away changes nothing, and what happened meanwhile arrives when it is back', async () => {
    put(services, 'shop', 'a');
    put(services, 'shop', 'b');
    await operator.start();
    await operator.whenReady();
    await server.stop();
    server.cluster.delete(services, 'shop', 'a');
    put(services, 'shop', 'c');
    expect(operator.ready()).toBe(true);
    expect(sink.names('Service')).toEqual(['shop/a', 'shop/b']);
    await server.start();
    await sink.until((s) => s.names('Service').join() === 'shop/b,shop/c');
    expect(operator.ready()).toBe(true);
    expect(operator.stats().relists).toBe(0);
  });

  test('a connection that dies silently is replaced', async () => {
    operator = operatorOf({ idle: 100 });
    await operator.start();
    await operator.whenReady();
    for (const watch of server.cluster.watches()) watch.mute();
    put(services, 'shop', 'a');
    await sink.until((s) => s.names('Service').length === 1);
  });

  test('a token that expires is read again', async () => {
    let token = 'one';
    server.tokens = new Set(['one']);
    const client = new KubeClient({ config: new PooledKubeConfig(() => server.kubeConfig(token)) });
    operator = operatorOf({ client });
    await operator.start();
    await operator.whenReady();
    token = 'two';
    server.tokens = new Set(['two']);
    server.reset();
    put(services, 'shop', 'a');
    await sink.until((s) => s.names('Service').length === 1);
  });

  test('it tells which object of a custom kind changed, if only in its status, and shows it', async () => {
    const observed: string[] = [];
    let wake = (): void => undefined;
    operator = operatorOf({
      observed: (kind, namespace, name) => {
        observed.push(`${kind}/${namespace}/${name}`);
        wake();
      },
    });
    put(gateways, 'shop', 'g', { spec: {} });
    await operator.start();
    await operator.whenReady();
    const told = new Promise<void>((resolve) => (wake = resolve));
    put(gateways, 'shop', 'g', { spec: {}, status: { conditions: [{ type: 'X' }] } });
    await told;
    expect(observed).toEqual(['Gateway/shop/g']);
    expect(operator.latest('Gateway', 'shop', 'g')).toMatchObject({ status: { conditions: [{ type: 'X' }] } });
    expect(sink.calls.filter((call) => call.startsWith('upsert'))).toEqual([]);
  });
});

describe('its life', () => {
  test('ends with the signal, and closes every connection', async () => {
    await operator.start();
    await operator.whenReady();
    ending.abort();
    await operator.shutdown();
    await server.idle();
  });

  test('ends while it waits for a server', async () => {
    await server.stop();
    await operator.start();
    await log.until('retrying');
    await operator.shutdown();
  });

  test('does not depend on configuration files that are not its own', () => {
    const before = process.env['KUBECONFIG'];
    process.env['KUBECONFIG'] = '/none/broken';
    try {
      operator = operatorOf();
      expect(process.env['KUBECONFIG']).toBe('/none/broken');
    } finally {
      if (before === undefined) delete process.env['KUBECONFIG'];
      else process.env['KUBECONFIG'] = before;
    }
  });
});

describe('the framework around it', () => {
  const things = '/apis/example.com/v1/things';
  let events: ResourceEvent[];
  let waiting: { readonly holds: () => boolean; readonly resolve: () => void } | undefined;
  let failures: number;

  beforeEach(async () => {
    server.cluster.install(things, 'Thing');
    operator = operatorOf({ kinds: [] });
    events = [];
    failures = 0;
  });

  async function watched(): Promise<void> {
    await operator.watch('example.com', 'v1', 'things', async (event) => {
      if (failures-- > 0) throw new Error('not yet');
      events.push(event);
      if (waiting?.holds() === true) waiting.resolve();
    });
  }

  async function until(count: number): Promise<string[]> {
    const holds = (): boolean => events.length >= count;
    if (!holds()) await new Promise<void>((resolve) => (waiting = { holds, resolve }));
    return events.map(({ type, meta }) => `${type} ${meta.name}`);
  }

  test('events have its types, and deletes that happened while the watch was down are among them', async () => {
    put(things, 'shop', 'a');
    put(things, 'shop', 'b');
    await watched();
    expect(await until(2)).toEqual(['ADDED a', 'ADDED b']);
    expect(events[0]?.meta).toMatchObject({ id: 'things.example.com/v1', namespace: 'shop', kind: 'Thing' });
    await server.stop();
    server.cluster.delete(things, 'shop', 'a');
    put(things, 'shop', 'b', { spec: 1 });
    server.cluster.compact();
    await server.start();
    expect((await until(4)).slice(2).sort()).toEqual(['DELETED a', 'MODIFIED b']);
  });

  test('an object that was created anew is deleted and added', async () => {
    put(things, 'shop', 'a');
    await watched();
    await until(1);
    server.cluster.apply(
      things,
      { apiVersion: 'v1', kind: 'Thing', metadata: { namespace: 'shop', name: 'a' } },
      { anew: true },
    );
    expect(await until(3)).toEqual(['ADDED a', 'DELETED a', 'ADDED a']);
    expect(events[1]?.object.metadata?.uid).not.toBe(events[2]?.object.metadata?.uid);
  });

  test('a handler that fails is called again', async () => {
    failures = 1;
    put(things, 'shop', 'a');
    await watched();
    expect(await until(1)).toEqual(['ADDED a']);
  });

  test('the finalizer flow adds, calls and removes, and a list that changed meanwhile is not overwritten', async () => {
    put(things, 'shop', 'a');
    await watched();
    await until(1);
    const deleted: string[] = [];
    const handle = (event: ResourceEvent): Promise<boolean> =>
      operator.finalize(event, 'fairlead.dev/x', async ({ meta }) => void deleted.push(meta.name));

    const [added] = events;
    expect(await handle(added!)).toBe(true);
    expect(added?.object.metadata?.finalizers).toBeUndefined();
    await until(2);
    expect(events[1]?.object.metadata?.finalizers).toEqual(['fairlead.dev/x']);
    expect(await handle(events[1]!)).toBe(false);
    await expect(handle(added!)).rejects.toMatchObject({ code: 409 });

    const metadata = { deletionTimestamp: '2030-01-01T00:00:00Z', finalizers: ['fairlead.dev/x', 'other'] };
    put(things, 'shop', 'a', { metadata: { namespace: 'shop', name: 'a', ...metadata } });
    await until(3);
    expect(await handle(events[2]!)).toBe(true);
    await until(4);
    expect(deleted).toEqual(['a']);
    expect(events[3]?.object.metadata?.finalizers).toEqual(['other']);
  });

  test('a status is replaced or patched, conflicts reject, and a gone object is null', async () => {
    put(things, 'shop', 'a', { spec: { a: 1 } });
    await watched();
    await until(1);
    const { meta } = events[0]!;
    const after = (await operator.setStatus(meta, { one: 1 })) as ResourceMeta;
    expect(after.resourceVersion).not.toBe(meta.resourceVersion);
    await expect(operator.setStatus(meta, { one: 2 })).rejects.toMatchObject({ code: 409 });
    await operator.patchStatus(after, { two: 2 });
    await until(3);
    expect(events[2]?.object).toMatchObject({ spec: { a: 1 }, status: { one: 1, two: 2 } });
    server.cluster.delete(things, 'shop', 'a');
    expect(await operator.setStatus(after, {})).toBeNull();
  });

  test('a CRD is registered, also when it is there already', async () => {
    server.cluster.install('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', 'CustomResourceDefinition');
    const directory = mkdtempSync(join(tmpdir(), 'fairlead-crd-'));
    const file = join(directory, 'crd.yaml');
    const names = { plural: 'things', kind: 'Thing' };
    const spec = { group: 'example.com', names, scope: 'Namespaced', versions: [{ name: 'v1' }] };
    writeFileSync(
      file,
      JSON.stringify({
        apiVersion: 'apiextensions.k8s.io/v1',
        kind: 'X',
        metadata: { name: 'things.example.com' },
        spec,
      }),
    );
    for (let i = 0; i < 2; i++)
      expect(await operator.register(file)).toEqual({
        group: 'example.com',
        plural: 'things',
        versions: spec.versions,
      });
    writeFileSync(file, 'kind: ConfigMap');
    await expect(operator.register(file)).rejects.toThrow('is not a CustomResourceDefinition');
    rmSync(directory, { recursive: true });
  });

  test('the address of a resource', () => {
    expect(operator.uri('example.com', 'v1', 'things', 'shop')).toBe(
      `${server.url}/apis/example.com/v1/namespaces/shop/things`,
    );
  });
});
