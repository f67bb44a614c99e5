import { expect, test } from 'vitest';
import { TestMesh, connectedProxy, readObjects } from '../../test/harness/mesh.ts';

const service = `
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {clusterIP: 10.96.0.5, ports: [{name: http, port: 80}]}
---`;

function entry(addresses: string, namespace = 'other'): string {
  return `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: e, namespace: ${namespace}}
spec:
  hosts: [e.example.com]
  addresses: [${addresses}]
  resolution: STATIC
  ports: [{number: 80, name: tcp, protocol: TCP}]
  endpoints: [{address: 192.0.2.1}]
---`;
}

function listenersOf(mesh: TestMesh): string[] {
  return mesh.snapshot('client').lds.flatMap(({ name }) => (/^(10\.|0\.0\.0\.0_80)/.test(name) ? [name] : []));
}

function problemsOf(mesh: TestMesh): string[] {
  return [...mesh.mesh.problems.byObject.entries()].flatMap(([, found]) =>
    found.map(({ reason, field, message }) => `${reason} ${field}: ${message}`),
  );
}

function meshWith(yaml: string): TestMesh {
  const mesh = new TestMesh();
  mesh.connect(connectedProxy('client', { id: 'sidecar~10.1.0.1~client.app~app.svc.cluster.local' }));
  mesh.apply(readObjects(yaml));
  return mesh;
}

test('a Service keeps its address, whichever was there first, and the owner of a ServiceEntry with it reads so', () => {
  const mesh = meshWith(entry('10.9.9.9, 10.96.0.5'));
  expect(listenersOf(mesh)).toEqual(['10.9.9.9_80', '10.96.0.5_80']);
  mesh.apply(readObjects(service));
  expect(listenersOf(mesh)).toEqual(['0.0.0.0_80', '10.9.9.9_80']);
  expect(problemsOf(mesh)).toEqual([
    'Conflicted spec.addresses[1]: 10.96.0.5 belongs to Service/shop/web, which keeps it; name another address.',
  ]);
  mesh.delete(readObjects(service));
  expect(listenersOf(mesh)).toEqual(['10.9.9.9_80', '10.96.0.5_80']);
  expect(problemsOf(mesh)).toEqual([]);
});

test('a ServiceEntry that loses all of its addresses does not stand for all others instead', () => {
  const mesh = meshWith(service + entry('10.96.0.5'));
  expect(listenersOf(mesh)).toEqual(['0.0.0.0_80']);
  expect(mesh.snapshot('client').cds.map(({ name }) => name)).not.toContain('outbound|80||e.example.com');
  expect(problemsOf(mesh)).toEqual([expect.stringContaining('the ServiceEntry is left out')]);
});

test('in its own namespace a ServiceEntry may take the address', () => {
  const mesh = meshWith(service + entry('10.96.0.5', 'shop'));
  expect(listenersOf(mesh)).toContain('10.96.0.5_80');
  expect(problemsOf(mesh)).toEqual([]);
});
