import fc from 'fast-check';
import { expect, test } from 'vitest';
import { reconcileVirtualService } from './virtual-service.ts';
import { runs } from '../../testing/runs.ts';

const to = (host: string) => [{ destination: { host } }];

function reconcile(spec: unknown) {
  return reconcileVirtualService(
    {
      apiVersion: 'networking.istio.io/v1',
      kind: 'VirtualService',
      metadata: { name: 'v', namespace: 'shop', generation: 3, creationTimestamp: '2026-01-01T00:00:00Z' },
      spec,
    },
    { source: 'test', domainSuffix: 'cluster.local', rootNamespace: 'istio-system', defaultExportTo: ['*'] },
  );
}

const http = (...routes: object[]) => ({ hosts: ['a'], http: routes });
const route = { route: to('a') };
const match = (value: object) => http({ match: [value], ...route });
const tls = (value: object) => ({ hosts: ['a.com'], tls: [{ match: [value], ...route }] });

const values = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`x-${i}`, 'a']));

test.each<[string, unknown, string]>([
  [
    'more than 500 headers',
    http({ ...route, headers: { request: { set: values(500), add: { b: 'c' } } } }),
    'spec.http[0].headers.request',
  ],
  [
    'more than 500 headers of a destination',
    http({ route: [{ ...to('a')[0], headers: { response: { add: values(501) } } }] }),
    'spec.http[0].route[0].headers.response',
  ],
  ['no spec', undefined, 'spec'],
  ['a spec that is a list', [], 'spec'],
  ['no routes', { hosts: ['a'] }, 'spec'],
  ['a host that is none', { hosts: ['a b'], http: [route] }, 'spec.hosts[0]'],
  ['a wildcard inside', { hosts: ['a.*.b'], http: [route] }, 'spec.hosts[0]'],
  ['a host with half a surrogate pair', { hosts: ['a\ud800'], http: [route] }, 'spec.hosts[0]'],
  ['a host that is a number', { hosts: [1], http: [route] }, 'spec.hosts[0]'],
  ['hosts that are a text', { hosts: 'a', http: [route] }, 'spec.hosts'],
  ['a gateway that is none', { ...http(route), gateways: ['a/b/c'] }, 'spec.gateways[0]'],
  ['a delegate with gateways', { gateways: ['g'], http: [route] }, 'spec.gateways'],
  ['a delegate that delegates', { http: [{ delegate: { name: 'x' } }] }, 'spec.http[0].delegate'],
  ['a route that is null', { hosts: ['a'], http: [null] }, 'spec.http[0]'],
  ['a route without action', http({}), 'spec.http[0]'],
  ['a route and a redirect', http({ ...route, redirect: { uri: '/' } }), 'spec.http[0].redirect'],
  ['a fault and a redirect', http({ fault: {}, redirect: { uri: '/' } }), 'spec.http[0].redirect'],
  ['a route and a direct response', http({ ...route, directResponse: { status: 200 } }), 'spec.http[0].directResponse'],
  ['a route and a delegate', http({ ...route, delegate: { name: 'x' } }), 'spec.http[0].delegate'],
  ['a delegate without name', http({ delegate: {} }), 'spec.http[0].delegate.name'],
  ['no destination', http({ route: [{}] }), 'spec.http[0].route[0].destination'],
  ['a destination without host', http({ route: [{ destination: {} }] }), 'spec.http[0].route[0].destination.host'],
  ['the destination *', http({ route: to('*') }), 'spec.http[0].route[0].destination.host'],
  [
    'a port of 0',
    http({ route: [{ destination: { host: 'a', port: { number: 0 } } }] }),
    'spec.http[0].route[0].destination.port.number',
  ],
  [
    'a subset that is not a name',
    http({ route: [{ destination: { host: 'a', subset: 'a b' } }] }),
    'spec.http[0].route[0].destination.subset',
  ],
  [
    'weights of 0',
    http({
      route: [
        { ...to('a')[0], weight: 0 },
        { ...to('b')[0], weight: 0 },
      ],
    }),
    'spec.http[0].route',
  ],
  ['a negative weight', http({ route: [{ ...to('a')[0], weight: -1 }] }), 'spec.http[0].route[0].weight'],
  [
    'weights beyond 32 bits',
    http({ route: [1, 2, 3].map(() => ({ ...to('a')[0], weight: 2147483647 })) }),
    'spec.http[0].route',
  ],
  ['a regex of JavaScript', match({ uri: { regex: '(?=x)' } }), 'spec.http[0].match[0].uri.regex'],
  ['an empty header prefix', match({ headers: { a: { prefix: '' } } }), 'spec.http[0].match[0].headers["a"].prefix'],
  ['a header match that is null', match({ headers: { a: null } }), 'spec.http[0].match[0].headers["a"]'],
  ['a header that is none', match({ headers: { 'a b': {} } }), 'spec.http[0].match[0].headers["a b"]'],
  ['two kinds of match', match({ uri: { exact: 'a', prefix: 'b' } }), 'spec.http[0].match[0].uri'],
  ['a port beyond 65535', match({ port: 65536 }), 'spec.http[0].match[0].port'],
  ['a port that is a text', match({ port: '80' }), 'spec.http[0].match[0].port'],
  ['a source namespace that is none', match({ sourceNamespace: 'A' }), 'spec.http[0].match[0].sourceNamespace'],
  ['a source label that is none', match({ sourceLabels: { a: 'b,c' } }), 'spec.http[0].match[0].sourceLabels'],
  ['a redirect that changes nothing', http({ redirect: {} }), 'spec.http[0].redirect'],
  ['a redirect code', http({ redirect: { uri: '/', redirectCode: 304 } }), 'spec.http[0].redirect.redirectCode'],
  ['a redirect scheme', http({ redirect: { scheme: 'ftp' } }), 'spec.http[0].redirect.scheme'],
  ['a line break in a redirect', http({ redirect: { uri: '/\n' } }), 'spec.http[0].redirect.uri'],
  [
    'two ports of a redirect',
    http({ redirect: { port: 1, derivePort: 'FROM_REQUEST_PORT' } }),
    'spec.http[0].redirect',
  ],
  ['a direct response of 99', http({ directResponse: { status: 99 } }), 'spec.http[0].directResponse.status'],
  ['a direct response without status', http({ directResponse: {} }), 'spec.http[0].directResponse.status'],
  [
    'a body above 1 MiB',
    http({ directResponse: { status: 200, body: { string: 'x'.repeat(1048577) } } }),
    'spec.http[0].directResponse.body',
  ],
  [
    'a body that is not base64',
    http({ directResponse: { status: 200, body: { bytes: '?' } } }),
    'spec.http[0].directResponse.body.bytes',
  ],
  ['an empty rewrite', http({ ...route, rewrite: {} }), 'spec.http[0].rewrite'],
  [
    'a rewrite with a missing group',
    http({ ...route, rewrite: { uriRegexRewrite: { match: 'a', rewrite: '\\1' } } }),
    'spec.http[0].rewrite.uriRegexRewrite.match',
  ],
  ['a timeout that is none', http({ ...route, timeout: '1 day' }), 'spec.http[0].timeout'],
  ['a timeout below a millisecond', http({ ...route, timeout: '10us' }), 'spec.http[0].timeout'],
  ['a negative timeout', http({ ...route, timeout: '-1s' }), 'spec.http[0].timeout'],
  [
    'a retry condition',
    http({ ...route, retries: { attempts: 1, retryOn: '5xx,sometimes' } }),
    'spec.http[0].retries.retryOn',
  ],
  ['a back-off of 0', http({ ...route, retries: { attempts: 1, backoff: '0s' } }), 'spec.http[0].retries.backoff'],
  ['an empty fault', http({ ...route, fault: {} }), 'spec.http[0].fault'],
  ['a delay without duration', http({ ...route, fault: { delay: {} } }), 'spec.http[0].fault.delay.fixedDelay'],
  ['a delay of 0', http({ ...route, fault: { delay: { fixedDelay: '0s' } } }), 'spec.http[0].fault.delay.fixedDelay'],
  [
    'an abort with 700',
    http({ ...route, fault: { abort: { httpStatus: 700 } } }),
    'spec.http[0].fault.abort.httpStatus',
  ],
  ['a gRPC status', http({ ...route, fault: { abort: { grpcStatus: 'BAD' } } }), 'spec.http[0].fault.abort.grpcStatus'],
  [
    'a percentage above 100',
    http({ ...route, fault: { abort: { httpStatus: 500, percentage: { value: 101 } } } }),
    'spec.http[0].fault.abort.percentage.value',
  ],
  [
    'a mirror and mirrors',
    http({ ...route, mirror: { host: 'b' }, mirrors: [{ destination: { host: 'b' } }] }),
    'spec.http[0].mirrors',
  ],
  ['a CORS method', http({ ...route, corsPolicy: { allowMethods: ['get'] } }), 'spec.http[0].corsPolicy.allowMethods'],
  [
    'an empty origin',
    http({ ...route, corsPolicy: { allowOrigins: [{}] } }),
    'spec.http[0].corsPolicy.allowOrigins[0]',
  ],
  [
    'a header name',
    http({ ...route, headers: { request: { set: { 'a b': 'c' } } } }),
    'spec.http[0].headers.request.set["a b"]',
  ],
  [
    'a header value',
    http({ ...route, headers: { request: { set: { a: 'b\r\nc' } } } }),
    'spec.http[0].headers.request.set["a"]',
  ],
  [
    'a lone percent sign',
    http({ ...route, headers: { response: { add: { a: '50%' } } } }),
    'spec.http[0].headers.response.add["a"]',
  ],
  ['tls without match', { hosts: ['a.com'], tls: [route] }, 'spec.tls[0].match'],
  ['tls without server names', tls({}), 'spec.tls[0].match[0].sniHosts'],
  ['a server name of others', tls({ sniHosts: ['b.com'] }), 'spec.tls[0].match[0].sniHosts[0]'],
  [
    'a server name with part of a label',
    { hosts: ['*.com'], tls: [{ match: [{ sniHosts: ['*a.com'] }], ...route }] },
    'spec.tls[0].match[0].sniHosts[0]',
  ],
  [
    'a subnet',
    tls({ sniHosts: ['a.com'], destinationSubnets: ['10.0.0.0/33'] }),
    'spec.tls[0].match[0].destinationSubnets[0]',
  ],
  [
    'an address with a zone for a range',
    tls({ sniHosts: ['a.com'], destinationSubnets: ['fe80::1%eth0'] }),
    'spec.tls[0].match[0].destinationSubnets[0]',
  ],
  ['tcp without destination', { hosts: ['a'], tcp: [{}] }, 'spec.tcp[0].route'],
])('%s is refused', (_, spec, field) => {
  const { models, problems } = reconcile(spec);
  expect(models).toEqual([]);
  expect(problems.map((problem) => problem.field)).toContain(field);
  for (const problem of problems) {
    expect(problem.reason).toBe('Invalid');
    expect(problem.message).toMatch(/\S/);
    expect(problem.message.isWellFormed()).toBe(true);
  }
});

