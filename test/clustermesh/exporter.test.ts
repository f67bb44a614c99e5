import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import type { EndpointSlice } from '../../src/api/core.ts';
import { systemClock } from '../../src/base/clock.ts';
import { EtcdStore } from '../../src/clustermesh/etcd-store.ts';
import { Exporter } from '../../src/clustermesh/exporter.ts';
import type { EtcdAccess } from '../../src/etcd/access.ts';
import type { EtcdConnection } from '../../src/etcd/connection.ts';
import { keysUnder } from '../../src/etcd/keys.ts';
import { deleteRange, type KeyValue, put, range } from '../../src/etcd/messages.ts';
import { leaseRevoke } from '../../src/etcd/testing/messages.ts';
import type { GlobalService, NamedPort } from '../../src/model/global-service.ts';
import { type Restart, type RunningEtcd, startEtcd } from '../peers/etcd.ts';
import { printLogOnFailure, withPeers } from '../peers/with-peers.ts';
import { configurationOf } from './configuration.ts';
import { type Reading, startReading } from './mesh-lab.ts';
import { grantAsCilium } from './rights.ts';

const home = { name: 'home', id: 7, limit: 255 } as const;
const SERVICES = 'cilium/state/services/v1/home/';
const http: NamedPort = { name: 'http', port: 8080, protocol: 'TCP' };

const service = (name: string, ...addresses: readonly string[]): GlobalService => ({
  ...{ namespace: 'shop', name, labels: { app: name }, selector: { app: name } },
  frontends: [{ address: '10.1.0.9', ports: [{ ...http, port: 80 }] }],
  backends: addresses.map((address) => ({ address, ports: [http], zone: 'a1' })),
});

