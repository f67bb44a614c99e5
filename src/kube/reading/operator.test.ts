import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { kinds } from '../../api/kinds.ts';
import { KubeClient } from '../client/client.ts';
import { PooledKubeConfig } from '../client/credentials.ts';
import type { Json } from '../../api/json.ts';
import { FairleadOperator, type FairleadOperatorOptions } from './operator.ts';
import { collectionPath } from '../client/paths.ts';
import { FakeApiServer } from '../testing/fake-api-server.ts';
import { RecordingLog } from '../testing/recording-log.ts';
import { RecordingSink } from '../testing/recording-sink.ts';

const services = '/api/v1/services';
const pods = '/api/v1/pods';
const configMaps = '/api/v1/configmaps';
const gateways = '/apis/networking.istio.io/v1/gateways';

let server: FakeApiServer;
let sink: RecordingSink;
let log: RecordingLog;
let operator: FairleadOperator;
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

function operatorOf(options: Partial<FairleadOperatorOptions> = {}): FairleadOperator {
  const client = new KubeClient({ config: new PooledKubeConfig(() => server.kubeConfig()) });
  return new FairleadOperator({
    client,
    sink,
    log,
    signal: ending.signal,
    rootNamespace: 'istio-system',
    meshConfigs: ['istio'],
    random: () => 0,
    ...options,
  });
}

function put(path: string, namespace: string, name: string, more: Json = {}): Json {
  return server.cluster.apply(path, { apiVersion: 'v1', kind: 'Thing', metadata: { namespace, name }, ...more });
}

test('it says so if it ends although nobody stopped it, and only then', async () => {
  const failures: unknown[] = [];
  const bug = new Error('bug');
  let isBroken = false;
  operator = operatorOf({
    // A watch that fails is opened again after a delay.
    random: () => {
      if (isBroken) throw bug;
      return 0;
    },
    failed: (error) => void failures.push(error),
  });
  await operator.start();
  await operator.whenReady();
  expect(failures).toEqual([]);
  isBroken = true;
  server.cluster.failNext(503, 1_000);
  server.reset();
  await expect.poll(() => failures).toEqual([bug]);
});

describe('as a source', () => {
  test('it delivers every kind, and is ready then', async () => {
    for (const kind of kinds)
      if (kind.kind !== 'ConfigMap') put(collectionPath(kind), kind.namespaced ? 'shop' : '', 'x');
    expect(operator.ready()).toBe(false);
    await operator.start();
    await operator.whenReady();
    expect(operator.ready()).toBe(true);
    for (const kind of kinds)
      expect(sink.names(kind.name)).toEqual(kind.name === 'ConfigMap' ? [] : [kind.namespaced ? 'shop/x' : '/x']);
    expect(operator.stats()).toMatchObject({
      relists: 0,
      malformedObjects: 0,
      kinds: { Pod: { objects: 1, synced: true } },
    });
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

  test('it reads several ConfigMaps by name, and knows none before it knows all', async () => {
    put(configMaps, 'istio-system', 'istio');
    put(configMaps, 'istio-system', 'istio-canary');
    put(configMaps, 'istio-system', 'istio-other');
    operator = operatorOf({ meshConfigs: ['istio-canary', 'istio'] });
    await operator.start();
    await operator.whenReady();
    expect(sink.names('ConfigMap')).toEqual(['istio-system/istio', 'istio-system/istio-canary']);
    server.cluster.delete(configMaps, 'istio-system', 'istio-canary');
    await sink.until((s) => s.names('ConfigMap').length === 1);
    expect(operator.stats().kinds.ConfigMap).toMatchObject({ synced: true, objects: 1, lists: 1 });
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
