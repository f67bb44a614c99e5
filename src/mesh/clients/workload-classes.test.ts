import { beforeEach, expect, test, vi } from 'vitest';
import type { KubernetesObject } from '../../api/object.ts';
import { Derived } from '../../cache/derived.ts';
import { MeshLab, objectOf, proxy, service } from '../../../test/harness/lab.ts';

const REPLICAS = 20;

let lab: MeshLab;
/** Of the last change: how often each collection ran. */
let runs: ReadonlyMap<string, number>;

const backend = (spec: object = {}): KubernetesObject => service('shop/a', { selector: { app: 'a' }, ...spec });

/** Replicas of a StatefulSet: each has labels of its own. */
const replicas = Array.from({ length: REPLICAS }, (_, i) =>
  proxy(`a${i}.shop`, { app: 'a', 'statefulset.kubernetes.io/pod-name': `a-${i}` }),
);

beforeEach(() => {
  lab = new MeshLab([backend()], replicas);
});

function change(object: KubernetesObject): void {
  const counts = new Map<string, number>();
  const execute = vi.spyOn(Derived.prototype as unknown as { execute: (key: string) => unknown }, 'execute');
  // Without the comparison with a mesh from scratch, which runs everything.
  const { oracle } = lab;
  Object.assign(lab, { oracle: false });
  lab.apply([object]);
  Object.assign(lab, { oracle });
  for (const collection of execute.mock.contexts as { name: string }[])
    counts.set(collection.name, (counts.get(collection.name) ?? 0) + 1);
  execute.mockRestore();
  runs = counts;
}

const size = (collection: string): number => lab.size(collection);

test('replicas are one class, whatever labels they have that no Service selects by', () => {
  expect(size('workloadClasses')).toBe(1);
  lab.join([proxy('b.shop', { app: 'b' })]);
  expect(size('workloadClasses')).toBe(2);
  lab.apply([service('shop/one', { selector: { 'statefulset.kubernetes.io/pod-name': 'a-1' } })]);
  expect(size('workloadClasses')).toBe(3);
});

test('a value that no selector asks for splits nobody, whatever proxies say of themselves', () => {
  lab.join(Array.from({ length: REPLICAS }, (_, i) => proxy(`x${i}.shop`, { app: `made-up-${i}` })));
  expect(size('workloadClasses')).toBe(2);
});

test('an edit of a Service runs once for all replicas, and moves none of them to another world', () => {
  change(backend({ ports: [{ name: 'http', port: 80, targetPort: 8081 }] }));
  expect(runs.get('inboundTargets')).toBe(1);
  expect(runs.get('resolvedProxies')).toBeUndefined();
  expect(lab.last.worlds).toEqual([]);
  expect(lab.changed).toContain('Cluster inbound|8081||');
});

test('ports of a headless Service change what replicas are not given', () => {
  change(backend({ clusterIP: 'None', ports: [{ name: 'tcp', port: 3306 }] }));
  expect(lab.last.worlds).toHaveLength(REPLICAS);
  expect(lab.mesh.worldOf('a0.shop').excluded).toEqual(['10.1.0.1_3306']);
  change(backend({ clusterIP: 'None', ports: [{ name: 'tcp', port: 3306, targetPort: 3307 }] }));
  expect(lab.last.worlds).toEqual([]);
});

test('a port that no Service names splits nobody', () => {
  const ports = (name: string) => ({ POD_PORTS: JSON.stringify([{ name, containerPort: 9000 }]) });
  const labels = { app: 'a' };
  lab.join([proxy('p.shop', labels, ports('metrics')), proxy('q.shop', labels, ports('admin'))]);
  expect(size('workloadClasses')).toBe(2);
  lab.apply([backend({ ports: [{ name: 'http', port: 80, targetPort: 'admin' }] })]);
  expect(size('workloadClasses')).toBe(3);
  expect(lab.json('q.shop').cds).toContainEqual(expect.objectContaining({ name: 'inbound|9000||' }));
});

test('an inline endpoint of a ServiceEntry makes the workload at its address a class of its own', () => {
  lab.apply([
    objectOf('ServiceEntry', 'shop/vm', {
      spec: {
        hosts: ['vm.example.com'],
        ports: [{ number: 7000, name: 'tcp', protocol: 'TCP' }],
        resolution: 'STATIC',
        endpoints: [{ address: '10.1.0.1' }],
      },
    }),
  ]);
  expect(lab.json('a0.shop').cds).toContainEqual(expect.objectContaining({ name: 'inbound|7000||' }));
});
