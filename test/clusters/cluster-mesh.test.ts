import { expect, test } from 'vitest';
import type { KubernetesObject } from '../../src/api/object.ts';
import { serviceOf } from '../../src/clustermesh/objects.ts';
import { clusterMeshSource } from '../../src/model/cluster-mesh.ts';
import { TestMesh, connectedProxy } from '../harness/mesh.ts';

const EAST = clusterMeshSource('east');
const CLIENT = 'client';

const db = (annotations: Readonly<Record<string, string>> = {}, clusterIP = '10.0.0.1'): KubernetesObject =>
  ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { namespace: 'shop', name: 'db', creationTimestamp: '2026-01-01T00:00:00Z', annotations },
    spec: { clusterIP, ports: [{ name: 'tcp', port: 9000 }] },
  }) as KubernetesObject;

interface Slice {
  readonly name?: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** Of all addresses. */
  readonly ready?: boolean;
  readonly pods?: boolean;
}

function slice(
  addresses: readonly string[],
  { name = 'db-1', labels = {}, ready = true, pods }: Slice = {},
): KubernetesObject {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { namespace: 'shop', name, labels: { 'kubernetes.io/service-name': 'db', ...labels } },
    addressType: 'IPv4',
    ports: [{ name: 'tcp', port: 9000, protocol: 'TCP' }],
    endpoints: addresses.map((address) => ({
      addresses: [address],
      conditions: { ready },
      ...(pods === true && { targetRef: { kind: 'Pod', namespace: 'shop', name: `pod-${address}` } }),
    })),
  } as KubernetesObject;
}

function meshWith(own: readonly KubernetesObject[], east: readonly KubernetesObject[]): TestMesh {
  const mesh = new TestMesh();
  mesh.apply(own);
  mesh.apply(east, EAST);
  connect(mesh);
  return mesh;
}

function connect(mesh: TestMesh): void {
  mesh.connect(
    connectedProxy(CLIENT, {
      id: 'sidecar~10.1.0.1~client.shop~shop.svc.cluster.local',
      metadata: { NAMESPACE: 'shop', CLUSTER_ID: 'Kubernetes' },
    }),
  );
}

interface Assignment {
  readonly clusterName: string;
  readonly policy?: { readonly overprovisioningFactor?: number };
  readonly endpoints?: readonly {
    readonly priority?: number;
    readonly lbEndpoints?: readonly { readonly endpoint: { address: { socketAddress: { address: string } } } }[];
  }[];
}

const assignmentOf = (mesh: TestMesh): Assignment | undefined =>
  (mesh.json(CLIENT).eds as Assignment[]).find(({ clusterName }) => clusterName.includes('||db.'));

/** Addresses by priority. */
function seen(mesh: TestMesh): string[][] {
  const found: string[][] = [];
  for (const { priority = 0, lbEndpoints = [] } of assignmentOf(mesh)?.endpoints ?? [])
    (found[priority] ??= []).push(...lbEndpoints.map(({ endpoint }) => endpoint.address.socketAddress.address));
  return found;
}

const GLOBAL = { 'service.cilium.io/global': 'true' };
const own = slice(['10.1.0.7']);
const remote = slice(['10.2.0.7', '10.2.0.8']);

test('endpoints of another cluster count while the Service here is global', () => {
  const mesh = meshWith([db(), own], [remote]);
  expect(seen(mesh)).toEqual([['10.1.0.7']]);
  mesh.apply([db(GLOBAL)]);
  expect(seen(mesh)).toEqual([['10.1.0.7', '10.2.0.7', '10.2.0.8']]);
  expect(assignmentOf(mesh)?.policy).toBeUndefined();
  mesh.apply([db({ 'service.cilium.io/global': 'false', 'io.cilium/global-service': 'true' })]);
  expect(seen(mesh)).toEqual([['10.1.0.7']]);
  mesh.apply([db({ 'io.cilium/global-service': 'True' })]);
  expect(seen(mesh)[0]).toHaveLength(3);
});

test('affinity decides whose endpoints are used first, and until none of them is healthy', () => {
  const affinity = (value: string) => db({ ...GLOBAL, 'service.cilium.io/affinity': value });
  const mesh = meshWith([affinity('local'), own], [remote]);
  expect(seen(mesh)).toEqual([['10.1.0.7'], ['10.2.0.7', '10.2.0.8']]);
  expect(assignmentOf(mesh)?.policy).toEqual({ overprovisioningFactor: 100_000 });
  mesh.apply([affinity('remote')]);
  expect(seen(mesh)).toEqual([['10.2.0.7', '10.2.0.8'], ['10.1.0.7']]);
  mesh.apply([slice([])], EAST);
  expect(seen(mesh)).toEqual([['10.1.0.7']]);
  expect(assignmentOf(mesh)?.policy).toBeUndefined();
});