test('all that is wrong is reported at once', () => {
  const { problems } = reconcile({ hosts: ['a b'], http: [{ timeout: 'x', route: to('*') }, {}] });
  expect(problems.map((problem) => problem.field)).toEqual([
    'spec.hosts[0]',
    'spec.http[0].route[0].destination.host',
    'spec.http[0].timeout',
    'spec.http[1]',
  ]);
});

test('10,000 routes are read, and as many broken ones make a short list of problems', () => {
  const many = (extra: object) =>
    Array.from({ length: 10_000 }, (_, i) => ({ match: [{ uri: { prefix: `/${i}` } }], ...extra }));
  expect(reconcile(http(...many(route))).models[0]?.http).toHaveLength(10_000);
  const { models, problems } = reconcile(http(...many({})));
  expect(models).toEqual([]);
  expect(problems).toHaveLength(101);
  expect(problems.at(-1)).toMatchObject({ standsFor: 9_900 });
});

test('no JSON makes it throw', () => {
  const keys = fc.constantFrom(
    ...[
      'hosts',
      'http',
      'tcp',
      'tls',
      'match',
      'route',
      'uri',
      'regex',
      'headers',
      'request',
      'set',
      '__proto__',
      'constructor',
    ],
    ...[
      'redirect',
      'fault',
      'delay',
      'destination',
      'host',
      'weight',
      'timeout',
      'mirrors',
      'corsPolicy',
      'sniHosts',
      'delegate',
    ],
  );
  const { json } = fc.letrec((tie) => ({
    json: fc.oneof(
      { depthSize: 'large', withCrossShrink: true },
      fc.string({ unit: 'binary' }),
      fc.constantFrom('', '*', 'a', '\ud800', '\0', '(', '1s'),
      fc.double(),
      fc.constant(null),
      fc.boolean(),
      fc.array(tie('json'), { maxLength: 4 }),
      fc.dictionary(keys, tie('json'), { maxKeys: 6 }),
    ),
  }));
  fc.assert(
    fc.property(json, (spec) => {
      const { models, problems } = reconcile(spec);
      expect(models.length === 1 || problems.length > 0).toBe(true);
    }),
    { numRuns: runs(2000) },
  );
});

test('regexes that hold others up together are refused before they are compiled, and many simple ones are not', () => {
  const routes = (regex: (i: number) => string) =>
    http(...Array.from({ length: 1_500 }, (_, i) => ({ match: [{ uri: { regex: regex(i) } }], route: to('a') })));
  expect(reconcile(routes((i) => `/api/v${i}/[0-9]+/items/.*`)).models).toHaveLength(1);
  const { models, problems } = reconcile(routes((i) => `${i}[a-z]{1,900}`));
  expect(models).toEqual([]);
  expect(problems[0]?.message).toContain('exceeds a limit');
});

test('server names are looked up among hosts, however many there are of both', () => {
  const hosts = Array.from({ length: 20_000 }, (_, i) => `h${i}.example.com`);
  const spec = { hosts, tls: [{ match: [{ sniHosts: hosts }], route: to('a') }] };
  expect(reconcile(spec).problems).toEqual([]);
  expect(reconcile({ ...spec, hosts: ['*.example.com'] }).problems).toEqual([]);
});
