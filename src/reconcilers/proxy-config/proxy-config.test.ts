import { expect, test } from 'vitest';
import { reconcileProxyConfig, shadowedProxyConfigs } from './proxy-config.ts';

const reconcile = (spec: unknown, metadata: object = {}) =>
  reconcileProxyConfig(
    {
      apiVersion: 'networking.istio.io/v1beta1',
      kind: 'ProxyConfig',
      metadata: { name: 'p', namespace: 'shop', ...metadata },
      ...(spec !== undefined && { spec }),
    },
    'test',
  );

test('all parts of a ProxyConfig', () => {
  const spec = {
    selector: { matchLabels: { app: 'cart' } },
    concurrency: 0,
    environmentVariables: { ISTIO_META_A: 'b' },
    image: { imageType: 'debug' },
  };
  expect(reconcile(spec)).toMatchObject({
    models: [
      {
        ...{ key: 'test/shop/p', target: { kind: 'labels', labels: { app: 'cart' } } },
        ...{ concurrency: 0, environmentVariables: { ISTIO_META_A: 'b' }, imageType: 'debug' },
      },
    ],
    problems: [],
  });
});

test('without a spec it is for the namespace, and sets nothing', () => {
  const { models, problems } = reconcile(undefined);
  expect(models).toMatchObject([{ target: { kind: 'namespace' }, environmentVariables: {} }]);
  expect(models[0]).not.toHaveProperty('concurrency');
  expect(problems).toEqual([]);
});

test.each<[spec: unknown, field: string]>([
  [{ concurrency: -1 }, 'spec.concurrency'],
  [{ concurrency: '2' }, 'spec.concurrency'],
  [{ environmentVariables: { 'A=B': 'c' } }, 'spec.environmentVariables["A=B"]'],
  [{ environmentVariables: { A: 1 } }, 'spec.environmentVariables["A"]'],
  [{ environmentVariables: JSON.parse('{"__proto__": {}}') }, 'spec.environmentVariables["__proto__"]'],
  [{ selector: { matchLabels: { app: 'a*' } } }, 'spec.selector.matchLabels["app"]'],
  [{ selector: [] }, 'spec.selector'],
  [{ image: 'debug' }, 'spec.image'],
  ['text', 'spec'],
])('%j is not valid, and nothing of it is used', (spec, field) => {
  const { models, problems } = reconcile(spec);
  expect(models).toEqual([]);
  expect(problems[0]).toMatchObject({ field, reason: 'Invalid' });
});

test.each([{}, { matchLabels: {} }])('the selector %j selects no Pod, and its owner is told', (selector) => {
  const { models, problems } = reconcile({ selector, concurrency: 2 });
  expect(models).toEqual([]);
  expect(problems).toMatchObject([{ field: 'spec.selector', reason: 'Ineffective' }]);
});

test('of several that say the same about whom they are for, all but the oldest are told', () => {
  const of = (name: string, creationTimestamp: string) => reconcile({}, { name, creationTimestamp }).models[0]!;
  const problems = shadowedProxyConfigs([of('b', '2026-02-01T00:00:00Z'), of('a', '2026-03-01T00:00:00Z')]);
  expect(problems).toMatchObject([
    { object: { name: 'a' }, field: 'spec', reason: 'Conflicted', message: expect.stringContaining('the older') },
  ]);
});
