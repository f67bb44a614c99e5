import { expect, test } from 'vitest';
import type { KubernetesObject } from '../../src/api/object.ts';
import { TestMesh, connectedProxy } from '../harness/mesh.ts';

const OWN = 'Kubernetes';
const OLDEST = '0000-01-01T00:00:00Z';

interface Claimed {
  readonly address: string;
  readonly protocol?: 'tcp' | 'http';
  readonly exportTo?: string;
}

const service = (namespace: string, name: string, { address, protocol = 'tcp', exportTo = '*' }: Claimed) =>
  ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: {
      namespace,
      name,
      // Whatever else is claimed is older.
      creationTimestamp: name === 'db' ? '2026-01-01T00:00:00Z' : OLDEST,
      annotations: { 'networking.istio.io/exportTo': exportTo },
    },
    spec: { clusterIP: address, ports: [{ name: protocol, port: 9000 }] },
  }) as KubernetesObject;

const slice = (namespace: string, name: string, address: string) =>
  ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { namespace, name: `${name}-1`, labels: { 'kubernetes.io/service-name': name } },
    addressType: 'IPv4',
    ports: [{ name: 'tcp', port: 9000, protocol: 'TCP' }],
    endpoints: [{ addresses: [address] }],
  }) as KubernetesObject;

function meshOf(own: readonly KubernetesObject[], east: readonly KubernetesObject[]): TestMesh {
  const mesh = new TestMesh();
  mesh.commit([mesh.mesh.inputs.remoteClusters.write('east', { id: 'east' })]);
  mesh.apply(own);
  mesh.apply(east, 'east');
  for (const cluster of [OWN, 'east'])
    mesh.connect(
      connectedProxy(cluster, {
        id: 'sidecar~10.1.0.1~client.shop~shop.svc.cluster.local',
        metadata: { NAMESPACE: 'shop', CLUSTER_ID: cluster },
      }),
    );
  return mesh;
}

/** Where connections to the address go. */
function takerOf(mesh: TestMesh, cluster: string, address: string): string | undefined {
  const listeners = mesh.json(cluster).lds as { readonly name: string }[];
  const found = listeners.find(({ name }) => name === `${address}_9000`);
  return /outbound\|9000\|\|([^."]+)/.exec(JSON.stringify(found ?? {}))?.[1];
}

/** Whose virtual host has the address. */
function hostAt(mesh: TestMesh, cluster: string, address: string): string | undefined {
  const tables = mesh.json(cluster).rds as { readonly virtualHosts: { name: string; domains: string[] }[] }[];
  const [found] = tables.flatMap(({ virtualHosts }) => virtualHosts.filter(({ domains }) => domains.includes(address)));
  return found?.name.split('.')[0];
}

test.each(['*', 'shop'])(
  'a Service that only another cluster has takes no address of a Service here, exported to %s',
  (exportTo) => {
    const mesh = meshOf(
      [service('shop', 'db', { address: '10.0.0.1' })],
      [service('other', 'rival', { address: '10.0.0.1', exportTo })],
    );
    expect(takerOf(mesh, OWN, '10.0.0.1')).toBe('db');
    expect(takerOf(mesh, 'east', '10.0.0.1')).toBe('rival');
  },
);

test('nor does it take requests to that address', () => {
  const http = { protocol: 'http' } as const;
  const mesh = meshOf(
    [
      service('shop', 'db', { address: '10.0.0.1', ...http }),
      service('other', 'own', { address: '10.9.0.1', ...http }),
      service('other', 'own2', { address: '10.0.0.2', ...http }),
    ],
    [
      service('shop', 'db', { address: '10.9.0.1', ...http }),
      service('other', 'rival', { address: '10.0.0.1', ...http }),
      service('other', 'own3', { address: '10.9.0.3', ...http }),
    ],
  );
  expect(hostAt(mesh, OWN, '10.0.0.1')).toBe('db');
  expect(hostAt(mesh, OWN, '10.9.0.1')).toBe('own');
  expect(hostAt(mesh, OWN, '10.9.0.3')).toBe('own3');
  expect(hostAt(mesh, 'east', '10.0.0.1')).toBe('rival');
  expect(hostAt(mesh, 'east', '10.9.0.1')).toBe('db');
});

test('a headless Service takes no address of another Service for its Pods, wherever they are', () => {
  const headless = service('other', 'rival', { address: 'None' });
  const db = service('shop', 'db', { address: '10.0.0.1' });
  for (const mesh of [
    meshOf([db, headless, slice('other', 'rival', '10.0.0.1')], []),
    meshOf([db, headless], [headless, slice('other', 'rival', '10.0.0.1')]),
    meshOf([db], [headless, slice('other', 'rival', '10.0.0.1')]),
  ])
    expect(takerOf(mesh, OWN, '10.0.0.1')).toBe('db');
});
