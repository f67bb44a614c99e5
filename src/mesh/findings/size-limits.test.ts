import { expect, test } from 'vitest';
import type { KubernetesObject } from '../../api/object.ts';
import { TestMesh } from '../../../test/harness/mesh.ts';

const headless = (ports: number, name: string) =>
  ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { namespace: 'shop', name: 'db' },
    spec: {
      clusterIP: 'None',
      ports: Array.from({ length: ports }, (_, i) => ({ name: `${name}-${i}`, port: i + 1 })),
    },
  }) as KubernetesObject;

const slice = (addresses: number) =>
  ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { namespace: 'shop', name: 'db-1', labels: { 'kubernetes.io/service-name': 'db' } },
    addressType: 'IPv4',
    ports: [{ name: 'tcp-0', port: 1, protocol: 'TCP' }],
    endpoints: Array.from({ length: addresses }, (_, i) => ({ addresses: [`10.1.0.${i}`] })),
  }) as KubernetesObject;

test('clients listen at so many addresses and ports of a headless Service, and its owner is told', () => {
  const mesh = new TestMesh();
  const problems = () => [...mesh.mesh.problems.byObject.entries()].flatMap(([, found]) => found);
  mesh.apply([headless(1_000, 'tcp'), slice(10)]);
  expect(problems()).toEqual([]);
  mesh.apply([slice(12)]);
  const message = expect.stringMatching(
    /has 12 endpoints with 1000 ports each; .* connections to the other 2 are/,
  ) as string;
  expect(problems()).toMatchObject([
    { object: { name: 'db' }, field: 'spec.clusterIP', reason: 'Ineffective', message },
  ]);
  mesh.apply([headless(1_000, 'http')]);
  expect(problems()).toEqual([]);
});

test('the owner of a Service is told which lists are too long', () => {
  const mesh = new TestMesh();
  const many = Array.from({ length: 1_001 }, (_, i) => `n${i}`).join(',');
  const service = headless(1_001, 'tcp');
  const annotations = { 'networking.istio.io/exportTo': many };
  mesh.apply([{ ...service, metadata: { ...service.metadata, annotations } }]);
  const problems = [...mesh.mesh.problems.byObject.entries()].flatMap(([, found]) => found);
  expect(problems.map(({ field, message }) => [field, message])).toEqual([
    [
      'metadata.annotations',
      'has 1001 names in networking.istio.io/exportTo; at most 1000 are allowed, and only the first ones are used.',
    ],
    ['spec.ports', 'has 1001 ports; at most 1000 are allowed, and only the first ones are used. Split the Service.'],
  ]);
});
