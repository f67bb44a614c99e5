import { expect, test } from 'vitest';
import { reconcileMeshConfig } from './mesh-config.ts';

function read(...providers: unknown[]) {
  const { config, problems } = reconcileMeshConfig(JSON.stringify({ extensionProviders: providers }));
  return { authorizers: config.security.authorizers, problems };
}

const http = (more: object = {}, name: unknown = 'a') => ({
  name,
  envoyExtAuthzHttp: { service: 'authz.shop', port: 80, ...more },
});

test('all parts, and what Istio takes for granted', () => {
  const { authorizers, problems } = read(
    http({
      timeout: '1s',
      failOpen: true,
      clearRouteCache: true,
      statusOnError: '503',
      pathPrefix: '/check',
      includeHeadersInCheck: ['x-a'],
      includeAdditionalHeadersInCheck: { b: '%REQ(x-b)%', a: '100%%' },
      headersToUpstreamOnAllow: ['x-*'],
      headersToDownstreamOnDeny: ['*-y'],
      headersToDownstreamOnAllow: ['z'],
      includeRequestBodyInCheck: { maxRequestBytes: 10 },
    }),
    { name: 'b', envoyExtAuthzGrpc: { service: 'ns/authz.shop', port: 65535 } },
    { name: 'tracer', zipkin: {} },
  );
  expect(problems).toMatchObject([{ field: 'extensionProviders[2].zipkin', reason: 'UnsupportedField' }]);
  expect(authorizers).toMatchObject([
    {
      name: 'a',
      protocol: 'http',
      timeout: 1_000,
      failOpen: true,
      clearRouteCache: true,
      statusOnError: 503,
      includeRequestHeaders: ['x-a'],
      additionalHeaders: [
        { name: 'a', value: '100%%' },
        { name: 'b', value: '%REQ(x-b)%' },
      ],
      includeRequestBody: { maxRequestBytes: 10, allowPartialMessage: false, packAsBytes: false },
    },
    { name: 'b', protocol: 'grpc', service: 'ns/authz.shop', port: 65535, timeout: 600_000, failOpen: false },
  ]);
});

const at = (field: string) => `extensionProviders[0].${field}`;
const of = (field: string) => at(`envoyExtAuthzHttp.${field}`);

test.each<[unknown, string]>([
  [http({}, ''), at('name')],
  [http({}, 'A'), at('name')],
  [http({}, '-a'), at('name')],
  [http({}, 'a-'), at('name')],
  [http({}, 'a'.repeat(64)), at('name')],
  [http({ service: '' }), of('service')],
  [http({ port: undefined }), of('port')],
  [http({ port: 0 }), of('port')],
  [http({ port: 65536 }), of('port')],
  [http({ statusOnError: '299' }), of('statusOnError')],
  [http({ statusOnError: 'OK' }), of('statusOnError')],
  [http({ pathPrefix: 'check' }), of('pathPrefix')],
  [http({ includeRequestHeadersInCheck: ['*'] }), of('includeRequestHeadersInCheck[0]')],
  [http({ headersToUpstreamOnAllow: [''] }), of('headersToUpstreamOnAllow[0]')],
  // Envoy rejects all listeners of a workload for each of these.
  [http({ includeRequestBodyInCheck: {} }), of('includeRequestBodyInCheck.maxRequestBytes')],
  [http({ includeRequestBodyInCheck: { maxRequestBytes: 0 } }), of('includeRequestBodyInCheck.maxRequestBytes')],
  [http({ includeAdditionalHeadersInCheck: { 'a b': 'c' } }), of('includeAdditionalHeadersInCheck["a b"]')],
  [http({ includeAdditionalHeadersInCheck: { a: 'b\n' } }), of('includeAdditionalHeadersInCheck["a"]')],
  [http({ includeAdditionalHeadersInCheck: { a: '100%' } }), of('includeAdditionalHeadersInCheck["a"]')],
])('%j cannot be asked, and is told at %s', (provider, field) => {
  const { authorizers, problems } = read(provider);
  expect(authorizers).toEqual([]);
  expect(problems).toContainEqual(expect.objectContaining({ field, reason: 'Invalid' }));
});

test('of two providers with one name neither can be asked', () => {
  const { authorizers, problems } = read(http(), http(), http({}, 'b'));
  expect(authorizers.map(({ name }) => name)).toEqual(['b']);
  expect(problems.map(({ field }) => field)).toEqual(['extensionProviders[0].name', 'extensionProviders[1].name']);
});
