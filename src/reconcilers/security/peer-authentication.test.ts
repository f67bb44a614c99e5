import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { PeerAuthentication } from '../../api/gen/peer-authentication.gen.ts';
import { peerModes } from '../../model/peer-authentication.ts';
import { reconcilePeerAuthentication } from './peer-authentication.ts';
import { anyJson } from './testing/any-json.ts';
import { runs } from '../../testing/runs.ts';

function reconcile(spec: unknown) {
  const metadata = { name: 'p', namespace: 'shop' };
  const object = { apiVersion: 'security.istio.io/v1', kind: 'PeerAuthentication', metadata, spec };
  return reconcilePeerAuthentication(object as PeerAuthentication, 'test');
}

const selector = { matchLabels: { app: 'a' } };

test.each<[object, string | undefined]>([
  [{}, undefined],
  [{ mtls: {} }, undefined],
  [{ mtls: { mode: 'UNSET' } }, undefined],
  [{ mtls: { mode: 'STRICT' } }, 'STRICT'],
  [{ mtls: { mode: 'PERMISSIVE' } }, 'PERMISSIVE'],
  [{ mtls: { mode: 'DISABLE' } }, 'DISABLE'],
])('%j has the mode %j', (spec, mode) => {
  const { model, problems } = reconcile(spec);
  expect(problems).toEqual([]);
  expect(model).toMatchObject({ mode, ports: {}, target: { kind: 'namespace' } });
});

test('ports have modes of their own; one that is unset has that of the workload', () => {
  const levels = { 80: { mode: 'DISABLE' }, 65535: { mode: 'UNSET' }, 1: null };
  const { model, problems } = reconcile({ selector, mtls: { mode: 'STRICT' }, portLevelMtls: levels });
  expect(problems).toEqual([]);
  expect(model.target).toEqual({ kind: 'labels', labels: { app: 'a' } });
  expect(peerModes({ workload: model })).toEqual({
    mode: 'STRICT',
    ports: { 1: 'STRICT', 80: 'DISABLE', 65535: 'STRICT' },
  });
});

test.each<[object, string, object]>([
  [{ mtls: { mode: 'strict' } }, 'spec.mtls.mode', { mode: 'STRICT' }],
  [{ mtls: { mode: 1 } }, 'spec.mtls.mode', { mode: 'STRICT' }],
  [{ mtls: 'DISABLE' }, 'spec.mtls', { mode: 'STRICT' }],
  [[], 'spec', { mode: 'STRICT' }],
  [{ portLevelMtls: { 80: { mode: 'DISABLE' } } }, 'spec.portLevelMtls', {}],
  [{ selector: {}, portLevelMtls: { 80: { mode: 'DISABLE' } } }, 'spec.portLevelMtls', {}],
  [{ selector, portLevelMtls: {} }, 'spec.portLevelMtls', {}],
  [{ selector, portLevelMtls: { 0: {} } }, 'spec.portLevelMtls["0"]', { ports: {} }],
  [{ selector, portLevelMtls: { 65536: {} } }, 'spec.portLevelMtls["65536"]', { ports: {} }],
  [{ selector, portLevelMtls: { http: {} } }, 'spec.portLevelMtls["http"]', { ports: {} }],
  [{ selector, portLevelMtls: { 80: { mode: 'x' } } }, 'spec.portLevelMtls["80"].mode', { ports: { 80: 'STRICT' } }],
  [{ selector, portLevelMtls: { 80: 'DISABLE' } }, 'spec.portLevelMtls["80"]', { ports: { 80: 'STRICT' } }],
  // It is for everybody until it is mended, and nobody becomes less strict by it.
  [
    { selector: { matchLabels: { a: '*' } }, mtls: { mode: 'DISABLE' } },
    'spec.selector.matchLabels["a"]',
    { mode: 'STRICT', ports: {}, target: { kind: 'namespace' } },
  ],
  [{ selector: 'a', mtls: { mode: 'PERMISSIVE' } }, 'spec.selector', { mode: 'STRICT', target: { kind: 'namespace' } }],
])('%j is told at %s, and stays in force: %j', (spec, field, kept) => {
  const { model, problems } = reconcile(spec);
  expect(problems).toContainEqual(expect.objectContaining({ field, reason: 'Invalid' }));
  expect(model).toMatchObject(kept);
});

test('a mode that cannot be read is STRICT, also behind as many problems as are reported', () => {
  const levels = Object.fromEntries(Array.from({ length: 150 }, (_, i) => [i + 1, { mode: 'strict' }]));
  const { model, problems } = reconcile({ selector, portLevelMtls: levels });
  expect(problems).toHaveLength(101);
  expect(new Set(Object.values(model.ports))).toEqual(new Set(['STRICT']));
});

test('whatever JSON a policy is, it is read without throwing', () => {
  const keys = ['selector', 'matchLabels', 'mtls', 'mode', 'portLevelMtls', '80', 'app'];
  fc.assert(
    fc.property(anyJson(keys, ['STRICT', 'DISABLE', 'a', '*']), (spec) => {
      const { mode } = peerModes({ namespace: reconcile(spec).model });
      expect(['STRICT', 'PERMISSIVE', 'DISABLE']).toContain(mode);
    }),
    { numRuns: runs(2000) },
  );
});
