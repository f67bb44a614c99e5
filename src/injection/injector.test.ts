import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Json } from '../api/json.ts';
import { type InjectionResult, MAX_WARNINGS, createInjector } from './injector.ts';
import { loadInjection } from './configuration.ts';
import { STATUS } from './take-out.ts';

const loaded = loadInjection(
  new Map([
    ['config.yaml', 'proxy: {image: p, discoveryAddress: "f:1"}'],
    [
      'sidecar.yaml',
      'spec:\n  containers:\n    - name: istio-proxy\n      image: ${image}\n      env:\n        - ${proxyEnv}\n',
    ],
  ]),
);
const injector = createInjector('config' in loaded ? loaded.config : expect.fail());

function inject(pod: Json, meshConfig: Json = {}): InjectionResult {
  const namespace = { name: 'shop', labels: { 'istio-injection': 'enabled' } };
  return injector.inject({ pod, namespace, meshConfig, parameters: { env: {} } });
}

const container = (name: string, more: Json = {}): Json => ({ name, image: 'x', ...more });

test('250 containers with probes are injected', () => {
  const containers = Array.from({ length: 250 }, (_, i) =>
    container(`app-${i}`, { readinessProbe: { httpGet: { path: '/', port: 8000 + i } } }),
  );
  const result = inject({ metadata: { name: 'many' }, spec: { containers } });
  expect(result).toMatchObject({ warnings: [], pod: { spec: { containers: { length: 251 } } } });
});

test('fields of the annotation with a ProxyConfig that nothing acts on are named, and what happens instead', () => {
  const config = 'concurency: 2\nterminationDrainDuration: 3s\nzipkinAddress: x:1\nproxyHeaders: {server: {value: x}}';
  const metadata = { name: 'web', annotations: { 'proxy.istio.io/config': config } };
  expect(inject({ metadata, spec: { containers: [container('web')] } })).toMatchObject({
    warnings: [
      expect.stringMatching(/proxy\.istio\.io\/config: concurency: unknown field.*Did you mean concurrency\?$/),
      expect.stringMatching(/: proxyHeaders\.server: .* no effect\. Headers are those/),
      expect.stringMatching(/: zipkinAddress: .* no effect\. Use tracing\.zipkin\./),
    ],
  });
});

test('probes that no process could be told of are refused, with what to do', () => {
  const httpGet = { path: `/${'x'.repeat(1000)}`, port: 80 };
  const containers = Array.from({ length: 150 }, (_, i) => container(`app-${i}`, { readinessProbe: { httpGet } }));
  expect(inject({ metadata: { name: 'many' }, spec: { containers } })).toEqual({
    refused: expect.stringMatching(/^Pod shop\/many: .*ISTIO_KUBE_APP_PROBERS.*rewriteAppHTTPProbers: "false"/),
  });
});

test('warnings are bounded', () => {
  const annotations = Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`sidecar.istio.io/misspelt-${i}`, 'x']));
  const pod = { metadata: { name: 'many', annotations }, spec: { containers: [container('a')] } };
  expect(inject(pod)).toHaveProperty('warnings.length', MAX_WARNINGS);
});

test.each([
  ['is told of where connections are redirected', { initContainers: [container('istio-init')] }, 1],
  ['is nothing to tell of where none are, as with gRPC', {}, 0],
])("the proxy's user %s", (_, more, told) => {
  const containers = [container('a', { securityContext: { runAsUser: 1337 } })];
  expect(inject({ metadata: { name: 'a' }, spec: { ...more, containers } })).toHaveProperty('warnings.length', told);
});

test('a mistake in the mesh config is refused where it is written', () => {
  const pod = { metadata: { name: 'a' }, spec: { containers: [container('a')] } };
  expect(inject(pod, { defaultConfig: { concurrency: -1 } })).toEqual({
    refused: 'Pod shop/a: mesh config: defaultConfig: concurrency must be a whole number',
  });
});

test('more is requested than the limit: refused by the names of both annotations', () => {
  const annotations = { 'sidecar.istio.io/proxyMemory': '1Gi', 'sidecar.istio.io/proxyMemoryLimit': '600M' };
  expect(inject({ metadata: { name: 'a', annotations }, spec: { containers: [container('a')] } })).toEqual({
    refused: expect.stringMatching(/proxyMemory: "1Gi" is more than .*proxyMemoryLimit, "600M"/),
  });
});

test('whatever a status says that somebody has written, nothing is thrown, and the Pod keeps its shape', () => {
  const text = fc.oneof(
    fc.json(),
    fc.constant('{'),
    fc
      .record({ containers: fc.anything(), volumes: fc.anything() })
      .map((value) =>
        JSON.stringify({ injector: 'fairlead', ...value }, (_, each: unknown) =>
          typeof each === 'bigint' ? String(each) : each,
        ),
      ),
  );
  fc.assert(
    fc.property(text, text, text, (status, overrides, probers) => {
      const result = inject({
        metadata: { name: 'a', annotations: { [STATUS]: status, 'proxy.istio.io/overrides': overrides } },
        spec: {
          containers: [
            container('a', { readinessProbe: { httpGet: { path: '/app-health/a/readyz', port: 15020 } } }),
            container('istio-proxy', { env: [{ name: 'ISTIO_KUBE_APP_PROBERS', value: probers }] }),
          ],
        },
      });
      expect(Object.keys(result)).toEqual(expect.arrayContaining([expect.stringMatching(/^(pod|untouched|refused)$/)]));
    }),
  );
});

test('whatever a Pod is, nothing is thrown', () => {
  fc.assert(
    fc.property(
      fc.object({ key: fc.constantFrom('metadata', 'spec', 'containers', 'annotations', 'name', 'env') }),
      (pod) => {
        inject(pod as Json);
        inject({ metadata: { name: 'a' }, spec: { ...(pod as Json), containers: [container('a', pod as Json)] } });
      },
    ),
  );
});
