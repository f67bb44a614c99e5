import { expect, test } from 'vitest';
import type { KubernetesObject } from '../../src/api/object.ts';
import { collectionPath } from '../../src/kube/client/paths.ts';
import { meshConfig, namespace, pod } from './objects.ts';
import { get, type Program } from './program.ts';
import { secureCluster } from './secure-cluster.ts';
import { clusterOf, ratings, reviews, rule, split, splitRoutes, REVIEWS } from './shop.ts';
import { Cluster, Directory } from './sources.ts';

const CONFIG_MAPS = collectionPath({ group: '', version: 'v1', plural: 'configmaps' });
const selecting = meshConfig('discoverySelectors: [{ matchLabels: { mesh: "in" } }]');
const shop = (labels: object): KubernetesObject => namespace('shop', { labels }) as KubernetesObject;

const clusterz = async ({ serving }: Program): Promise<unknown> =>
  JSON.parse((await get(serving.ports.health, '/debug/clusterz')).body);

const sources = [
  ['a directory', () => Directory.create()],
  ['an API server', () => Cluster.create()],
] as const;

test.each(sources)('from %s, a namespace is in the mesh while its labels are selected', async (_, create) => {
  const source = await create();
  await source.apply(shop({ mesh: 'in' }), selecting, ...reviews, ...ratings, rule, split(80, 20));
  const program = await source.start();
  const proxy = await program.connect(true);
  const all = [clusterOf(), clusterOf('ratings'), clusterOf('reviews', 'v1'), clusterOf('reviews', 'v2')].sort();
  expect(proxy.clusters()).toEqual(all);

  await program.settled();
  const { Pod, Service, EndpointSlice, VirtualService, DestinationRule } = program.serving.engine.mesh.inputs.objects;
  const kinds = [Pod, Service, EndpointSlice, VirtualService, DestinationRule];
  const inMesh = program.seen(() => kinds.reduce((sum, { size }) => sum + size, 0));
  await source.apply(shop({ mesh: 'out' }));
  await program.sent(proxy, () => expect(proxy.clusters()).toEqual([]));
  // In one commit.
  expect(inMesh).toEqual([8, 0]);
  expect(await clusterz(program)).toMatchObject([{ leftOut: { namespaces: 1, names: ['shop'], objects: 8 } }]);

  await source.apply(shop({ mesh: 'in' }));
  await program.sent(proxy, () => {
    expect(proxy.clusters()).toEqual(all);
    expect(proxy.routes('80')[REVIEWS]).toEqual(splitRoutes(80, 20));
  });
  await source.apply(meshConfig('discoverySelectors: [{ matchLabels: { mesh: "other" } }]'));
  await program.sent(proxy, () => expect(proxy.clusters()).toEqual([]));
  await source.apply(meshConfig('{}'));
  await program.sent(proxy, () => expect(proxy.clusters()).toEqual(all));
});

test.each(sources)(
  'from %s, a revision has the mesh config that is called like it, else that of all',
  async (_, create) => {
    const source = await create();
    const canary = (text: string): KubernetesObject => meshConfig(text, 'istio-canary');
    await source.apply(...reviews, meshConfig('connectTimeout: 3s'), meshConfig('connectTimeout: 9s', 'istio-other'));
    const program = await source.start({ revision: 'canary' });
    const proxy = await program.connect(true);
    const timeout = () => proxy.cluster(clusterOf()).connectTimeout?.seconds;
    expect(timeout()).toBe('3');
    const becomes = (seconds: string) => program.sent(proxy, () => expect(timeout()).toBe(seconds));
    await source.apply(canary('connectTimeout: 5s'));
    await becomes('5');
    // Neither another version of the one that does not count matters, nor a mistake in the one that does.
    await source.apply(meshConfig('connectTimeout: 4s'), canary('connectTimeout: ['));
    await program.reported('ConfigMap/istio-system/istio-canary');
    await program.settled();
    expect(timeout()).toBe('5');
    // Selectors are read elsewhere than the rest.
    await source.apply(canary('discoverySelectors: [{ matchLabels: { mesh: "in" } }]'));
    await program.sent(proxy, () => expect(proxy.clusters()).toEqual([]));
    await source.delete(canary(''));
    await program.sent(proxy, () => expect(proxy.clusters()).toEqual([clusterOf()]));
    expect(timeout()).toBe('4');
    await source.delete(meshConfig(''));
    await program.reported('ConfigMap/istio-system/istio');
    await program.settled();
    expect(timeout()).toBe('4');
  },
);

test('namespaces that are not selected get no roots, and what happens there changes nothing', async () => {
  const made = await secureCluster();
  const labelled = (name: string, mesh: string) => namespace(name, { labels: { mesh } }) as KubernetesObject;
  await made.apply(labelled('shop', 'in'), labelled('away', 'out'), selecting);
  const program = await made.start();
  await program.logged('Signing certificates');
  const roots = (of: string): unknown => made.server.cluster.object(CONFIG_MAPS, of, 'istio-ca-root-cert');
  await expect.poll(() => roots('shop')).toBeDefined();
  await made.apply({ ...pod('p', '10.1.0.1', {}), metadata: { name: 'p', namespace: 'away' } });
  await expect.poll(() => clusterz(program)).toMatchObject([{ leftOut: { names: ['away'], objects: 1 } }]);
  const { Pod } = program.serving.engine.mesh.inputs.objects;
  expect(Pod.size).toBe(0);
  expect(roots('away')).toBeUndefined();
  await made.apply(labelled('away', 'in'));
  await program.committed(() => expect(Pod.size).toBe(1));
  await expect.poll(() => roots('away')).toBeDefined();
});
