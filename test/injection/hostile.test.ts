import { expect, test } from 'vitest';
import type { Json } from '../../src/api/json.ts';
import { diff } from '../../src/webhooks/json-patch.ts';
import { injectorWith } from './case.ts';

const many = <T>(length: number, each: (i: number) => T): readonly T[] => Array.from({ length }, (_, i) => each(i));
const named = (length: number, more: object = {}) => many(length, (i) => ({ name: `n${i}`, ...more }));
const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth);

const podWith = (metadata: object, spec: object = {}): Json => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'cart', ...metadata },
  spec: { containers: [{ name: 'cart', image: 'cart' }], ...spec },
});
const annotated = (annotations: object): Json => podWith({ annotations });
const proxyWith = (members: object): Json =>
  podWith({}, { containers: [{ name: 'istio-proxy', image: 'auto', ...members }] });
const overridden = (overrides: string): Json =>
  annotated({
    'sidecar.istio.io/status': '{"injector":"fairlead","containers":["istio-proxy"]}',
    'proxy.istio.io/overrides': overrides,
  });

const injector = injectorWith();

/** What the API server would be sent: the refusal, why the Pod is left alone, or that there is a patch. */
function answer(pod: Json): string {
  const namespace = { name: 'shop', labels: { 'istio-injection': 'enabled' } };
  const result = injector.inject({ pod, namespace, meshConfig: {}, parameters: { env: {} } });
  if ('refused' in result) return result.refused;
  if ('untouched' in result) return result.untouched;
  return diff(pod, result.pod).length > 0 ? 'patch' : 'no patch';
}

/** Of a caller who may create Pods, and whose object is not checked by Kubernetes before it comes here. */
test.each<[what: string, pod: Json, expected: RegExp]>([
  [
    'volumes nested deeply',
    annotated({ 'sidecar.istio.io/userVolume': `{"a":${nested(50_000)}}` }),
    /nested too deeply/,
  ],
  ['settings nested deeply', annotated({ 'proxy.istio.io/config': nested(50_000) }), /nested more than 100 levels/],
  ['a record of ours nested deeply', overridden(`{"containers":${nested(50_000)}}`), /^patch$/],
  ['very long annotations', annotated({ a: 'x'.repeat(300_000) }), /annotations are longer than 256 KiB/],
  [
    'annotations and labels that are null',
    podWith({ annotations: { 'proxy.istio.io/config': null }, labels: { app: null } }),
    /^patch$/,
  ],
  ['no spec worth the name', podWith({}, { containers: null, volumes: null }), /^patch$/],
  ['very many containers', podWith({}, { containers: named(50_000) }), /longer than the 128 KiB/],
  ['very many init containers', podWith({}, { initContainers: named(50_000) }), /^patch$/],
  [
    'very many volumes and secrets',
    podWith({}, { volumes: named(50_000), imagePullSecrets: named(50_000) }),
    /^patch$/,
  ],
  ['very many labels', podWith({ labels: Object.fromEntries(named(50_000).map(({ name }) => [name, ''])) }), /^patch$/],
  ['very many variables of the proxy', proxyWith({ env: named(40_000, { value: '' }) }), /256 KiB/],
  [
    'very many ports of the proxy',
    proxyWith({ ports: many(40_000, (i) => ({ containerPort: i + 20_000 })) }),
    /256 KiB/,
  ],
  [
    'a name that is too long',
    podWith({ name: 'x'.repeat(1_000_000) }, { hostNetwork: 'yes' }),
    /^Pod: spec\.hostNetwork must be/,
  ],
  ['numbers as text', proxyWith({ securityContext: { runAsUser: '1337' } }), /runAsUser must be a whole number$/],
])('a Pod with %s gets an answer', (_, pod, expected) => {
  const text = answer(pod);
  expect(text).toMatch(expected);
  expect(text.length).toBeLessThan(1_000);
});

test('names that objects of JavaScript have are names like any other', () => {
  const pod = JSON.parse(`{
    "metadata": {"labels": {"__proto__": "a", "constructor": "b"}, "annotations": {"__proto__": "c"}},
    "spec": {"containers": [
      {"name": "constructor"},
      {"name": "istio-proxy", "image": "auto", "resources": {"limits": {"__proto__": "1"}}}
    ]}
  }`) as Json;
  const namespace = { name: 'shop', labels: { 'istio-injection': 'enabled' } };
  const result = injector.inject({ pod, namespace, meshConfig: {}, parameters: { env: {} } });
  const text = JSON.stringify(result);
  for (const kept of ['"__proto__":"a"', '"constructor":"b"', '"__proto__":"c"', '"limits":{"__proto__":"1"}'])
    expect(text).toContain(kept);
});

test.each(['sidecar', 'gateway', 'grpc-agent', 'grpc-simple'])(
  'no variable that chooses code gets into a container by the template %s, and those who create Pods read so',
  (template) => {
    const names = ['NODE_OPTIONS', 'NODE_PATH', 'LD_PRELOAD', 'LD_LIBRARY_PATH', 'OPENSSL_CONF', 'GCONV_PATH', 'PATH'];
    const proxyMetadata = Object.fromEntries(names.map((name) => [name, 'mark-of-it']));
    const result = injector.inject({
      pod: annotated({
        'proxy.istio.io/config': JSON.stringify({ proxyMetadata }),
        'inject.istio.io/templates': template,
      }),
      namespace: { name: 'shop', labels: { 'istio-injection': 'enabled' } },
      meshConfig: { defaultConfig: { proxyMetadata } },
      parameters: { env: { LD_AUDIT: 'mark-of-it' } },
    });
    if (!('pod' in result)) return expect.unreachable();
    expect(JSON.stringify(result.pod['spec'])).not.toContain('mark-of-it');
    expect(result.warnings.join()).toContain('"NODE_OPTIONS", "NODE_PATH", "LD_PRELOAD" and 5 more are not set');
  },
);

test('what sets up interception, as root, gets no variables of others', () => {
  const config = 'proxyMetadata: {ISTIO_META_A: b, INVALID_DROP: "true", ISTIO_OUTBOUND_OWNER_GROUPS: "2000"}';
  const namespace = { name: 'shop', labels: { 'istio-injection': 'enabled' } };
  const of = (text: string) =>
    injector.inject({
      pod: annotated({ 'proxy.istio.io/config': text }),
      ...{ namespace, meshConfig: {}, parameters: { env: {} } },
    });
  const result = of(config);
  const { initContainers } = ('pod' in result ? result.pod['spec'] : expect.fail()) as Json;
  const init = (initContainers as Json[]).find(({ name }) => name === 'istio-init')!;
  expect(init).not.toHaveProperty('env');
  expect(init['args']).toEqual(expect.arrayContaining(['--drop-invalid', '--owner-groups', '2000']));
  expect(of('proxyMetadata: {ISTIO_OUTBOUND_OWNER_GROUPS: "x; y"}')).toEqual({
    refused: expect.stringContaining('variable ISTIO_OUTBOUND_OWNER_GROUPS: ') as string,
  });
});
