import { rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { kinds } from '../../src/api/kinds.ts';
import type { KubernetesObject } from '../../src/api/object.ts';
import { temporaryDirectory } from '../../src/directory/testing/temporary-directory.ts';
import { collectionPath } from '../../src/kube/client/paths.ts';
import { FakeApiServer } from '../../src/kube/testing/fake-api-server.ts';
import type { Json } from '../../src/api/json.ts';
import { get, type Program } from './program.ts';
import type { Proxy } from './proxy.ts';
import { kubeconfigFor, remoteSecret } from './remote-secret.ts';
import { Cluster, Directory, EVENTS, pathOf, SECRETS } from './sources.ts';

const REVIEWS = 'outbound|9080||reviews.shop.svc.cluster.local';

const service = (clusterIP: string) => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { namespace: 'shop', name: 'reviews' },
  spec: { clusterIP, ports: [{ name: 'http', port: 9080 }] },
});

const slice = (...addresses: readonly string[]) => ({
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: { namespace: 'shop', name: 'reviews-1', labels: { 'kubernetes.io/service-name': 'reviews' } },
  addressType: 'IPv4',
  ports: [{ name: 'http', port: 9080, protocol: 'TCP' }],
  endpoints: addresses.map((address) => ({ addresses: [address], conditions: { ready: true } })),
});

type Body = KubernetesObject & Json & { readonly metadata: Json };

function put(server: FakeApiServer, ...objects: readonly object[]): void {
  for (const object of objects as readonly Body[]) server.cluster.apply(pathOf(object), object);
}

async function otherCluster(...addresses: readonly string[]): Promise<FakeApiServer> {
  const server = await new FakeApiServer().start();
  onTestFinished(() => server.stop());
  for (const kind of kinds) server.cluster.install(collectionPath(kind), kind.kind);
  put(server, service('10.9.0.1'), slice(...addresses));
  return server;
}

async function start(): Promise<{ own: Cluster; program: Program }> {
  const own = await Cluster.create();
  put(own.server, service('10.0.0.1'), slice('10.1.0.1'));
  const program = await own.start({ insecureRemoteClusters: 'allow' });
  return { own, program };
}

const apply = (own: Cluster, secret: Body): unknown => own.server.cluster.apply(SECRETS, secret);

const clusterz = async ({ serving }: Program): Promise<readonly Json[]> =>
  JSON.parse((await get(serving.ports.health, '/debug/clusterz')).body) as Json[];

const endpointsOf = (proxy: Proxy): readonly string[] => proxy.endpoints()[REVIEWS] ?? [];

const has = (proxy: Proxy, ...addresses: readonly string[]) =>
  expect(endpointsOf(proxy)).toEqual(addresses.map((address) => `${address}:9080`));

test.each([true, false])(
  'a Secret brings the endpoints of another cluster, a change of it swaps them, and its end takes them away (delta: %s)',
  async (delta) => {
    const { own, program } = await start();
    const proxy = await program.connect(delta);
    has(proxy, '10.1.0.1');
    const east = await otherCluster('10.2.0.1');
    apply(own, remoteSecret({ east: kubeconfigFor(east.url) }));
    await program.sent(proxy, () => has(proxy, '10.1.0.1', '10.2.0.1'));
    expect(await clusterz(program)).toMatchObject([
      { id: 'Kubernetes', secretName: '', syncStatus: 'synced' },
      {
        ...{ id: 'east', secretName: 'istio-system/remote', syncStatus: 'synced', phase: 'synced' },
        objects: { Service: 1, EndpointSlice: 1 },
      },
    ]);
    put(east, slice('10.2.0.1', '10.2.0.2'));
    await program.sent(proxy, () => has(proxy, '10.1.0.1', '10.2.0.1', '10.2.0.2'));

    const moved = await otherCluster('10.3.0.1');
    apply(own, remoteSecret({ east: kubeconfigFor(moved.url) }));
    const seen: (readonly string[])[] = [];
    await program.sent(proxy, () => {
      seen.push(endpointsOf(proxy));
      has(proxy, '10.1.0.1', '10.3.0.1');
    });
    // Never without any of the other cluster.
    for (const endpoints of seen) expect(endpoints.length).toBeGreaterThan(1);
    put(east, slice('10.2.0.9'));

    own.server.cluster.delete(SECRETS, 'istio-system', 'remote');
    await program.sent(proxy, () => has(proxy, '10.1.0.1'));
    expect((await clusterz(program)).filter(({ phase }) => phase !== 'closing')).toHaveLength(1);
  },
);

test('a cluster that cannot be reached keeps what was known, and everyone can see why', async () => {
  const { own, program } = await start();
  const proxy = await program.connect(true);
  const east = await otherCluster('10.2.0.1');
  apply(own, remoteSecret({ east: kubeconfigFor(east.url) }));
  await program.sent(proxy, () => has(proxy, '10.1.0.1', '10.2.0.1'));
  await east.stop();
  await program.logged('API server: unreachable');
  await expect.poll(() => clusterz(program)).toMatchObject([{}, { trouble: { reason: expect.any(String) as string } }]);
  has(proxy, '10.1.0.1', '10.2.0.1');
  put(own.server, slice('10.1.0.2'));
  await program.sent(proxy, () => has(proxy, '10.1.0.2', '10.2.0.1'));
});

