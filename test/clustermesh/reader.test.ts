import { zstdCompressSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { ClusterIds } from '../../src/clustermesh/cluster-ids.ts';
import { canaryKey } from '../../src/clustermesh/keys.ts';
import type { MeshReaderOptions } from '../../src/clustermesh/reader.ts';
import type { RemoteSlice } from '../../src/clustermesh/slice-value.ts';
import type { EtcdAccess } from '../../src/etcd/access.ts';
import type { EtcdConnection } from '../../src/etcd/connection.ts';
import { FakeClock } from '../../src/testing/fake-clock.ts';
import { SkippingClock } from '../features/skipping-clock.ts';
import { type Restart, type RunningEtcd, startEtcd } from '../peers/etcd.ts';
import { createAuthority } from '../peers/keys.ts';
import { printLogOnFailure, withPeers } from '../peers/with-peers.ts';
import { CiliumWriter } from './cilium-writer.ts';
import { recordedBackends, recordedKeys, recordedServices, recordings } from './recorded.ts';
import { OWN, type Reading, startReading } from './mesh-lab.ts';
import { type Relay, startRelay } from './relay.ts';
import { grantAsCilium } from './rights.ts';

const web = { namespace: 'shop', name: 'web', backends: { '10.9.0.1': 8080, '10.9.0.2': 8080 } };
const db = { namespace: 'shop', name: 'db', backends: { '10.9.0.3': 5432 } };
const WEB = { 'shop/web': ['10.9.0.1:8080', '10.9.0.2:8080'] };
const DB = { 'shop/db': ['10.9.0.3:5432'] };

const slice = (name: string, ...addresses: readonly string[]): RemoteSlice => ({
  ...{ namespace: 'shop', name, addressType: 'IPv4' },
  labels: { 'kubernetes.io/service-name': 'web' },
  endpoints: addresses.map((address) => ({ addresses: [address], conditions: { ready: true } })),
  ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
});

const WEB_PODS = ['shop/web-0', 'shop/web-2'];
/** With endpoints that are not ready. */
const ENDPOINTS_OF_SLICES = {
  'shop/bare': ['10.2.1.90:8080'],
  'shop/db': ['10.2.1.50:5432'],
  'shop/dns': [
    '10.2.1.70:132',
    '10.2.1.70:5353',
    '10.2.1.70:5353',
    '10.2.2.70:132',
    '10.2.2.70:5353',
    '10.2.2.70:5353',
  ],
  'shop/named': ['10.2.1.91:8080'],
  'shop/split': ['10.2.1.80:7001', '10.2.1.80:7002', '10.2.1.81:7002'],
  'shop/web': ['10.2.1.1', '10.2.1.2', '10.2.1.3', '10.2.2.1', 'fd00:10:2:1::1'].flatMap((address) =>
    [8080, 9090, 9100].map((port) => `${address}:${port}`),
  ),
};

withPeers(['etcd'], 'a reader of a real etcd in which Cilium would write', () => {
  let etcd: RunningEtcd;
  let admin: EtcdConnection;
  let writer: CiliumWriter;
  const ends: (() => void | Promise<void>)[] = [];

  const prepare = (root: EtcdConnection): Promise<void> => grantAsCilium(root, 'c1');
  const restart = async (how: Restart = {}): Promise<void> => {
    await etcd.restart({ ...(how.wiped === true && { prepare }), ...how });
    admin = await etcd.connect('admin-c1');
  };
  const read = async (more: Partial<MeshReaderOptions> = {}, user = 'remote', name = 'c1'): Promise<Reading> => {
    const reading = startReading(name, more.access ?? (await etcd.access(user)), more);
    ends.push(() => reading.end());
    return reading;
  };
  const troubleOf = ({ source }: Reading) => source.trouble()?.reason;
  const relay = async (): Promise<Relay> => {
    const made = await startRelay(etcd.port);
    ends.push(() => made.stop());
    return made;
  };
  const through = async (relay: Relay): Promise<EtcdAccess> => ({
    ...(await etcd.access('remote')),
    endpoints: [`https://127.0.0.1:${relay.port}`],
  });

  beforeAll(async () => {
    etcd = await startEtcd({ prepare });
    admin = await etcd.connect('admin-c1');
    writer = new CiliumWriter(() => admin, 'c1', 3);
  });
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end();
    await writer.delete('cilium/', 'cilium0');
  });
  afterAll(() => etcd?.stop());
  printLogOnFailure(() => etcd);

  test('services are delivered whole when their canary says so, and then as they change', async () => {
    const reading = await read();
    const { sink, source } = reading;
    await expect.poll(() => troubleOf(reading)).toMatch(/^cilium\/cluster-config\/c1 does not exist/);
    await writer.begin();
    await writer.service(web);
    await writer.finish('nodes', 'identities', 'ip');
    const awaited = `waits for ${canaryKey('services', 'state', 'c1')}, which says that the services were written`;
    await expect.poll(() => [troubleOf(reading), source.details().resources.nodes?.current]).toEqual([awaited, true]);
    await writer.service(db);
    expect([reading.isReady, sink.replaced]).toEqual([false, 0]);
    await writer.finish('services');
    await sink.has({ ...WEB, ...DB });
    await source.ready;
    expect(sink.replaced).toBe(1);
    await writer.service({ ...web, backends: { '10.9.0.7': 81 } });
    await sink.has({ 'shop/web': ['10.9.0.7:81'], ...DB });
    await writer.service({ ...db, shared: false });
    await sink.has({ 'shop/web': ['10.9.0.7:81'] });
    await writer.remove('services', 'shop/web');
    await sink.has({});
    expect([sink.replaced, troubleOf(reading), sink.names('Service')]).toEqual([1, undefined, []]);
    expect(source.details()).toMatchObject({
      ...{ connected: true, failures: 0, endpoint: `https://127.0.0.1:${etcd.port}` },
      config: { id: 3, syncedCanaries: true, cached: false },
      resources: { services: { synced: true, current: true, entries: 1, skipped: 0 } },
    });
    expect(BigInt(source.details().etcdClusterId ?? 0)).toBe(admin.clusterId);
  });

  test('a cluster without canaries is read at once, and Services too if they are wanted', async () => {
    await writer.begin({ syncedCanaries: false });
    await writer.service(web);
    const { sink } = await read({ importsServices: true });
    await sink.has(WEB);
    expect(sink.names('Service')).toEqual(['shop/web']);
    await writer.remove('services', 'shop/web');
    await expect.poll(() => sink.names('Service')).toEqual([]);
  });

  test('slices are read where there are no services, and never both', async () => {
    await writer.begin({ endpointSlicesExportMode: 'services-and-endpointslices' });
    await writer.service(web);
    await writer.slice(slice('web-1', '10.9.0.1', '10.9.0.9'));
    await writer.finish();
    await writer.finish('endpointslices');
    const { sink, source } = await read();
    await sink.has(WEB);
    expect(Object.keys(source.details().resources)).toEqual(['nodes', 'services', 'identities', 'ip']);
    await writer.config({ endpointSlicesExportMode: 'endpointslices-only' });
    await sink.has({ 'shop/web': ['10.9.0.1:8080', '10.9.0.9:8080'] });
    await writer.slice(slice('web-2', '10.9.0.4'));
    await writer.remove('endpointslices', 'shop/web-1');
    await sink.has({ 'shop/web': ['10.9.0.4:8080'] });
    expect(Object.keys(source.details().resources)).toEqual(['nodes', 'endpointslices', 'identities', 'ip']);
    expect(sink.names('EndpointSlice')).toEqual(['shop/web-2']);
  });

  test('a KVStoreMesh has many clusters, with one id of the etcd', async () => {
    const ids = new ClusterIds(OWN);
    const others = ['c1', 'c2'].map((name, i) => new CiliumWriter(() => admin, name, i + 5, 'cache'));
    for (const [i, other] of others.entries()) {
      await other.begin();
      await other.service({ ...web, backends: { [`10.9.${i}.1`]: 80 } });
      await other.pod(`10.9.${i}.1`, 7, 'shop', 'web-0');
      await other.finish();
    }
    // What is of the cluster itself is not in the cache.
    await writer.service(db);
    const [one, two] = [await read({ ids }, 'local', 'c1'), await read({ ids }, 'local', 'c2')];
    await one.sink.has({ 'shop/web': ['10.9.0.1:80'] });
    await two.sink.has({ 'shop/web': ['10.9.1.1:80'] });
    expect(one.source.details().etcdClusterId).toBe(two.source.details().etcdClusterId);
    await expect.poll(() => two.source.peers.identityOf('10.9.1.1')?.id).toBe((6 << 16) + 7);
    expect(two.source.peers.identityOf('10.9.0.1')).toBeUndefined();
  });

  test.each([
    [
      'whose slices are in a form that is not known',
      { endpointSlicesExportMode: 'other' },
      3,
      /"other" is not supported; upgrade Fairlead/,
    ],
    ['without an id', {}, 0, /cluster id 0 is not from 1 to 255; give cluster c1 another one/],
    ['with our id', {}, 1, /cluster id 1 is that of this cluster/],
    ['with an id that is too high', {}, 256, /cluster id 256 is not from 1 to 255/],
    ['with a limit that does not exist', { maxConnectedClusters: 300 }, 3, /300 is neither 255 nor 511/],
  ])('a cluster %s is not read', async (_, capabilities, id, message) => {
    await writer.as(id).begin(capabilities);
    await writer.as(id).service(web);
    await writer.finish();
    const reading = await read();
    await expect.poll(() => troubleOf(reading)).toMatch(message);
    expect(reading.source.details()).toMatchObject({ connected: true, resources: { services: { synced: false } } });
    await writer.begin();
    await writer.service(web);
    await reading.sink.has(WEB);
    expect(troubleOf(reading)).toBeUndefined();
  });

  test('in a mesh of 511 clusters, all must have that limit', async () => {
    await writer.begin();
    const reading = await read({ own: { ...OWN, limit: 511 } });
    await expect.poll(() => troubleOf(reading)).toMatch(/maxConnectedClusters is 255 there and 511 here/);
    await writer.config({ maxConnectedClusters: 511 });
    await writer.service(web);
    await writer.finish();
    await reading.sink.has(WEB);
  });

  test('an id that another cluster has is waited for', async () => {
    const clock = new FakeClock();
    const ids = new ClusterIds(OWN);
    const taken = ids.reserve({ name: 'other', id: 3, limit: 255 });
    await writer.begin();
    await writer.service(web);
    await writer.finish();
    const reading = await read({ ids, clock });
    await expect
      .poll(() => troubleOf(reading))
      .toBe('cluster id 3 is that of cluster other, too; give one of them another id');
    if ('release' in taken) taken.release();
    await clock.advance(1_000);
    await reading.sink.has(WEB);
    // Its own is free again when it ends.
    expect(ids.reserve({ name: 'other', id: 3, limit: 255 })).toHaveProperty('problem');
    await reading.end();
    expect(ids.reserve({ name: 'other', id: 3, limit: 255 })).toHaveProperty('release');
  });

  test('a cluster with a new id is another cluster: nothing of the former one stays', async () => {
    await writer.begin();
    await writer.service(web);
    await writer.service(db);
    await writer.finish();
    const ids = new ClusterIds(OWN);
    const reading = await read({ ids });
    await reading.sink.has({ ...WEB, ...DB });
    const renamed = writer.as(4);
    await renamed.config();
    // What has the former id is not believed.
    await reading.sink.has({});
    await renamed.service(web);
    await reading.sink.has(WEB);
    await expect
      .poll(() => reading.source.details().resources.services)
      .toMatchObject({
        ...{ synced: true, entries: 1 },
        problems: [{ problem: 'clusterID is not 4, the id of cluster c1' }],
      });
    expect(ids.reserve({ name: 'other', id: 3, limit: 255 })).toHaveProperty('release');
  });

  test('a value that cannot be used is skipped and named, and what was there before stays', async () => {
    await writer.begin();
    await writer.service(web);
    await writer.put('services', 'shop/broken', '{');
    await writer.put('services', 'shop/other', JSON.stringify({ cluster: 'c2', namespace: 'shop', name: 'other' }));
    await writer.put('services', 'nonsense', '{}');
    await writer.finish();
    const reading = await read();
    const services = () => reading.source.details().resources.services;
    await reading.sink.has(WEB);
    expect(services()).toMatchObject({ entries: 1, skipped: 3 });
    expect(services()?.problems.map(({ key }) => key.replace('cilium/state/services/v1/c1/', ''))).toEqual([
      'nonsense',
      'shop/broken',
      'shop/other',
    ]);
    await writer.put('services', 'shop/web', JSON.stringify({ cluster: 'c1', backends: [] }));
    await writer.service(db);
    await reading.sink.has({ ...WEB, ...DB });
    expect(services()).toMatchObject({ entries: 2, skipped: 4 });
    // A list has it, too.
    await restart();
    await expect.poll(() => [services()?.current, services()?.skipped]).toEqual([true, 8]);
    await reading.sink.has({ ...WEB, ...DB });
    await writer.service({ ...web, backends: { '10.9.0.8': 80 } });
    await reading.sink.has({ 'shop/web': ['10.9.0.8:80'], ...DB });
    expect(services()?.problems).toHaveLength(3);
    await writer.remove('services', 'shop/broken');
    await expect.poll(() => services()?.problems).toHaveLength(2);
  });

  test('values that are too long, and slices that are when decompressed, cost nobody else anything', async () => {
    await restart({ args: ['--max-request-bytes=33554432'] });
    await writer.begin({ endpointSlicesExportMode: 'endpointslices-only' });
    await writer.slice(slice('web-1', '10.9.0.1'));
    await writer.put('endpointslices', 'shop/bomb', zstdCompressSync(Buffer.alloc(64 << 20)));
    await writer.put('endpointslices', 'shop/long', Buffer.alloc(16 << 20));
    await writer.finish('endpointslices');
    const { sink, source } = await read();
    await sink.has({ 'shop/web': ['10.9.0.1:8080'] });
    expect(source.details().resources.endpointslices?.problems).toMatchObject([
      { key: expect.stringMatching(/bomb$/) as string, problem: expect.stringMatching(/when decompressed$/) as string },
      { key: expect.stringMatching(/long$/) as string, problem: 'is too long to be read' },
    ]);
    await writer.slice(slice('web-2', '10.9.0.2'));
    await sink.has({ 'shop/web': ['10.9.0.1:8080', '10.9.0.2:8080'] });
    await restart();
  });

  test('whose an address is: its identity with labels, and the Pod', async () => {
    await writer.begin();
    await writer.node('node-1', '192.168.0.1');
    await writer.identity(7, { 'k8s:app': 'web' });
    await writer.pod('10.9.0.1', 7, 'shop', 'web-0');
    await writer.pod('fd00::1', 7, 'shop', 'web-0');
    await writer.put('ip', '10.9.7.0/24', JSON.stringify({ IP: '10.9.7.0', Mask: '////AA==', ID: 2 }));
    await writer.finish();
    const { source } = await read();
    const whose = (address: string) => source.peers.identityOf(address);
    await expect.poll(() => whose('fd00::1')?.labels).toBeDefined();
    const id = writer.identityOf(7);
    const labels = { 'k8s:app': 'web', 'k8s:io.cilium.k8s.policy.cluster': 'c1' };
    const pod = { id, labels, namespace: 'shop', pod: 'web-0', serviceAccount: 'default', host: '192.168.0.1' };
    expect([whose('10.9.0.1'), whose('fd00:0::1')]).toEqual([pod, pod]);
    expect([whose('10.9.7.8')?.id, whose('10.9.8.8'), whose('nonsense')]).toEqual([2, undefined, undefined]);
    await writer.identity(8, {});
    await writer.pod('10.9.0.1', 8, 'shop', 'web-1');
    await expect.poll(() => whose('10.9.0.1')?.pod).toBe('web-1');
    await writer.remove('ip', '10.9.0.1');
    await writer.remove('ip', '10.9.7.0/24');
    await expect.poll(() => [whose('10.9.0.1'), whose('10.9.7.8')]).toEqual([undefined, undefined]);
    expect(source.figures().objects).toMatchObject({ nodes: 1, identities: 2, ip: 1 });
  });

  test.each(recordings)('all that Cilium has written is read: %s', async (recording) => {
    const recorded = recordedKeys(recording);
    for (const { key, value } of recorded) await writer.write(key, value);
    await writer.heartbeat();
    const reading = await read({ importsServices: true }, 'admin-c1', 'east');
    const { sink, source } = reading;
    await source.ready;
    const services = recordedServices(recorded);
    expect(sink.backends).toEqual(services.length > 0 ? recordedBackends(services) : ENDPOINTS_OF_SLICES);
    expect(sink.names('Service')).toEqual(
      services
        .filter(({ shared, name }) => shared && name !== 'outside')
        .map(({ namespace, name }) => `${namespace}/${name}`)
        .sort(),
    );
    const hasStarting = sink.backends['shop/web']?.includes('10.2.1.3:8080') === true;
    expect(sink.names('Pod')).toEqual(['shop/db-0', ...(hasStarting ? ['shop/starting'] : []), ...WEB_PODS]);
    expect(sink.names('Node')).toEqual(['/192.168.2.1', '/192.168.2.2', '/fc00:2::1']);
    const web0 = { id: 131_100, namespace: 'shop', pod: 'web-0', serviceAccount: 'web', node: 'n1' };
    expect(source.whose('fd00:10:2:1::1')).toMatchObject(web0);
    expect(source.whose('10.2.2.1')).toMatchObject({ pod: 'web-2', node: 'n2.example.com' });
    expect(sink.kinds.get('Pod')?.get('shop/web-0')).toMatchObject({ spec: { serviceAccountName: 'web' } });
    const { resources, config, lacks } = source.details();
    expect(lacks !== undefined).toBe(services.length === 0);
    expect(Object.values(resources).map(({ skipped }) => skipped)).toEqual([0, 0, 0, 0]);
    expect([config?.id, troubleOf(reading)]).toEqual([2, undefined]);
  });

  test('Pods behind back ends are delivered, with their node, and no others', async () => {
    await writer.begin();
    await writer.service({ ...web, backends: { '10.9.0.1': 8080 } });
    await writer.node('node-1', '192.168.0.1', { 'topology.kubernetes.io/zone': 'a' });
    const labels = { 'k8s:app': 'web', 'k8s:security.istio.io/tlsMode': 'istio' };
    await writer.identity(7, labels);
    await writer.pod('10.9.0.1', 7, 'shop', 'web-0');
    await writer.pod('10.9.0.2', 7, 'shop', 'web-1');
    await writer.finish();
    const { source, sink } = await read();
    await source.ready;
    expect(sink.names('Pod')).toEqual(['shop/web-0']);
    expect(sink.kinds.get('Pod')?.get('shop/web-0')).toMatchObject({
      metadata: { labels: { app: 'web', 'security.istio.io/tlsMode': 'istio' } },
      spec: { serviceAccountName: 'default', nodeName: '192.168.0.1' },
      status: { podIPs: [{ ip: '10.9.0.1' }] },
    });
    expect(sink.kinds.get('Node')?.get('/192.168.0.1')).toMatchObject({
      metadata: { labels: { 'topology.kubernetes.io/zone': 'a' } },
    });
    await writer.service({ ...web, backends: { '10.9.0.2': 8080 } });
    await expect.poll(() => sink.names('Pod')).toEqual(['shop/web-1']);
    await writer.remove('ip', '10.9.0.2');
    await writer.remove('nodes', 'node-1');
    await expect.poll(() => [sink.names('Pod'), sink.names('Node')]).toEqual([[], []]);
  });

  test('a cluster whose addresses may not be read is served without Pods', async () => {
    await writer.begin();
    await writer.service({ ...web, backends: { '10.9.0.1': 8080 } });
    await writer.finish('services');
    const clock = new SkippingClock();
    const { source, sink } = await read({ clock });
    await sink.has({ 'shop/web': ['10.9.0.1:8080'] });
    clock.skip(10_000);
    await source.ready;
    expect(sink.names('Pod')).toEqual([]);
  });

  test('a user without rights is told what to do, and the cluster is read when it has them', async () => {
    await writer.begin();
    await writer.service(web);
    await writer.finish();
    const access = await etcd.access('nobody');
    const reading = await read({ access });
    await expect
      .poll(() => troubleOf(reading))
      .toMatch(/^heartbeat: etcdserver: permission denied \(have its etcd grant this to the user/);
    expect(reading.source.details()).toMatchObject({ connected: false });
    await etcd.renew(access, 'remote');
    await restart();
    await reading.sink.has(WEB);
  });

  test('an etcd that comes back with another id: what was known stays until its lists are complete', async () => {
    await writer.begin();
    await writer.service(web);
    await writer.service(db);
    await writer.finish();
    const reading = await read();
    await reading.sink.has({ ...WEB, ...DB });
    const before = reading.source.details().etcdClusterId;
    await restart({ wiped: true, token: 'another' });
    const { source, sink } = reading;
    await expect.poll(() => source.details().lastFailure?.next).toMatch(/clustermesh-apiserver/);
    await writer.begin();
    await writer.service({ ...web, backends: { '10.9.0.5': 80 } });
    await expect.poll(() => troubleOf(reading)).toMatch(/^waits for /);
    expect([sink.backends, source.details().etcdClusterId === before]).toEqual([{ ...WEB, ...DB }, false]);
    await writer.finish();
    await sink.has({ 'shop/web': ['10.9.0.5:80'] });
    expect(sink.replaced).toBe(2);
  });

  test('an etcd that was wiped and has the same id is read anew', async () => {
    await writer.begin();
    for (let i = 0; i < 8; i++) await writer.service({ ...web, name: `old-${i}` });
    await writer.finish();
    const { sink, source } = await read();
    await expect.poll(() => source.details().resources.services?.entries).toBe(8);
    const before = source.details().etcdClusterId;
    await restart({ wiped: true });
    await writer.begin();
    await writer.service(db);
    await writer.finish();
    await sink.has(DB);
    expect(source.details().etcdClusterId).toBe(before);
  });

  test('when most services vanish from one list, they stay until another list agrees', async () => {
    const clock = new FakeClock();
    await writer.begin();
    for (let i = 0; i < 20; i++) await writer.service({ ...web, name: `web-${i}` });
    await writer.finish();
    const reading = await read({ clock });
    await expect.poll(() => Object.keys(reading.sink.backends)).toHaveLength(20);
    await etcd.kill();
    await expect.poll(() => troubleOf(reading)).toMatch(/connection was lost/);
    await etcd.start({ wiped: true, prepare });
    admin = await etcd.connect('admin-c1');
    await writer.begin({ syncedCanaries: false });
    await writer.service({ ...web, name: 'web-3' });
    await clock.advance(1_000);
    await expect
      .poll(() => troubleOf(reading))
      .toBe('services: 19 of 20 vanished at once; they stay until another list agrees');
    await writer.remove('services', 'shop/web-3');
    await expect.poll(() => Object.keys(reading.sink.backends)).toHaveLength(19);
    await clock.advance(31_000);
    await reading.sink.has({});
    expect(troubleOf(reading)).toBeUndefined();
  });

  test('a heartbeat that stops is noticed, and nothing is forgotten', async () => {
    const clock = new FakeClock();
    await writer.begin();
    await writer.service(web);
    await writer.finish();
    const reading = await read({ clock });
    await reading.sink.has(WEB);
    await expect.poll(() => reading.source.details().connected).toBe(true);
    await clock.advance(100_000);
    await writer.heartbeat();
    await expect.poll(() => reading.source.figures().stalenessSeconds).toBe(0);
    await clock.advance(100_000);
    expect(reading.source.details()).toMatchObject({ connected: true, failures: 0 });
    expect(reading.source.figures().stalenessSeconds).toBe(100);
    await clock.advance(20_000);
    expect(troubleOf(reading)).toBe(
      'its heartbeat has been silent for 2 minutes (check that its clustermesh-apiserver writes to this etcd)',
    );
    expect([reading.sink.backends, reading.source.details().failures]).toEqual([WEB, 1]);
    await clock.advance(1_000);
    await expect.poll(() => reading.source.details().connected).toBe(true);
    await expect.poll(() => troubleOf(reading)).toBeUndefined();
    await reading.end();
    expect(clock.pending).toBe(0);
  });

  test('a lease that ends takes what hangs on it, and the reader waits for more', async () => {
    await writer.lease();
    await writer.begin();
    await writer.service(web);
    await writer.finish();
    const reading = await read();
    await reading.sink.has(WEB);
    await writer.endLease();
    await reading.sink.has({});
    await writer.begin();
    await writer.service(db);
    await reading.sink.has(DB);
  });

  test('certificates are replaced without a restart', async () => {
    await writer.begin();
    await writer.service(web);
    await writer.finish();
    const access = await etcd.access('remote');
    const reading = await read({ access });
    await reading.sink.has(WEB);
    const { authority } = etcd;
    await restart({ authority: await createAuthority() });
    await expect.poll(() => troubleOf(reading)).toMatch(/\(check the certificates: /);
    await writer.service(db);
    await etcd.renew(access, 'remote');
    await reading.sink.has({ ...WEB, ...DB });
    await restart({ authority });
  });

  test('files that are not there yet are read when they are', async () => {
    await writer.begin();
    await writer.service(web);
    await writer.finish();
    const access = await etcd.access('remote');
    const later = { ...access, caFile: `${access.caFile}.later` };
    const reading = await read({ access: later });
    await expect.poll(() => troubleOf(reading)).toMatch(/cannot read .*ENOENT \(provide the file/);
    await etcd.renew(later, 'remote');
    await reading.sink.has(WEB);
  });

  test('an etcd that goes silent is noticed; what was known stays, and it is read again', async () => {
    const between = await relay();
    await writer.begin();
    await writer.service(web);
    await writer.finish();
    const reading = await read({ access: await through(between), keepAlive: { time: 200, timeout: 200 } });
    await reading.sink.has(WEB);
    between.freeze();
    await writer.service(db);
    await expect.poll(() => reading.source.details().failures).toBe(1);
    expect(reading.sink.backends).toEqual(WEB);
    between.cut();
    between.thaw();
    await reading.sink.has({ ...WEB, ...DB });
  });
});