withPeers(['etcd'], 'an exporter to a real etcd', () => {
  let etcd: RunningEtcd;
  let admin: EtcdConnection;
  let directory: string;
  let services: Map<string, GlobalService>;
  const slices = new Map<string, EndpointSlice>();
  const ends: (() => void | Promise<void>)[] = [];

  const prepare = (root: EtcdConnection): Promise<void> => grantAsCilium(root, 'home');
  const restart = async (how: Restart = {}): Promise<void> => {
    await etcd.restart({ ...(how.wiped === true && { prepare }), ...how });
    admin = await etcd.connect('admin-home');
  };
  const once = { signal: new AbortController().signal };
  const stored = async (prefix = 'cilium/'): Promise<readonly KeyValue[]> => {
    const { key, end } = keysUnder(prefix);
    return (await admin.call(range, { key, ...(end !== undefined && { rangeEnd: end }) }, once)).kvs;
  };
  const names = async (prefix?: string): Promise<readonly string[]> => (await stored(prefix)).map(({ key }) => key);
  const configFile = async (access: EtcdAccess): Promise<string> => {
    const file = join(directory, 'export');
    await writeFile(file, configurationOf(access));
    return file;
  };
  interface Exporting {
    readonly exporter: Exporter;
    set(...services: readonly GlobalService[]): void;
    remove(name: string): void;
    end(): Promise<void>;
  }
  const exporting = async (user = 'admin-home'): Promise<Exporting> => {
    const file = await configFile(await etcd.access(user));
    const options = { clock: systemClock, random: () => 0 };
    const exporter = new Exporter({
      ...{ ...options, own: home, known: Promise.resolve(), onState: () => undefined },
      services: { entries: () => services.entries(), get: (key) => services.get(key) },
      slices: { entries: () => slices.entries(), get: (key) => slices.get(key) },
      open: (onLost) => new EtcdStore({ ...options, file, onLost }),
    });
    const term = new AbortController();
    const running = exporter.lead(term.signal);
    const end = async (): Promise<void> => {
      term.abort();
      await running;
    };
    ends.push(end);
    return {
      exporter,
      set(...changed) {
        for (const each of changed) services.set(`shop/${each.name}`, each);
        exporter.changed(
          'services',
          changed.map(({ name }) => `shop/${name}`),
        );
      },
      remove(name) {
        services.delete(`shop/${name}`);
        exporter.changed('services', [`shop/${name}`]);
      },
      end,
    };
  };
  const whole = async ({ exporter }: Exporting): Promise<void> => {
    await expect.poll(() => exporter.status()).toMatchObject({ isWhole: true, pending: 0, endpoint: {} });
  };
  const read = async (): Promise<Reading> => {
    const reading = startReading('home', await etcd.access('remote'), { importsServices: true });
    ends.push(() => reading.end());
    return reading;
  };

  beforeAll(async () => {
    etcd = await startEtcd({ prepare });
    admin = await etcd.connect('admin-home');
  });
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'fairlead-export-'));
    services = new Map([['shop/a', service('a', '10.9.0.1')]]);
  });
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end();
    await admin.call(deleteRange, { key: 'cilium/', rangeEnd: 'cilium0' }, once);
    await rm(directory, { recursive: true });
  });
  afterAll(() => etcd?.stop());
  printLogOnFailure(() => etcd);

  test('what it writes is what a reader of another cluster reads', async () => {
    const { sink, source } = await read();
    const exporting1 = await exporting();
    await sink.has({ 'shop/a': ['10.9.0.1:8080'] });
    await source.ready;
    expect(sink.kinds.get('Service')?.get('shop/a')).toMatchObject({
      spec: { clusterIP: '10.1.0.9', ports: [{ name: 'http', port: 80 }] },
    });
    exporting1.set(service('a', '10.9.0.1', 'fd00::1'), service('b', '10.9.0.2'));
    await sink.has({ 'shop/a': ['10.9.0.1:8080', 'fd00::1:8080'], 'shop/b': ['10.9.0.2:8080'] });
    exporting1.remove('a');
    await sink.has({ 'shop/b': ['10.9.0.2:8080'] });
    await expect
      .poll(() => source.details())
      .toMatchObject({
        connected: true,
        failures: 0,
        config: { id: 7, limit: 255, syncedCanaries: true, cached: false },
        resources: Object.fromEntries(
          ['nodes', 'services', 'identities', 'ip'].map((kind) => [kind, { synced: true, current: true, skipped: 0 }]),
        ),
      });
    expect(source.trouble()).toBeUndefined();
  });

  test('every key has a lease, and stays when the exporter ends', async () => {
    const first = await exporting();
    await whole(first);
    await first.end();
    const before = await stored();
    expect(before.map(({ key }) => key)).toEqual([
      'cilium/.heartbeat',
      'cilium/cluster-config/home',
      `${SERVICES}shop/a`,
      ...['endpointslices', 'identities', 'ip', 'nodes', 'services'].map(
        (kind) => `cilium/synced/home/cilium/state/${kind}/v1`,
      ),
    ]);
    expect(before.filter(({ lease }) => lease === 0n)).toEqual([]);
    // Another replica goes on with all of them, by its own lease, and takes away what has gone meanwhile.
    await admin.call(put, { key: `${SERVICES}shop/old`, value: Buffer.from('{}'), lease: before[0]!.lease }, once);
    await whole(await exporting());
    const after = await stored();
    expect(after.map(({ key }) => key)).toEqual(before.map(({ key }) => key));
    expect(after.filter(({ lease }) => lease === before[0]!.lease)).toEqual([]);
  });

  test('canaries are written last', async () => {
    services = new Map(Array.from({ length: 300 }, (_, i) => [`shop/s${i}`, service(`s${i}`, '10.9.0.1')]));
    await whole(await exporting());
    const all = await stored();
    const canaries = all.filter(({ key }) => key.startsWith('cilium/synced/'));
    const others = all.filter(({ key }) => !key.startsWith('cilium/synced/') && key !== 'cilium/.heartbeat');
    expect(others).toHaveLength(301);
    const revisions = others.map(({ modRevision }) => Number(modRevision));
    expect(Math.min(...canaries.map(({ modRevision }) => Number(modRevision)))).toBeGreaterThan(Math.max(...revisions));
  });

  test('a lease that is gone, and an etcd that was emptied, are written again', async () => {
    const exporting1 = await exporting();
    await whole(exporting1);
    const before = await names();
    const lease = (await stored())[0]!.lease;
    await admin.call(leaseRevoke, { id: lease }, once);
    expect(await names()).toEqual([]);
    // The next write finds out.
    exporting1.set(service('a', '10.9.0.5'));
    await expect.poll(() => names()).toEqual(before);
    await restart({ wiped: true });
    await expect.poll(() => names(), { timeout: 20_000 }).toEqual(before);
    await restart({ wiped: true, token: 'another' });
    await expect.poll(() => names(), { timeout: 20_000 }).toEqual(before);
    expect((await stored(`${SERVICES}shop/a`))[0]?.value.toString()).toContain('10.9.0.5');
  });

  test('what etcd does not take holds up nothing else, and who may not write is told so', async () => {
    const huge = { ...service('huge'), labels: { big: 'x'.repeat(2_000_000) } };
    services.set('shop/huge', huge);
    const first = await exporting();
    await whole(first);
    expect(await names(SERVICES)).toEqual([`${SERVICES}shop/a`]);
    expect([...(first.exporter.status()?.refused ?? [])]).toEqual([
      [`${SERVICES}shop/huge`, expect.stringMatching(/too large/)],
    ]);
    await first.end();
    const second = await exporting('remote');
    await expect.poll(() => second.exporter.status()?.refused.get(`${SERVICES}shop/a`)).toMatch(/permission denied/);
    expect(second.exporter.status()).toMatchObject({ endpoint: `https://127.0.0.1:${etcd.port}` });
  });

  test('without its file it says so, and goes on once it is there', async () => {
    const first = await exporting();
    await whole(first);
    const file = join(directory, 'export');
    await first.end();
    await rm(file);
    const second = await exporting();
    await rm(file);
    await second.end();
    const options = { clock: systemClock, random: () => 0 };
    const store = new EtcdStore({ ...options, file, onLost: () => undefined });
    await expect(store.connect(once)).rejects.toThrow(`${file} is not there, or does not contain "endpoints:"`);
    await writeFile(file, 'endpoints: 7');
    await expect(store.connect(once)).rejects.toThrow(`${file} endpoints is not a list`);
    await configFile(await etcd.access('admin-home'));
    await (await store.connect(once)).close();
  });
});
