import { expect, test } from 'vitest';
import type { KubernetesObject } from '../../api/object.ts';
import { MeshLab, objectOf } from '../../../test/harness/lab.ts';

function entry(path: string, year: number, spec: object = {}): KubernetesObject {
  return objectOf(
    'ServiceEntry',
    path,
    {
      spec: {
        hosts: [`${path.slice(path.indexOf('/') + 1)}.example.com`],
        ports: [{ name: 'tcp', number: 3306, protocol: 'TCP' }],
        resolution: 'DNS',
        ...spec,
      },
    },
    { creationTimestamp: `${year}-01-01T00:00:00Z` },
  );
}

/** What owners of ServiceEntries are told about others: `name: message`. No proxy is there. */
function told(...objects: KubernetesObject[]): string[] {
  const lab = new MeshLab(objects);
  return [...lab.mesh.problems.byObject.entries()].flatMap(([, problems]) =>
    problems
      .filter(({ reason }) => reason !== 'TooBroad')
      .map(({ object, field, reason, message }) => `${object.name} ${field} ${reason}: ${message}`),
  );
}

test('of TCP hosts that nothing tells apart the younger one is told where its connections go', () => {
  expect(told(entry('shop/new', 2026), entry('other/old', 2020))).toEqual([
    'new spec.ports Ineffective: Connections to 0.0.0.0:3306 go to old.example.com of the older ServiceEntry/other/old, and so do those to new.example.com, because Envoy cannot distinguish them. Give one of the hosts its own address in spec.addresses, or another port.',
  ]);
  const same = { addresses: ['192.0.2.1'] };
  expect(told(entry('shop/new', 2026, same), entry('shop/old', 2020, same))).toEqual([
    expect.stringContaining('Connections to 192.0.2.1:3306 go to old.example.com'),
  ]);
});

test.each<[string, object, object]>([
  ['addresses', { addresses: ['192.0.2.1'] }, { addresses: ['192.0.2.2'] }],
  [
    'ranges',
    { addresses: ['192.0.2.0/25'], resolution: 'NONE' },
    { addresses: ['192.0.2.128/25'], resolution: 'NONE' },
  ],
  ['ports', {}, { ports: [{ name: 'tcp', number: 3307, protocol: 'TCP' }] }],
  [
    'server names',
    { ports: [{ name: 'tls', number: 3306, protocol: 'TLS' }] },
    { ports: [{ name: 'tls', number: 3306, protocol: 'TLS' }] },
  ],
  ['HTTP', {}, { ports: [{ name: 'http', number: 3306, protocol: 'HTTP' }] }],
  ['visibility', {}, { exportTo: ['.'] }],
])('nobody is told where %s distinguish them', (_, one, other) => {
  expect(told(entry('shop/new', 2026, one), entry('other/old', 2020, other))).toEqual([]);
});

test('hosts of one ServiceEntry have the same endpoints anyway', () => {
  expect(told(entry('shop/a', 2026, { hosts: ['a.example.com', 'b.example.com'], addresses: ['192.0.2.1'] }))).toEqual(
    [],
  );
});

test('a ServiceEntry is not told about itself, whichever of its hosts changes', () => {
  // An annotation is changed without a new generation.
  const hosts = { hosts: ['a.example.com', 'b.example.com'], addresses: ['10.5.0.0/16'], resolution: 'NONE' };
  const annotated = entry('shop/db', 2020, hosts);
  const annotations = { 'networking.istio.io/traffic-distribution': 'PreferClose' };
  const lab = new MeshLab([entry('shop/db', 2020, hosts)]);
  lab.apply([{ ...annotated, metadata: { ...annotated.metadata, annotations } }]);
  lab.apply([
    objectOf('DestinationRule', 'shop/r', {
      spec: { host: 'b.example.com', trafficPolicy: { connectionPool: { tcp: { idleTimeout: '33s' } } } },
    }),
  ]);
  expect([...lab.mesh.problems.byObject.entries()]).toEqual([]);
});

test('who names the address of a pod of a headless Service is told who keeps it', () => {
  const ports = [{ name: 'tcp-db', port: 3306 }];
  const headless = objectOf('Service', 'shop/db', { spec: { clusterIP: 'None', ports } });
  const pods = objectOf(
    'EndpointSlice',
    'shop/db-1',
    {
      addressType: 'IPv4',
      ports: [{ name: 'tcp-db', port: 3306 }],
      endpoints: [{ addresses: ['10.2.0.1'], conditions: { ready: true } }],
    },
    { labels: { 'kubernetes.io/service-name': 'db' } },
  );
  const at = { addresses: ['192.0.2.1', '10.2.0.1'] };
  expect(told(headless, pods, entry('other/e', 2020, at))).toEqual([
    'e spec.addresses[1] Conflicted: 10.2.0.1 is the address of a Pod of Service/shop/db, which keeps its port 3306; use another address.',
  ]);
  expect(told(headless, pods, entry('other/e', 2020, { ...at, exportTo: ['.'] }))).toEqual([]);
  expect(
    told(headless, pods, entry('other/e', 2020, { ...at, ports: [{ name: 'x', number: 3307, protocol: 'TCP' }] })),
  ).toEqual([]);
});