test('a Secret that cannot be used leaves the former in place, and says why in an Event and in clusterz', async () => {
  const { own, program } = await start();
  own.server.cluster.install(EVENTS, 'Event');
  const proxy = await program.connect(true);
  const east = await otherCluster('10.2.0.1');
  apply(own, remoteSecret({ east: kubeconfigFor(east.url) }));
  await program.sent(proxy, () => has(proxy, '10.1.0.1', '10.2.0.1'));
  apply(own, remoteSecret({ east: kubeconfigFor(east.url, { exec: { command: 'sh' } }), west: 'x' }));
  await program.logged('Secret of a remote cluster refused');
  has(proxy, '10.1.0.1', '10.2.0.1');
  const refusal = 'data[east].users[0].user.exec would run a program; use a token or a client certificate';
  expect(await clusterz(program)).toMatchObject([
    {},
    { id: 'east', phase: 'synced', refusals: [`Secret istio-system/remote: ${refusal}`] },
    { id: 'west', phase: 'refused', syncStatus: 'closed' },
  ]);
  await expect
    .poll(() => own.server.cluster.objects(EVENTS).map(({ note }) => note))
    .toEqual(expect.arrayContaining([refusal]));
});

test('proxies wait for clusters that are known at the start, but not for ever', async () => {
  const own = await Cluster.create();
  put(own.server, service('10.0.0.1'), slice('10.1.0.1'));
  const east = await otherCluster('10.2.0.1');
  const away = await otherCluster('10.3.0.1');
  await away.stop();
  apply(own, remoteSecret({ east: kubeconfigFor(east.url), away: kubeconfigFor(away.url) }));
  const program = await own.start({ insecureRemoteClusters: 'allow' });
  await expect.poll(async () => (await get(program.serving.ports.health, '/ready')).body).toMatch(/^[^]*cluster away/);
  program.clock.skip(31_000);
  const proxy = await program.connect(true);
  has(proxy, '10.1.0.1', '10.2.0.1');
  expect((await clusterz(program)).map(({ syncStatus }) => syncStatus)).toEqual(['synced', 'timeout', 'synced']);
});

/** Puts it in its place at once. */
async function writeAtOnce(directory: string, name: string, text: string): Promise<void> {
  await writeFile(join(directory, `.${name}`), text);
  await rename(join(directory, `.${name}`), join(directory, name));
}

test.each(['cluster', 'directory'] as const)(
  'kubeconfigs in files name clusters, beside an own %s, and changes of them are followed',
  async (kind) => {
    const files = await temporaryDirectory();
    const own = kind === 'cluster' ? await Cluster.create() : await Directory.create();
    await own.apply(service('10.0.0.1') as KubernetesObject, slice('10.1.0.1') as KubernetesObject);
    const program = await own.start({ insecureRemoteClusters: 'allow', remoteKubeconfigs: files });
    const proxy = await program.connect(true);
    has(proxy, '10.1.0.1');
    const east = await otherCluster('10.2.0.1');
    await writeAtOnce(files, 'some-name', kubeconfigFor(east.url, { token: 't' }, 'east'));
    await program.sent(proxy, () => has(proxy, '10.1.0.1', '10.2.0.1'));

    // Another one with its name comes too late; a mistake changes nothing.
    await writeAtOnce(files, 'another', kubeconfigFor('http://127.0.0.1:1', { token: 't' }, 'east'));
    await program.logged('File with a kubeconfig refused');
    await writeAtOnce(files, 'some-name', kubeconfigFor(east.url, { tokenFile: '/token' }, 'east'));
    await program.logged('File with a kubeconfig refused', 2);
    has(proxy, '10.1.0.1', '10.2.0.1');
    expect(await clusterz(program)).toMatchObject([
      {},
      {
        ...{ id: 'east', phase: 'synced', secretName: join(files, 'some-name') },
        refusals: [
          `File ${join(files, 'some-name')}: users[0].user.tokenFile names a file; use token`,
          `File ${join(files, 'another')}: is ignored: the file ${join(files, 'some-name')} has this cluster; delete one of them`,
        ],
      },
    ]);

    const moved = await otherCluster('10.3.0.1');
    await writeAtOnce(files, 'some-name', kubeconfigFor(moved.url, { token: 't' }, 'east'));
    await program.sent(proxy, () => has(proxy, '10.1.0.1', '10.3.0.1'));
    await rm(join(files, 'another'));
    await rm(join(files, 'some-name'));
    await program.sent(proxy, () => has(proxy, '10.1.0.1'));
    const { body } = await get(program.serving.ports.monitoring, '/metrics');
    expect(body).toMatch(/^remote_cluster_secret_events_total\{event="add"\} 2$/m);
    expect(body).toMatch(/^istiod_managed_clusters\{cluster_type="remote"\} 0$/m);
  },
);

test('a cluster whose WorkloadEntries and mesh config may not be read is served without them, and that is said', async () => {
  const { own, program } = await start();
  const proxy = await program.connect(true);
  const east = await otherCluster('10.2.0.1');
  const optional = kinds.filter(({ name }) => name === 'ConfigMap' || name === 'WorkloadEntry');
  for (const kind of optional) east.cluster.denied.add(collectionPath(kind));
  apply(own, remoteSecret({ east: kubeconfigFor(east.url) }));
  await program.sent(proxy, () => has(proxy, '10.1.0.1', '10.2.0.1'));
  expect(await clusterz(program)).toMatchObject([
    {},
    {
      ...{ id: 'east', phase: 'synced' },
      trouble: { reason: expect.stringMatching(/^ConfigMap, WorkloadEntry: 403 .*\(allow the account/) as string },
    },
  ]);
  east.cluster.denied.clear();
  put(east, {
    apiVersion: 'networking.istio.io/v1',
    kind: 'WorkloadEntry',
    metadata: { namespace: 'shop', name: 'vm', labels: { app: 'reviews' } },
    spec: { address: '10.2.0.2' },
  });
  put(east, { ...service('10.9.0.1'), spec: { ...service('10.9.0.1').spec, selector: { app: 'reviews' } } });
  await program.sent(proxy, () => has(proxy, '10.1.0.1', '10.2.0.1', '10.2.0.2'));
});
