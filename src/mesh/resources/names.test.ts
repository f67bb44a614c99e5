import { expect, test } from 'vitest';
import { TestMesh, connectedProxy, readObjects } from '../../../test/harness/mesh.ts';
import { readNameTable } from '../../../test/harness/names.ts';
import { bytesOf } from '../../ads/wire/bytes-of.ts';
import { HOST, NAME_TABLE } from '../../model/named-host.ts';

const services = `
apiVersion: v1
kind: Service
metadata: {name: reviews, namespace: shop}
spec: {clusterIP: 10.96.0.1, ports: [{name: http, port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: db, namespace: shop}
spec: {clusterIP: None, ports: [{name: tcp, port: 5432}]}
---
apiVersion: v1
kind: Service
metadata: {name: elsewhere, namespace: other}
spec: {clusterIP: 10.96.0.2, ports: [{name: http, port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: outside, namespace: shop}
spec: {type: ExternalName, externalName: reviews.shop.svc.cluster.local}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: api, namespace: shop}
spec: {hosts: [api.example.com], addresses: [192.0.2.1, 192.0.2.2, 198.51.100.0/24], resolution: NONE, ports: [{name: tcp, number: 9000, protocol: TCP}]}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: auto, namespace: shop}
spec: {hosts: [auto.example.com], resolution: DNS, ports: [{name: tcp, number: 9000, protocol: TCP}]}
status: {addresses: [{value: 240.240.0.1, host: auto.example.com}, {value: "2001:2::1", host: auto.example.com}]}
`;

const slice = (...endpoints: readonly string[]) => `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: db-1, namespace: shop, labels: {kubernetes.io/service-name: db}}
addressType: IPv4
ports: [{name: tcp, port: 5432, protocol: TCP}]
endpoints: [${endpoints.join()}]
`;
const db0 = '{addresses: [10.0.0.10], hostname: db-0, conditions: {ready: true}}';
const db1 = '{addresses: [10.0.0.9], hostname: db-1, conditions: {ready: true}}';
const unready = '{addresses: [10.0.0.8], hostname: db-2, conditions: {ready: false, terminating: false}}';

function meshWith(...yaml: readonly string[]): TestMesh {
  const mesh = new TestMesh();
  mesh.apply(readObjects(yaml.join('---')));
  return mesh;
}

function ask(mesh: TestMesh, stream: string, typeUrl: string, metadata: object = {}, namespace = 'shop'): void {
  const node = {
    id: `sidecar~10.1.0.1~${stream}.${namespace}~${namespace}.svc.cluster.local`,
    metadata: { NAMESPACE: namespace, ...metadata },
  };
  mesh.connect(connectedProxy(stream, node));
  mesh.commit([mesh.mesh.inputs.asked.write(stream, { typeUrls: [typeUrl] })]);
}

const capture = { DNS_CAPTURE: 'true' };

function tableOf(mesh: TestMesh, stream: string) {
  const [table, ...more] = mesh.resources(stream).filter(({ typeUrl }) => typeUrl === NAME_TABLE);
  expect(more).toEqual([]);
  expect(table!.name).toBe('');
  return readNameTable(bytesOf(table!.body));
}

const hostsOf = (mesh: TestMesh, stream: string) =>
  Object.fromEntries(
    mesh
      .resources(stream)
      .filter(({ typeUrl }) => typeUrl === HOST)
      .map(({ name, body }) => [name, Buffer.from(bytesOf(body)).toString('hex')]),
  );

test('a table has what a proxy that captures DNS may look up', () => {
  const mesh = meshWith(services, slice(db0, db1, unready));
  ask(mesh, 'a', NAME_TABLE, capture);
  const kubernetes = { registry: 'Kubernetes', namespace: 'shop' };
  expect(tableOf(mesh, 'a')).toEqual({
    'api.example.com': { ips: ['192.0.2.1', '192.0.2.2'], registry: 'External' },
    'auto.example.com': { ips: ['240.240.0.1'], registry: 'External' },
    'db.shop.svc.cluster.local': { ips: ['10.0.0.10', '10.0.0.9'], shortname: 'db', ...kubernetes },
    'db-0.db.shop.svc.cluster.local': { ips: ['10.0.0.10'], shortname: 'db-0.db', ...kubernetes },
    'db-1.db.shop.svc.cluster.local': { ips: ['10.0.0.9'], shortname: 'db-1.db', ...kubernetes },
    'elsewhere.other.svc.cluster.local': {
      ips: ['10.96.0.2'],
      shortname: 'elsewhere',
      registry: 'Kubernetes',
      namespace: 'other',
    },
    'reviews.shop.svc.cluster.local': { ips: ['10.96.0.1'], shortname: 'reviews', ...kubernetes },
  });
});

test('only proxies that capture DNS get automatic addresses', () => {
  const mesh = meshWith(services);
  ask(mesh, 'a', NAME_TABLE);
  expect(tableOf(mesh, 'a')).not.toHaveProperty(['auto.example.com']);
});

test('in an empty mesh there is a table without entries', () => {
  const mesh = meshWith();
  ask(mesh, 'a', NAME_TABLE);
  expect(tableOf(mesh, 'a')).toEqual({});
  ask(mesh, 'agent', HOST);
  expect(hostsOf(mesh, 'agent')).toEqual({ '': '' });
});

