import { expect, onTestFinished, test } from 'vitest';
import { kinds } from '../../src/api/kinds.ts';
import type { Json } from '../../src/api/json.ts';
import type { KubernetesObject } from '../../src/api/object.ts';
import { collectionPath } from '../../src/kube/client/paths.ts';
import { FakeApiServer } from '../../src/kube/testing/fake-api-server.ts';
import { get, type Program } from './program.ts';
import type { Proxy } from './proxy.ts';
import { kubeconfigFor, remoteSecret } from './remote-secret.ts';
import { Cluster, EVENTS, SECRETS, pathOf } from './sources.ts';

const LOCAL = 'outbound|9080||reviews.shop.svc.cluster.local';
const SET = 'outbound|9080||reviews.shop.svc.clusterset.local';
const GROUP = '/apis/multicluster.x-k8s.io';

type Body = KubernetesObject & Json & { readonly metadata: Json };

const meta = (more: object = {}) => ({ namespace: 'shop', name: 'reviews', ...more });

const service = (clusterIP: string, port = 9080) => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: meta(),
  spec: { clusterIP, ports: [{ name: 'http', port }] },
});

const slice = (address: string) => ({
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: meta({ labels: { 'kubernetes.io/service-name': 'reviews' } }),
  addressType: 'IPv4',
  ports: [{ name: 'http', port: 9080, protocol: 'TCP' }],
  endpoints: [{ addresses: [address], conditions: { ready: true } }],
});

const of = (version: string, kind: string, more: object = {}) => ({
  apiVersion: `multicluster.x-k8s.io/${version}`,
  kind,
  metadata: meta(),
  ...more,
});

const spec = { type: 'ClusterSetIP', ips: ['10.5.0.1'], ports: [{ name: 'http', port: 9080 }] };
const imported = of('v1beta1', 'ServiceImport', { spec });
const exported = of('v1beta1', 'ServiceExport');
const EXPORTS = pathOf(exported);

const put = (server: FakeApiServer, ...objects: readonly object[]): void => {
  for (const object of objects as readonly Body[]) server.cluster.apply(pathOf(object), object);
};

/** A cluster that has only the first version of the API. */
async function olderCluster(address: string): Promise<FakeApiServer> {
  const server = await new FakeApiServer().start();
  onTestFinished(() => server.stop());
  for (const kind of kinds) if (kind.multicluster !== true) server.cluster.install(collectionPath(kind), kind.kind);
  server.cluster.install(`${GROUP}/v1alpha1/serviceexports`, 'ServiceExport');
  server.cluster.install(`${GROUP}/v1alpha1/serviceimports`, 'ServiceImport');
  put(server, service('10.9.0.1'), slice(address));
  return server;
}

const exportIn = (server: FakeApiServer): unknown =>
  server.cluster.apply(`${GROUP}/v1alpha1/serviceexports`, of('v1alpha1', 'ServiceExport') as Body);

async function start(settings: Readonly<Record<string, string>> = { multiclusterServices: 'on' }) {
  const own = await Cluster.create();
  own.server.cluster.install(EVENTS, 'Event');
  put(own.server, service('10.0.0.1'), slice('10.1.0.1'));
  const east = await olderCluster('10.2.0.1');
  own.server.cluster.apply(SECRETS, remoteSecret({ east: kubeconfigFor(east.url) }));
  const program = await own.start({ insecureRemoteClusters: 'allow', ...settings });
  return { own, east, program };
}

const has = (proxy: Proxy, cluster: string, ...addresses: readonly string[]) =>
  expect(proxy.endpoints()[cluster]).toEqual(addresses.map((address) => `${address}:9080`));

const conditionsOf = (own: Cluster): Record<string, string> => {
  const { status } = own.object(exported as KubernetesObject) as { readonly status?: { conditions?: Json[] } };
  return Object.fromEntries(
    (status?.conditions ?? []).map(({ type, status: is, reason }) => [type, `${is as string} ${reason as string}`]),
  );
};

const mcsz = async ({ serving }: Program): Promise<unknown> =>
  JSON.parse((await get(serving.ports.health, '/debug/mcsz')).body);