test('the name of another cluster is that of its endpoints, whatever else it is read by', () => {
  const mesh = meshWith([db(GLOBAL)], [remote]);
  const [list] = mesh.mesh.endpoints.lists.flatMap((each) => [...each.entries()]).map(([, { endpoints }]) => endpoints);
  expect(list).toMatchObject([{ cluster: 'east', viaClusterMesh: true }, { cluster: 'east' }]);
});

test('what runs at an address of another cluster is known if its Pods are', () => {
  const labels = { version: 'v2', 'security.istio.io/tlsMode': 'istio' };
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace: 'shop', name: 'db-0', labels },
    spec: { serviceAccountName: 'db', nodeName: 'n1' },
    status: { podIP: '10.2.0.7', phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
  } as KubernetesObject;
  const node = {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'n1', labels: { 'topology.kubernetes.io/region': 'r2' } },
  } as KubernetesObject;
  const mesh = meshWith([db(GLOBAL)], [node, pod, remote]);
  const [list] = mesh.mesh.endpoints.lists.flatMap((each) => [...each.entries()]).map(([, { endpoints }]) => endpoints);
  expect(list).toMatchObject([
    { tlsMode: 'istio', locality: 'r2//', identity: 'spiffe://cluster.local/ns/shop/sa/db', labels: { version: 'v2' } },
    { tlsMode: 'disabled', identity: '' },
  ]);
});

interface Ports {
  readonly ports: readonly { readonly name?: string; readonly port: number; readonly protocol?: string }[];
}

/** Address and port of what each port of the Service has in the other cluster. */
function remotePorts(
  service: Ports & { readonly clusterIP?: string; readonly clusterIPs?: readonly string[] },
  remote: Ports & { readonly addressType?: string; readonly addresses?: readonly string[] },
): Record<string, string[]> {
  const mesh = new TestMesh();
  const { addresses = ['10.2.0.7'], ...more } = remote;
  const spec = { clusterIP: '10.0.0.1', ...service };
  mesh.apply([{ ...db(GLOBAL), spec } as KubernetesObject]);
  mesh.apply([{ ...slice(addresses), ...more } as KubernetesObject], EAST);
  const found: Record<string, string[]> = {};
  for (const { portName, addresses: of, port } of mesh.mesh.endpoints.lists.flatMap((each) =>
    [...each.entries()].flatMap(([, { endpoints }]) => endpoints),
  ))
    (found[portName] ??= []).push(`${of.join()}:${port}`);
  return found;
}

test.each<[string, Ports, Ports, Record<string, string[]>]>([
  [
    'no name here and one there',
    { ports: [{ port: 80 }] },
    { ports: [{ name: 'http', port: 8080 }] },
    { '': ['10.2.0.7:8080'] },
  ],
  [
    'no name here and several there',
    { ports: [{ port: 80 }] },
    {
      ports: [
        { name: 'http', port: 8080 },
        { name: 'dns', port: 53, protocol: 'UDP' },
        { name: 'grpc', port: 9090 },
      ],
    },
    { '': ['10.2.0.7:8080', '10.2.0.7:9090'] },
  ],
  [
    'names here and none there',
    {
      ports: [
        { name: 'http', port: 80 },
        { name: 'dns', port: 53, protocol: 'UDP' },
        { name: 'grpc', port: 90 },
      ],
    },
    { ports: [{ port: 8080 }] },
    { http: ['10.2.0.7:8080'], grpc: ['10.2.0.7:8080'] },
  ],
  ['different names', { ports: [{ name: 'http', port: 80 }] }, { ports: [{ name: 'web', port: 8080 }] }, {}],
  [
    'another protocol',
    { ports: [{ name: 'dns', port: 53, protocol: 'UDP' }] },
    { ports: [{ name: 'dns', port: 5353, protocol: 'TCP' }] },
    {},
  ],
  ['SCTP and TCP', { ports: [{ port: 80 }] }, { ports: [{ port: 80, protocol: 'SCTP' }] }, {}],
])('ports with %s meet as in Cilium', (_, service, remote, expected) => {
  expect(remotePorts(service, remote)).toEqual(expected);
});