test('a Sidecar limits the table, and a service that several of its listeners import is in it once', () => {
  const mesh = meshWith(
    services,
    `
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: default, namespace: other}
spec: {egress: [{port: {number: 9000, protocol: TCP, name: tcp}, hosts: [shop/api.example.com]}, {hosts: [shop/api.example.com, ./*]}]}
`,
  );
  ask(mesh, 'a', NAME_TABLE, {}, 'other');
  ask(mesh, 'agent', HOST, {}, 'other');
  expect(Object.keys(tableOf(mesh, 'a'))).toEqual(['api.example.com', 'elsewhere.other.svc.cluster.local']);
  expect(Object.keys(hostsOf(mesh, 'agent')).sort()).toEqual([
    '',
    'api.example.com',
    'elsewhere.other.svc.cluster.local',
  ]);
});

test('our own agent gets each host as a resource', () => {
  const mesh = meshWith(services, slice(db0));
  ask(mesh, 'agent', HOST, { ...capture, ...{ INSTANCE_IPS: '10.1.0.1,fd00::1' } });
  expect(hostsOf(mesh, 'agent')).toMatchObject({
    'reviews.shop.svc.cluster.local': '0a040a6000011801',
    'db-0.db.shop.svc.cluster.local': '0a040a00000a1801',
    'api.example.com': '0a08c0000201c0000202',
    'auto.example.com': `0a04f0f00001${'1210'}${'20010002000000000000000000000001'}`,
  });
  expect(mesh.resources('agent').map(({ typeUrl }) => typeUrl)).not.toContain(NAME_TABLE);
});

test('a Pod that comes changes its service and itself, and nothing else', () => {
  const mesh = meshWith(services, slice(db0));
  ask(mesh, 'agent', HOST);
  const before = hostsOf(mesh, 'agent');
  mesh.apply(readObjects(slice(db0, db1)));
  const after = hostsOf(mesh, 'agent');
  const changed = Object.keys(after).filter((name) => after[name] !== before[name]);
  expect(changed.sort()).toEqual(['db-1.db.shop.svc.cluster.local', 'db.shop.svc.cluster.local']);
});

test('nothing is computed unless somebody asks', () => {
  const mesh = meshWith(services);
  const names = () =>
    mesh.mesh.members
      .flatMap((members) => [...members.entries()])
      .filter(([, { resource }]) => [HOST, NAME_TABLE].includes(resource.typeUrl));
  mesh.connect(connectedProxy('envoy', { id: 'sidecar~10.1.0.1~a.shop~shop.svc.cluster.local', metadata: capture }));
  expect(names()).toEqual([]);
  ask(mesh, 'agent', HOST);
  expect(names()).not.toEqual([]);
  mesh.commit([mesh.mesh.inputs.asked.write('agent', undefined)]);
  expect(names()).toEqual([]);
});

test('scopes share the entries of what they see alike', () => {
  const mesh = meshWith(services);
  ask(mesh, 'a', NAME_TABLE, {}, 'one');
  ask(mesh, 'b', NAME_TABLE, {}, 'two');
  const leaves = (stream: string) => mesh.resources(stream).find(({ typeUrl }) => typeUrl === NAME_TABLE)!.body;
  expect(leaves('a')).toEqual(leaves('b'));
  expect('children' in leaves('a') && 'children' in leaves('b') && leaves('a')).toBeTruthy();
});

/** Of another tenant, with an address of its own. */
const entryOf = (...names: readonly string[]) => `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: theirs, namespace: theirs}
spec: {hosts: ${JSON.stringify(names)}, addresses: [192.0.2.66], resolution: NONE, ports: [{name: tcp, number: 80, protocol: TCP}]}
`;

test.each([
  // Short forms of Services, for whom these are such.
  ['reviews', 'shop', false],
  ['reviews', 'other', true],
  ['reviews.shop', 'other', false],
  ['outside.shop.svc', 'other', false],
  ['nobody.shop', 'other', true],
  // Pods, also those that are not ready.
  ['db-0.db.shop.svc.cluster.local', 'shop', false],
  ['db-7.db.shop.svc.cluster.local', 'other', false],
  ['nobody.shop.svc.cluster.local', 'other', true],
  // What search lists make of every name.
  ['*.local', 'other', false],
  ['*.svc.cluster.local', 'other', false],
  ['*.shop.svc.cluster.local', 'shop', false],
  ['*.db.shop.svc.cluster.local', 'shop', false],
  ['*.theirs.svc.cluster.local', 'shop', true],
  ['*.example.com', 'shop', true],
])('an entry of another tenant with the host %s, for clients in %s: %j', (host, client, isNamed) => {
  const mesh = meshWith(services, slice(db0), entryOf(host));
  ask(mesh, 'agent', HOST, {}, client);
  ask(mesh, 'table', NAME_TABLE, {}, client);
  const address = '0a04c0000242';
  expect(
    mesh
      .resources('agent')
      .filter(({ name, body }) => name === host && Buffer.from(bytesOf(body)).toString('hex') === address),
  ).toHaveLength(isNamed ? 1 : 0);
  const { [host]: entry } = tableOf(mesh, 'table');
  expect(entry?.ips.includes('192.0.2.66') ?? false).toBe(isNamed);
});

test('the owner of a Service may give its names to an entry', () => {
  const mesh = meshWith(services, entryOf('reviews.shop', '*.shop.svc.cluster.local').replaceAll('theirs', 'shop'));
  ask(mesh, 'agent', HOST, {}, 'other');
  expect(Object.keys(hostsOf(mesh, 'agent'))).toEqual(
    expect.arrayContaining(['reviews.shop', '*.shop.svc.cluster.local']),
  );
});
