import { describe, expect, test } from 'vitest';
import { SHARDS } from '../objects/services.ts';
import { TestMesh, connectedProxy, readObjects } from '../../../test/harness/mesh.ts';

const services = Array.from(
  { length: 40 },
  (_, i) => `
apiVersion: v1
kind: Service
metadata: { namespace: ${i % 2 === 0 ? 'shop' : 'bank'}, name: s${i} }
spec: { clusterIP: 10.0.0.${i + 1}, ports: [{ name: http, port: 80 }] }
`,
).join('---');

const proxy = connectedProxy('new', { id: 'sidecar~10.1.0.1~new.shop~shop.svc.cluster.local' });

function meshWith(objects: string): TestMesh {
  const mesh = new TestMesh();
  mesh.apply(readObjects(objects));
  return mesh;
}

describe('views built over several commits', () => {
  test('give no world until complete, and then the same one as views built at once', () => {
    const mesh = meshWith(services);
    const { proxies, shardsMade } = mesh.mesh.inputs;
    const views = mesh.mesh.classes.viewsOf(proxy)!;
    mesh.commit([proxies.write(proxy.stream, proxy), shardsMade.write(views, 5)]);
    const lists = [mesh.mesh.members.reduce((sum, members) => sum + members.size, 0)];
    for (const shards of [10, undefined]) {
      expect(mesh.mesh.worldOf(proxy.stream).roots).toEqual([]);
      mesh.commit([shardsMade.write(views, shards)]);
      lists.push(mesh.mesh.members.reduce((sum, members) => sum + members.size, 0));
    }
    expect(lists).toEqual([...new Set(lists)].sort((a, b) => a - b));
    const atOnce = meshWith(services);
    atOnce.connect(proxy);
    expect(mesh.snapshot(proxy.stream)).toEqual(atOnce.snapshot(proxy.stream));
    expect(mesh.mesh.classes.proxiesWith(views)).toBe(1);
  });

  test('are whole, and give a world, before any of them is removed', () => {
    const mesh = meshWith(services);
    mesh.connect(proxy);
    const before = mesh.snapshot(proxy.stream);
    mesh.commit([mesh.mesh.inputs.shardsMade.write(mesh.mesh.classes.viewsOf(proxy)!, SHARDS)]);
    expect(mesh.snapshot(proxy.stream)).toEqual(before);
  });

  test('change nothing for other proxies', () => {
    const mesh = meshWith(services);
    const router = connectedProxy('router', { id: 'router~10.1.0.2~router.shop~shop.svc.cluster.local' });
    mesh.connect(proxy);
    const before = mesh.snapshot(proxy.stream);
    const { proxies, shardsMade } = mesh.mesh.inputs;
    mesh.commit([proxies.write(router.stream, router), shardsMade.write(mesh.mesh.classes.viewsOf(router)!, 5)]);
    expect(mesh.snapshot(proxy.stream)).toEqual(before);
    expect(mesh.mesh.worldOf(router.stream).roots).toEqual([]);
  });
});