test('several ports of an address may serve one without a name, each once', () => {
  const ports = [
    { name: 'http', port: 8080 },
    { name: 'grpc', port: 9090 },
  ];
  const unnamed = { ...db(GLOBAL), spec: { clusterIP: '10.0.0.1', ports: [{ port: 9000 }] } } as KubernetesObject;
  const copied = (name: string) => ({ ...slice(['10.2.0.7'], { name }), ports }) as KubernetesObject;
  const mesh = meshWith([unnamed], [copied('db-1'), copied('db-2')]);
  expect(JSON.stringify(assignmentOf(mesh)).match(/"portValue":\d+/g)).toEqual([
    '"portValue":8080',
    '"portValue":9090',
  ]);
});

test.each<[string, { readonly clusterIP?: string; readonly clusterIPs?: readonly string[] }, boolean, boolean]>([
  ['IPv4', { clusterIPs: ['10.0.0.1'] }, true, false],
  ['IPv6', { clusterIP: 'fd00::1', clusterIPs: ['fd00::1'] }, false, true],
  ['both', { clusterIPs: ['10.0.0.1', 'fd00::1'] }, true, true],
  ['None', { clusterIP: 'None', ipFamilies: ['IPv6'] } as object, false, true],
  ['None, with unknown families', { clusterIP: 'None' }, true, true],
])('a Service with addresses of %s has endpoints of these families', (_, spec, v4, v6) => {
  const ports = [{ name: 'tcp', port: 9000 }];
  const of = (addressType: string, address: string) =>
    Object.keys(remotePorts({ ports, ...spec }, { ports, addressType, addresses: [address] })).length > 0;
  expect([of('IPv4', '10.2.0.7'), of('IPv6', 'fd00:2::7')]).toEqual([v4, v6]);
});

test('slices that Cilium copied from other clusters count as theirs, and once', () => {
  const copied = slice(['10.2.0.7', '10.2.0.9'], {
    name: 'db-east-1',
    pods: true,
    labels: {
      'endpointslice.kubernetes.io/managed-by': 'endpointslice-mesh-controller.cilium.io',
      'multicluster.kubernetes.io/source-cluster': 'east',
    },
  });
  const mesh = meshWith([db({ ...GLOBAL, 'service.cilium.io/affinity': 'local' }), own, copied], [remote]);
  expect(seen(mesh).map((each) => each.toSorted())).toEqual([['10.1.0.7'], ['10.2.0.7', '10.2.0.8', '10.2.0.9']]);
});

test('a Service that only another cluster has is served with its address; the own one decides once there is one', () => {
  const mesh = meshWith([], [db({}, '10.9.0.1'), remote]);
  expect(seen(mesh)).toEqual([['10.2.0.7', '10.2.0.8']]);
  mesh.apply([db(), own]);
  expect(seen(mesh)).toEqual([['10.1.0.7']]);
  mesh.apply([db(GLOBAL)]);
  expect(seen(mesh)).toEqual([['10.1.0.7', '10.2.0.7', '10.2.0.8']]);
});

test('an imported Service does not take the address of one here', () => {
  const tcp = { name: 'tcp', port: 9000, protocol: 'TCP' } as const;
  const named = { namespace: 'shop', name: 'a', labels: {}, shared: true, backends: [] };
  const imported = (address: string) => serviceOf({ ...named, frontends: [{ address, ports: [tcp] }] })!;
  const clusters = (mesh: TestMesh): string => JSON.stringify(mesh.json(CLIENT).lds);
  const mesh = meshWith([db()], [imported('10.0.0.9')]);
  expect(clusters(mesh)).toContain('|9000||a.shop');
  mesh.apply([imported('10.0.0.1')], EAST);
  expect(clusters(mesh)).toContain('|9000||db.shop');
  expect(clusters(mesh)).not.toContain('|9000||a.shop');
});

test('a global Service is no longer for its own cluster alone where multi-cluster services are on', () => {
  const mesh = new TestMesh({ mesh: { multiclusterServices: true } });
  mesh.apply([db(GLOBAL), own]);
  mesh.apply([remote], EAST);
  mesh.apply([slice(['10.3.0.7'])], 'west');
  connect(mesh);
  expect(seen(mesh)).toEqual([['10.1.0.7', '10.2.0.7', '10.2.0.8']]);
});
