import { expect, test } from 'vitest';
import { testProtos } from '../../test/harness/mesh.ts';
import { ContentHasher } from '../ads/store/content-hash.ts';
import { Store } from '../ads/store/store.ts';
import type { KubernetesObject } from '../api/object.ts';
import { snapshotOf } from '../debug/snapshot.ts';
import { MeshLab, proxy, route, rule, service, slice, sidecar } from '../../test/harness/lab.ts';

const objects = [
  service('shop/a', { selector: { app: 'a' } }),
  slice('shop/a', '10.0.1.1'),
  service('shop/b'),
  slice('shop/b', '10.0.2.1'),
  service('other/c'),
  rule('shop/a', 'a'),
  route('shop/a', 'a', 'b'),
  sidecar('narrow/s', 'shop/a.shop.svc.cluster.local'),
];

function labOf(): MeshLab {
  return new MeshLab(objects, [proxy('x.shop'), proxy('x.other'), proxy('x.narrow'), proxy('a.shop', { app: 'a' })]);
}

const a = 'a.shop.svc.cluster.local';

test('a change of endpoints changes the assignments of their service', () => {
  const lab = labOf();
  lab.apply([slice('shop/a', '10.0.1.1', '10.0.1.2')]);
  // The subset has none of them.
  expect(lab.changed).toEqual([`ClusterLoadAssignment outbound|80||${a}`]);
  expect(lab.last).toMatchObject({ lists: [], worlds: [] });
});

test('the first endpoint of a service changes its assignment alone', () => {
  const lab = labOf();
  lab.apply([slice('other/c', '10.0.3.1')]);
  expect(lab.changed).toEqual(['ClusterLoadAssignment outbound|80||c.other.svc.cluster.local']);
});

test('a change of a VirtualService changes the tables that hold it', () => {
  const lab = labOf();
  lab.apply([route('shop/a', 'a', 'b', {}, { uri: { prefix: '/x' } })]);
  expect(lab.changed).toEqual(['RouteConfiguration 80']);
  // One for each scope: shop, other, narrow.
  expect(lab.last.members).toHaveLength(3);
  expect(lab.last).toMatchObject({ lists: [], worlds: [] });
});

test('a change of a rule changes the clusters of its host', () => {
  const lab = labOf();
  lab.apply([rule('shop/a', 'a', { trafficPolicy: { connectionPool: { tcp: { maxConnections: 7 } } } })]);
  expect(lab.changed).toEqual([
    // What a workload serves has limits of the rule for its Service, too.
    'Cluster inbound|80||',
    `Cluster outbound|80|v1|${a}`,
    `Cluster outbound|80||${a}`,
  ]);
});

test('labels and annotations of a Service that mean nothing change nothing', () => {
  const lab = labOf();
  lab.apply([service('shop/a', { selector: { app: 'a' } }, { labels: { team: 'x' }, annotations: { note: 'y' } })]);
  expect(lab.last).toEqual({ members: [], lists: [], worlds: [] });
});

test('a Service that comes adds what is its own, and a place in the tables', () => {
  const lab = labOf();
  lab.apply([service('shop/d')]);
  const host = 'd.shop.svc.cluster.local';
  expect(lab.changed).toEqual([
    `Cluster outbound|80||${host}`,
    `ClusterLoadAssignment outbound|80||${host}`,
    'RouteConfiguration 80',
  ]);
  lab.delete([service('shop/d')]);
  expect(lab.changed).toEqual([
    `Cluster outbound|80||${host}`,
    `ClusterLoadAssignment outbound|80||${host}`,
    'RouteConfiguration 80',
  ]);
  expect(lab.faults('x.other')).toEqual([]);
});

test('what a Service selects changes what its workloads serve, and nothing for their clients', () => {
  const lab = labOf();
  lab.apply([service('shop/b', { selector: { app: 'a' }, ports: [{ name: 'http', port: 80, targetPort: 8081 }] })]);
  // It is in the list that its proxy sees already.
  expect(lab.last.worlds).toEqual([]);
  expect(lab.changed).toContain('Cluster inbound|8081||');
  expect(lab.changed.filter((name) => !name.includes('inbound') && !name.includes('Inbound'))).toEqual([]);
});

test('a proxy like another one changes nothing but its own world', () => {
  const lab = labOf();
  lab.connect(proxy('y.shop'));
  expect(lab.last.members).toEqual([]);
  expect(lab.last.worlds).toEqual([{ stream: 'y.shop', world: lab.mesh.worldOf('x.shop') }]);
  lab.disconnect('y.shop');
  expect(lab.last).toEqual({ members: [], lists: [], worlds: [{ stream: 'y.shop' }] });
});

test('the last proxy of a scope takes its resources with it', () => {
  const lab = labOf();
  lab.disconnect('x.narrow');
  expect(lab.last.members.length).toBeGreaterThan(0);
  expect(lab.last.members.every(({ resource }) => resource === undefined)).toBe(true);
  const left = lab.mesh.members.flatMap((members) => [...members.entries()].map(([, { list }]) => list));
  expect(left.filter((list) => list.includes('narrow'))).toEqual([]);
});

test('a proxy that describes itself wrongly is refused with a reason', () => {
  const lab = labOf();
  const wrong = { ...proxy('w.shop'), nodeId: 'sidecar~10.1.0.1~w.shop' };
  lab.connect(wrong);
  expect(lab.last.worlds).toMatchObject([
    { stream: 'w.shop', error: expect.stringContaining('sidecar~10.1.0.1~w.shop') },
  ]);
  expect(lab.mesh.worldOf('w.shop')).toEqual({ roots: [], qualifiers: [] });
});

test.each(['before it took anything', 'after it took everything'])(
  'a store that missed a publication, because it threw %s, has it all with the next one',
  (when) => {
    const lab = new MeshLab();
    const store = new Store(new ContentHasher([1, 2]));
    let failing = false;
    const fail = (at: string): void => {
      if (failing && at === when) throw new Error('a bug of the store');
    };
    lab.graph.observe((draft) => {
      const publication = lab.mesh.publicationOf(draft);
      fail('before it took anything');
      store.apply(publication);
      fail('after it took everything');
    });
    const write = (...objects: readonly KubernetesObject[]): void =>
      void lab.graph.commit(
        objects.map((object) =>
          lab.mesh.inputs.objects[object.kind as 'Service'].write(
            `Kubernetes/${object.metadata.namespace}/${object.metadata.name}`,
            object as never,
          ),
        ),
      );
    const held = (): unknown => snapshotOf(store, lab.mesh.worldOf('x.shop'), testProtos());
    lab.join([proxy('x.shop')]);
    write(service('shop/a'), service('shop/b'), route('shop/a', 'a', 'b'));
    failing = true;
    write(route('shop/a', 'a', 'a'), service('shop/c'));
    write(service('other/d'));
    failing = false;
    lab.graph.commit([]);
    expect(held()).toEqual(lab.snapshot('x.shop'));
    expect(lab.graph.failures.size).toBe(0);
  },
);
