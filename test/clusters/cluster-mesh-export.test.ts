import { expect, test } from 'vitest';
import type { KubernetesObject } from '../../src/api/object.ts';
import { clusterMeshSource } from '../../src/model/cluster-mesh.ts';
import { TestMesh } from '../harness/mesh.ts';

const GLOBAL = { 'service.cilium.io/global': 'true' };

const service = (name: string, annotations: Readonly<Record<string, string>> = GLOBAL): KubernetesObject =>
  ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { namespace: 'shop', name, annotations },
    spec: { clusterIP: '10.1.0.9', ports: [{ name: 'http', port: 80 }] },
  }) as KubernetesObject;

const slice = (name: string, of: string, ...addresses: readonly string[]): KubernetesObject =>
  ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { namespace: 'shop', name, labels: { 'kubernetes.io/service-name': of } },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 8080 }],
    endpoints: addresses.map((address) => ({ addresses: [address] })),
  }) as KubernetesObject;

const namespace = (annotations: Readonly<Record<string, string>>): KubernetesObject => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name: 'shop', annotations },
});

interface Exporting {
  readonly mesh: TestMesh;
  /** Keys of what was told to have changed since it was asked last. */
  changed(): string[];
  /** Addresses of all that is exported, by service. */
  exported(): Record<string, string>;
}

function exporting(options: { readonly clusterMeshExport?: true } = { clusterMeshExport: true }): Exporting {
  const mesh = new TestMesh({ mesh: options });
  let told: string[] = [];
  mesh.graph.follow(mesh.mesh.clusters.global.services, (changes) => told.push(...changes.map(({ key }) => key)));
  return {
    mesh,
    changed() {
      const keys = told.sort();
      told = [];
      return keys;
    },
    exported: () =>
      Object.fromEntries(
        Array.from(mesh.mesh.clusters.global.services.entries(), ([key, { backends }]) => [
          key,
          backends.map(({ address }) => address).join(),
        ]),
      ),
  };
}

test('only what has changed is told', () => {
  const { mesh, changed, exported } = exporting();
  mesh.apply([service('a'), service('b'), service('c', {}), slice('a-1', 'a', '10.9.0.1'), slice('b-1', 'b')]);
  expect(changed()).toEqual(['shop/a', 'shop/b']);
  mesh.apply([slice('a-2', 'a', '10.9.0.2')]);
  expect(changed()).toEqual(['shop/a']);
  mesh.apply([slice('a-3', 'a'), slice('c-1', 'c', '10.9.0.3')]);
  expect(changed()).toEqual([]);
  mesh.delete([slice('a-1', 'a')]);
  mesh.apply([service('b', { ...GLOBAL, 'service.cilium.io/shared': 'false' })]);
  expect(changed()).toEqual(['shop/a', 'shop/b']);
  expect(exported()).toEqual({ 'shop/a': '10.9.0.2' });
});

test('slices go with their Service, as they are', () => {
  const { mesh } = exporting();
  const told: string[] = [];
  mesh.graph.follow(mesh.mesh.clusters.global.slices, (changes) => told.push(...changes.map(({ key }) => key)));
  const names = () => Array.from(mesh.mesh.clusters.global.slices.entries(), ([key]) => key).sort();
  const hinted = {
    ...slice('a-1', 'a'),
    endpoints: [{ addresses: ['10.9.0.1'], conditions: { ready: false }, hints: { forZones: [{ name: 'z1' }] } }],
  } as KubernetesObject;
  const copied = slice('a-east', 'a', '10.8.0.1');
  const labels = {
    ...copied.metadata.labels,
    'endpointslice.kubernetes.io/managed-by': 'endpointslice-mesh-controller.cilium.io',
    'multicluster.kubernetes.io/source-cluster': 'east',
  };
  mesh.apply([service('a'), service('c', {}), hinted, slice('a-2', 'a', '10.9.0.2'), slice('c-1', 'c', '10.9.0.3')]);
  mesh.apply([{ ...copied, metadata: { ...copied.metadata, labels } }]);
  mesh.apply([service('a'), slice('a-3', 'a', '10.8.0.1')], 'west');
  expect(names()).toEqual(['shop/a-1', 'shop/a-2']);
  expect(mesh.mesh.clusters.global.slices.get('shop/a-1')).toEqual(hinted);
  told.splice(0);
  mesh.apply([slice('a-2', 'a', '10.9.0.7')]);
  expect(told).toEqual(['shop/a-2']);
  mesh.apply([service('a', {})]);
  expect([told.slice(1).sort(), names()]).toEqual([['shop/a-1', 'shop/a-2'], []]);
});

test('a namespace decides about all of its services', () => {
  const { mesh, changed, exported } = exporting();
  mesh.apply([service('a'), slice('a-1', 'a', '10.9.0.1'), namespace({ 'clustermesh.cilium.io/global': 'false' })]);
  expect(exported()).toEqual({});
  mesh.apply([namespace({ 'clustermesh.cilium.io/global': 'true' })]);
  expect([changed(), exported()]).toEqual([['shop/a'], { 'shop/a': '10.9.0.1' }]);
});

test('what is of other clusters is theirs to tell', () => {
  const { mesh, exported } = exporting();
  mesh.apply([service('a'), slice('a-1', 'a', '10.9.0.1')]);
  for (const cluster of ['west', clusterMeshSource('east')])
    mesh.apply([service('a'), service('b'), slice('a-2', 'a', '10.8.0.1'), slice('b-1', 'b', '10.8.0.2')], cluster);
  expect(exported()).toEqual({ 'shop/a': '10.9.0.1' });
});

test('nothing is told unless somebody is to be told', () => {
  const { mesh, exported } = exporting({});
  mesh.apply([service('a'), slice('a-1', 'a', '10.9.0.1')]);
  expect(exported()).toEqual({});
});
