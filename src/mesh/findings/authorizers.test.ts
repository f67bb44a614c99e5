import { expect, test } from 'vitest';
import { MeshLab, objectOf } from '../../../test/harness/lab.ts';

const policy = (spec: object, annotations = {}) => ({
  ...objectOf(
    'AuthorizationPolicy',
    'shop/p',
    { spec: { rules: [{ to: [{ operation: { ports: ['80'] } }] }], ...spec } },
    { annotations },
  ),
  apiVersion: 'security.istio.io/v1',
});
const custom = { action: 'CUSTOM', provider: { name: 'authz' } };
const config = (name: string) => ({
  ...objectOf('ConfigMap', 'istio-system/istio', {
    data: { mesh: `extensionProviders: [{name: ${name}, envoyExtAuthzGrpc: {service: authz.shop, port: 80}}]` },
  }),
  apiVersion: 'v1',
});

const problems = (lab: MeshLab) =>
  [...lab.mesh.problems.byObject.entries()].flatMap(([, found]) =>
    found.map(({ field, reason }) => `${field} ${reason}`),
  );

test('a provider that is not in the mesh config is told, until it is', () => {
  const lab = new MeshLab([policy(custom)]);
  expect(problems(lab)).toEqual(['spec.provider.name RefNotFound']);
  lab.apply([config('other')]);
  expect(problems(lab)).toEqual(['spec.provider.name RefNotFound']);
  lab.apply([config('authz')]);
  expect(problems(lab)).toEqual([]);
});

test('that there is no dry run of CUSTOM is told', () => {
  const lab = new MeshLab([policy(custom, { 'istio.io/dry-run': 'true' }), config('authz')]);
  expect(problems(lab)).toEqual(['metadata.annotations["istio.io/dry-run"] Ineffective']);
});

test('of other actions nothing is told', () => {
  expect(problems(new MeshLab([policy({ action: 'DENY' })]))).toEqual([]);
});