test.each([true, false])(
  'exports and imports of two clusters make a host of the cluster set, and leave the others to each cluster (delta: %s)',
  async (delta) => {
    const { own, east, program } = await start();
    const proxy = await program.connect(delta);
    has(proxy, LOCAL, '10.1.0.1');
    put(own.server, imported);
    await program.sent(proxy, () => has(proxy, SET));
    exportIn(east);
    await program.sent(proxy, () => has(proxy, SET, '10.2.0.1'));
    put(own.server, exported);
    await program.sent(proxy, () => has(proxy, SET, '10.1.0.1', '10.2.0.1'));
    has(proxy, LOCAL, '10.1.0.1');
    expect(proxy.routes('9080')).toMatchObject({ 'reviews.shop.svc.clusterset.local:9080': [`/ -> ${SET}`] });
    expect(await mcsz(program)).toEqual([
      {
        ...{ Cluster: 'Kubernetes', Name: 'reviews', Namespace: 'shop' },
        ...{ Exported: true, Imported: true, ClusterSetVIP: '10.5.0.1' },
        Discoverability: {
          'reviews.shop.svc.cluster.local': 'DiscoverableFromSameCluster',
          'reviews.shop.svc.clusterset.local': 'AlwaysDiscoverable',
        },
      },
      expect.objectContaining({ Cluster: 'east', Exported: true, Imported: false, ClusterSetVIP: '' }),
    ]);
    east.cluster.delete(`${GROUP}/v1alpha1/serviceexports`, 'shop', 'reviews');
    await program.sent(proxy, () => has(proxy, SET, '10.1.0.1'));
  },
);

test('the status of an export in the own cluster says what became of it; nothing is written into others', async () => {
  const { own, east, program } = await start();
  await program.logged('Ready');
  own.server.cluster.delete(pathOf(service('')), 'shop', 'reviews');
  put(own.server, exported);
  await own.changed(() => expect(conditionsOf(own)).toMatchObject({ Valid: 'False NoService', Ready: 'False Failed' }));
  await expect
    .poll(() =>
      own.server.cluster.objects(EVENTS).map(({ reason, regarding }) => [reason, (regarding as Json)['kind']]),
    )
    .toEqual([['NoService', 'ServiceExport']]);
  put(own.server, service('10.0.0.1'));
  const good = { Valid: 'True Valid', Ready: 'True Exported', Conflict: 'False NoConflicts' };
  await own.changed(() => expect(conditionsOf(own)).toEqual(good));
  put(east, service('10.9.0.1', 9081));
  exportIn(east);
  await own.changed(() => expect(conditionsOf(own)).toEqual({ ...good, Conflict: 'True PortConflict' }));
  // Questions about rights are not kept.
  const isQuestion = (path: string): boolean => path.endsWith('/selfsubjectaccessreviews');
  expect(east.cluster.requests.filter(({ method, path }) => method !== 'GET' && !isQuestion(path))).toEqual([]);
});

test('conditions that another program writes are left to it', async () => {
  const { own, program } = await start();
  const accepted = { type: 'Accepted', status: 'Unknown', reason: 'Theirs', message: '' };
  const valid = { type: 'Valid', status: 'False', reason: 'Theirs', message: '' };
  put(own.server, { ...exported, status: { conditions: [accepted, valid] } });
  await program.logged('Ready');
  const expected = { Accepted: 'Unknown Theirs', Valid: 'False Theirs', Ready: 'True Exported' };
  await own.changed(() => expect(conditionsOf(own)).toEqual({ ...expected, Conflict: 'False NoConflicts' }));
});

test('without the setting, no such object is asked for', async () => {
  const { own, east, program } = await start({});
  put(own.server, exported, imported);
  const proxy = await program.connect(true);
  await program.sent(proxy, () => has(proxy, LOCAL, '10.1.0.1', '10.2.0.1'));
  expect(proxy.clusters()).toEqual([LOCAL]);
  const asked = [...own.server.cluster.requests, ...east.cluster.requests].filter(({ path }) => path.startsWith(GROUP));
  expect(asked).toEqual([]);
  expect(own.writes().filter((path) => path.startsWith(EXPORTS))).toEqual([]);
});
