import { describe, expect, test } from 'vitest';
import { TestMesh, connectedProxy, readObjects } from '../../../test/harness/mesh.ts';

const service = `
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {clusterIP: 10.96.0.5, ports: [{name: http, port: 80}]}
---`;

function entry(addresses: string, namespace = 'other', protocol = 'TCP', port = 80): string {
  return `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: e, namespace: ${namespace}}
spec:
  hosts: [e.example.com]
  addresses: [${addresses}]
  resolution: STATIC
  ports: [{number: ${port}, name: p${protocol === '' ? '' : `, protocol: ${protocol}`}}]
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
    'Conflicted spec.addresses[1]: 10.96.0.5 belongs to Service/shop/web, which keeps it; use another address.',
  ]);
  mesh.delete(readObjects(service));
  expect(listenersOf(mesh)).toEqual(['10.9.9.9_80', '10.96.0.5_80']);
  expect(problemsOf(mesh)).toEqual([]);
});

test('a ServiceEntry that loses all of its addresses does not stand for all others instead', () => {
  const mesh = meshWith(service + entry('10.96.0.5'));
  expect(listenersOf(mesh)).toEqual(['0.0.0.0_80']);
  expect(mesh.snapshot('client').cds.map(({ name }) => name)).not.toContain('outbound|80||e.example.com');
  expect(problemsOf(mesh)).toEqual([expect.stringContaining('so it is left out')]);
});

test('in its own namespace a ServiceEntry may take the address', () => {
  const mesh = meshWith(service + entry('10.96.0.5', 'shop'));
  expect(listenersOf(mesh)).toContain('10.96.0.5_80');
  expect(problemsOf(mesh)).toEqual([]);
});

interface Chain {
  readonly filterChainMatch?: { readonly prefixRanges?: readonly { readonly addressPrefix: string }[] };
}

/** Ranges of the chains of a port on all addresses. */
function rangesOf(mesh: TestMesh, port = 80): string[] {
  const listeners = mesh.json('client').lds as readonly {
    readonly name: string;
    readonly filterChains?: readonly Chain[];
  }[];
  return listeners
    .filter(({ name }) => name === `0.0.0.0_${port}`)
    .flatMap(({ filterChains = [] }) => filterChains)
    .flatMap(({ filterChainMatch }) => filterChainMatch?.prefixRanges ?? [])
    .map(({ addressPrefix }) => addressPrefix);
}

const withPort = (name: string): string => service.replace('name: http', `name: ${name}`);

describe('a range of a ServiceEntry that covers the address of a Service', () => {
  // Envoy looks for the range of the destination before it looks at what the connection begins with: see test/conformance.
  test.each(['TCP', 'TLS', ''])('has no place on the HTTP port of the Service, as %j', (protocol) => {
    const mesh = meshWith(entry('10.96.0.0/16, 10.97.0.0/16', 'other', protocol));
    expect(rangesOf(mesh)).toEqual(['10.96.0.0', '10.97.0.0']);
    mesh.apply(readObjects(service));
    expect(rangesOf(mesh)).toEqual(['10.97.0.0']);
    expect(problemsOf(mesh)).toEqual([
      'Conflicted spec.addresses[0]: 10.96.0.0/16 covers 10.96.0.5 of Service/shop/web, which keeps its HTTP port 80: the ServiceEntry gets no connections to this port in the range. Use ranges without Service addresses, or another port.',
    ]);
    mesh.delete(readObjects(service));
    expect(rangesOf(mesh)).toEqual(['10.96.0.0', '10.97.0.0']);
    expect(problemsOf(mesh)).toEqual([]);
  });

  test.each(['tcp', 'tls', 'https', 'unnamed'])(
    'takes nothing from a port %s, which has a listener of its own',
    (name) => {
      const mesh = meshWith(withPort(name) + entry('10.96.0.0/16'));
      expect(listenersOf(mesh)).toEqual(['0.0.0.0_80', '10.96.0.5_80']);
      expect(rangesOf(mesh)).toEqual(['10.96.0.0']);
      expect(problemsOf(mesh)).toEqual([]);
    },
  );

  test('has ports that the Service does not have', () => {
    const mesh = meshWith(service + entry('10.96.0.0/16', 'other', 'TCP', 5432));
    expect(rangesOf(mesh, 5432)).toEqual(['10.96.0.0']);
    expect(problemsOf(mesh)).toEqual([]);
  });

  test('shares an HTTP port with it: hosts tell requests apart', () => {
    const mesh = meshWith(service + entry('10.96.0.0/16', 'other', 'HTTP'));
    expect(rangesOf(mesh)).toEqual([]);
    expect(problemsOf(mesh)).toEqual([]);
  });

  test('may take it in its own namespace', () => {
    const mesh = meshWith(service + entry('10.96.0.0/16', 'shop'));
    expect(rangesOf(mesh)).toEqual(['10.96.0.0']);
    expect(problemsOf(mesh)).toEqual([]);
  });

  test('is looked for once, however many hosts name it in however many spellings', () => {
    const ranges = Array.from({ length: 20 }, (_, i) => `10.${i}.0.0/8`).join(', ');
    const hosts = Array.from({ length: 10 }, (_, i) => `e${i}.example.com`).join(', ');
    const mesh = meshWith(service + entry(ranges).replace('e.example.com', hosts));
    const places = mesh.graph.collections.find(({ name }) => name === 'places of ranges');
    expect([...places!.entries()].map(([place]) => place)).toEqual(['other|80|10.0.0.0/8']);
    expect(rangesOf(mesh)).toEqual([]);
    expect(problemsOf(mesh)).toHaveLength(20);
  });

  test('has no place either when another entry of its host names the port', () => {
    const older = entry('10.97.0.1').replace('name: e,', 'name: d,');
    const mesh = meshWith(service + older + entry('10.96.0.0/16', 'other', 'TCP', 443));
    expect(rangesOf(mesh)).toEqual([]);
  });
});

test('pods of a headless Service keep their addresses, whatever older entry names one', () => {
  const mesh = meshWith(`
apiVersion: v1
kind: Service
metadata: {name: db, namespace: shop, creationTimestamp: "2026-01-02T00:00:00Z"}
spec: {clusterIP: None, ports: [{name: tcp, port: 5432}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: db-1, namespace: shop, labels: {kubernetes.io/service-name: db}}
addressType: IPv4
ports: [{name: tcp, port: 5432}]
endpoints: [{addresses: [10.1.0.50]}]
---${entry('10.1.0.50', 'other', 'TCP', 5432).replace('name: e,', 'name: e, creationTimestamp: "2026-01-01T00:00:00Z",')}`);
  const listener = mesh.json('client').lds.find((one) => (one as { name: string }).name === '10.1.0.50_5432');
  expect(JSON.stringify(listener)).toContain('outbound|5432||db.shop.svc.cluster.local');
});
