import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import type { KubernetesObject } from '../../src/api/object.ts';
import type { ClusterReport } from '../../src/debug/cluster-report.ts';
import { temporaryDirectory } from '../../src/directory/testing/temporary-directory.ts';
import type { EtcdConnection } from '../../src/etcd/connection.ts';
import { keysUnder } from '../../src/etcd/keys.ts';
import { type KeyValue, range } from '../../src/etcd/messages.ts';
import { afterSuite } from '../../src/testing/on-end.ts';
import { object } from '../features/objects.ts';
import { get, Program } from '../features/program.ts';
import { borrowApiServer, type BorrowedApiServer } from '../peers/borrowed-api-server.ts';
import { type RunningEtcd, startEtcd } from '../peers/etcd.ts';
import { withPeers } from '../peers/with-peers.ts';
import { configurationOf } from './configuration.ts';
import { type Reading, startReading } from './mesh-lab.ts';
import { grantAsCilium } from './rights.ts';

const PATIENCE = 60_000;
const SERVICE = 'cilium/state/services/v1/home/shop/reviews';

const service = (global: boolean): KubernetesObject => {
  const made = object('v1', 'Service', 'reviews', { spec: { ports: [{ name: 'http', port: 80, targetPort: 8080 }] } });
  return { ...made, metadata: { ...made.metadata, annotations: { 'service.cilium.io/global': String(global) } } };
};

function slice(...addresses: readonly string[]): KubernetesObject {
  const made = object('discovery.k8s.io/v1', 'EndpointSlice', 'reviews-1', {
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
    endpoints: addresses.map((address) => ({ addresses: [address], conditions: { ready: true } })),
  });
  return { ...made, metadata: { ...made.metadata, labels: { 'kubernetes.io/service-name': 'reviews' } } };
}

withPeers(['etcd', 'kube-apiserver', 'kubectl'], 'two replicas that export to a real etcd', () => {
  const onEnd = afterSuite();
  let [server, etcd, admin] = [] as unknown as [BorrowedApiServer, RunningEtcd, EtcdConnection];
  let [first, second, reading] = [] as unknown as [Program, Program, Reading];

  const apply = (...items: readonly KubernetesObject[]): Promise<string> =>
    server.apply(JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
  const stored = async (): Promise<readonly KeyValue[]> => {
    const { key, end } = keysUnder('cilium/');
    const request = { key, ...(end !== undefined && { rangeEnd: end }) };
    return (await admin.call(range, request, { signal: new AbortController().signal })).kvs;
  };
  const exported = async ({ serving: { ports } }: Program): Promise<ClusterReport['clusterMeshExport']> => {
    const { body } = await get(ports.health, '/debug/clusterz');
    return (JSON.parse(body) as readonly ClusterReport[])[0]?.clusterMeshExport;
  };
  const metrics = async ({ serving: { ports } }: Program): Promise<readonly string[]> => {
    const { body } = await get(ports.monitoring, '/metrics');
    return body.split('\n').filter((line) => line.startsWith('fairlead_clustermesh_export_'));
  };

  beforeAll(async () => {
    const prepare = (root: EtcdConnection): Promise<void> => grantAsCilium(root, 'home');
    [server, etcd] = await Promise.all([borrowApiServer(), startEtcd({ prepare })]);
    onEnd(() => server.stop());
    onEnd(() => etcd.stop());
    admin = await etcd.connect('admin-home');
    for (const name of ['istio-system', 'shop'])
      await apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    await apply(service(true), slice('10.1.0.1'));
    const file = join(await temporaryDirectory(onEnd), 'export');
    await writeFile(file, configurationOf(await etcd.access('admin-home')));
    const start = (identity: string): Promise<Program> =>
      Program.start(
        { kubeconfig: [server.kubeconfig], clustermeshName: 'home', clustermeshId: '7', clustermeshExport: file },
        { identity, onEnd },
      );
    first = await start('istio-system/one');
    await first.logged('Global services are written');
    second = await start('istio-system/two');
    await second.logged('Ready');
    reading = startReading('home', await etcd.access('remote'));
    onEnd(() => reading.end());
  }, 2 * PATIENCE);

  const has = (...addresses: readonly string[]): Promise<void> =>
    reading.sink.has(addresses.length === 0 ? {} : { 'shop/reviews': addresses.map((each) => `${each}:8080`) });

  test('the one that leads tells the other clusters what the API server has', async () => {
    await has('10.1.0.1');
    await apply(slice('10.1.0.1', '10.1.0.2'));
    await has('10.1.0.1', '10.1.0.2');
    const endpoint = `https://127.0.0.1:${etcd.port}`;
    await expect.poll(() => exported(first)).toMatchObject({ phase: 'written', endpoint, keys: 7, pending: 0 });
    expect(await exported(second)).toMatchObject({ phase: 'standby', keys: 0 });
    expect(await metrics(first)).toEqual([
      'fairlead_clustermesh_export_connected 1',
      'fairlead_clustermesh_export_keys{state="written"} 7',
      'fairlead_clustermesh_export_keys{state="pending"} 0',
      'fairlead_clustermesh_export_keys{state="refused"} 0',
    ]);
    expect(await metrics(second)).toContain('fairlead_clustermesh_export_connected 0');
  });

  test('when it ends, the next goes on with the same keys, and takes away what is not to be there any more', async () => {
    const before = new Map((await stored()).map(({ key, version }) => [key, version]));
    await first.stop();
    await second.logged('Global services are written');
    const after = await stored();
    expect(after.map(({ key }) => key)).toEqual([...before.keys()]);
    // The version of a key that was deleted begins anew.
    expect(after.filter(({ key, version }) => version <= before.get(key)!)).toEqual([]);
    await apply(slice('10.1.0.3'));
    await has('10.1.0.3');
    await apply(service(false));
    await has();
    const keys = (await stored()).map(({ key }) => key);
    expect(keys).toEqual([...before.keys()].filter((key) => key !== SERVICE));
    expect(await exported(second)).toMatchObject({ phase: 'written', keys: 6, pending: 0 });
  });

  test('an etcd that is away is said where people look', async () => {
    await etcd.kill();
    await second.logged('Global services cannot be written');
    expect(await exported(second)).toMatchObject({ phase: 'connecting', trouble: { reason: expect.any(String) } });
    expect(await metrics(second)).toContain('fairlead_clustermesh_export_connected 0');
    await apply(service(true));
    await etcd.start();
    await has('10.1.0.3');
  });
});
