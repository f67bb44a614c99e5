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

test('only variables that tune the agent or describe the proxy are set, and the owner is told of others', () => {
  const kept = { ISTIO_META_A: 'b', ISTIO_META_DNS_CAPTURE: 'true', EXIT_ON_ZERO_ACTIVE_CONNECTIONS: 'true' };
  const others = {
    ...{ NODE_OPTIONS: '--import=data:text/javascript,0', LD_PRELOAD: '/dev/shm/x.so', PATH: '/dev/shm', ENV: 'x' },
    ...{ CA_ADDR: 'evil.example.com:15012', XDS_ROOT_CA: 'SYSTEM', PROXY_CONFIG: '{}', ISTIO_BOOTSTRAP_OVERRIDE: 'x' },
    ...{
      ISTIO_METAJSON_LABELS: '{"app":"x"}',
      ISTIO_METAJSON_B: '{"STATIC_LABELS":{"app":"x"}}',
      ISTIO_META_NAME: 'x',
    },
    ...{ ISTIO_META_INSTANCE_IPS: '10.0.0.1', ISTIO_META_INTERCEPTION_MODE: 'NONE', ISTIO_META_TLS_SERVER_KEY: '/x' },
    ...{ POD_NAMESPACE: 'other', DISABLE_ENVOY: 'true', ISTIO_META_: 'x', A: 'b' },
  };
  const { models, problems } = reconcile({ environmentVariables: { ...others, ...kept } });
  expect(models).toMatchObject([{ environmentVariables: kept }]);
  expect(Object.keys(models[0]!.environmentVariables)).toHaveLength(3);
  expect(problems.map(({ field, reason }) => [field, reason])).toEqual(
    Object.keys(others)
      .sort()
      .map((name) => [`spec.environmentVariables["${name}"]`, 'Ineffective']),
  );
  const messageOf = (name: string) => problems.find(({ field }) => field.includes(`"${name}"`))?.message;
  expect(messageOf('NODE_OPTIONS')).toContain('remove it');
  expect(messageOf('CA_ADDR')).toContain('proxy.istio.io/config');
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
