import { expect, test } from 'vitest';
import type { KubernetesObject } from '../../api/object.ts';
import { MeshLab, proxy, service } from '../../../test/harness/lab.ts';

const long = (rules: number): KubernetesObject =>
  ({
    apiVersion: 'security.istio.io/v1',
    kind: 'AuthorizationPolicy',
    metadata: { name: 'long', namespace: 'shop' },
    spec: {
      action: 'DENY',
      rules: Array.from({ length: rules }, (_, i) => ({
        from: [{ source: { notPrincipals: Array.from({ length: 100 }, (_, j) => `${'x'.repeat(300)}/${i}/${j}`) } }],
      })),
    },
  }) as unknown as KubernetesObject;

test('a listener that policies would make too large accepts nothing, and their owner is told', () => {
  const ports = Array.from({ length: 40 }, (_, i) => ({ name: `http-${i}`, port: 8000 + i, targetPort: 8000 + i }));
  const lab = new MeshLab(
    [service('shop/a', { selector: { app: 'a' }, ports }), long(2)],
    [proxy('a.shop', { app: 'a' }), proxy('b.shop', { app: 'a' }, { GENERATOR: 'grpc' })],
  );
  const ofGrpcServer = () => {
    const all = lab.json('b.shop').lds as { readonly name: string }[];
    return JSON.stringify(all.find(({ name }) => name === 'xds.istio.io/grpc/lds/inbound/0.0.0.0:8000'));
  };
  const listener = () => {
    const all = lab.json('a.shop').lds as { readonly name: string }[];
    return JSON.stringify(all.find(({ name }) => name === 'virtualInbound'));
  };
  const problems = () =>
    [...lab.mesh.problems.byObject.entries()].flatMap(([, found]) =>
      found.filter(({ object }) => object.name === 'long'),
    );
  expect(listener()).toContain('policy[long]-rule[1]');
  expect(ofGrpcServer()).toContain('policy[long]-rule[1]');
  expect(problems()).toEqual([]);
  lab.apply([long(90)]);
  expect(listener()).not.toContain('policy[long]');
  expect(listener()).toContain('"rules":{}');
  expect(ofGrpcServer()).not.toContain('policy[long]');
  expect(ofGrpcServer()).toContain('"rules":{}');
  expect(problems()).toEqual([expect.objectContaining({ field: 'spec.rules', reason: 'Invalid' })]);
});

test('so does one with too many places for tokens', () => {
  const jwks = JSON.stringify({ keys: [{ kty: 'oct', kid: 'a', k: 'c2VjcmV0' }] });
  const tokens = (count: number) =>
    ['a', 'b', 'c'].map((name) => ({
      apiVersion: 'security.istio.io/v1',
      kind: 'RequestAuthentication',
      metadata: { name, namespace: 'shop' },
      spec: {
        jwtRules: Array.from({ length: count }, (_, i) => ({
          issuer: `${name}-${i}`,
          jwks,
          fromCookies: [`${name}-${i}`],
        })),
      },
    })) as unknown as KubernetesObject[];
  const lab = new MeshLab(
    [service('shop/a', { selector: { app: 'a' } }), ...tokens(60)],
    [proxy('a.shop', { app: 'a' })],
  );
  const listener = () => JSON.stringify(lab.json('a.shop').lds);
  const problems = () =>
    [...lab.mesh.problems.byObject.entries()].flatMap(([, found]) =>
      found.filter(({ reason }) => reason === 'Invalid'),
    );
  expect(listener()).toContain('places-179-0');
  expect(problems()).toEqual([]);
  lab.apply(tokens(70));
  expect(listener()).not.toContain('places-');
  expect(listener()).toContain('"rules":{}');
  expect(problems().map(({ object, field }) => [object.name, field])).toEqual(
    ['a', 'b', 'c'].map((name) => [name, 'spec.jwtRules']),
  );
});
