import { expect, test } from 'vitest';
import { routesOf, to, translate } from '../testing/translate.ts';

const defaultRetries = {
  retryOn: 'connect-failure,refused-stream,unavailable,cancelled,retriable-status-codes',
  numRetries: 2,
  hostSelectionRetryMaxAttempts: '5',
  retryHostPredicate: [
    {
      name: 'envoy.retry_host_predicates.previous_hosts',
      typedConfig: {
        '@type': 'type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate',
      },
    },
  ],
};

test('a plain route has no timeout, and the default retries', () => {
  expect(routesOf([to('b')])).toEqual([
    {
      match: { prefix: '/' },
      route: { cluster: 'outbound|80||b', timeout: '0s', maxGrpcTimeout: '0s', retryPolicy: defaultRetries },
      decorator: { operation: 'b:80/*' },
    },
  ]);
});

test.each<[string, object, object]>([
  ['a timeout', { ...to('b'), timeout: '2.5s' }, { route: { timeout: '2.500s', maxGrpcTimeout: '2.500s' } }],
  [
    'a rewritten prefix',
    { ...to('b'), rewrite: { uri: '/x', authority: 'h' } },
    { route: { prefixRewrite: '/x', hostRewriteLiteral: 'h' } },
  ],
  [
    'a rewritten path',
    { ...to('b'), rewrite: { uriRegexRewrite: { match: '^/(.*)$', rewrite: '/x/\\1' } } },
    { route: { regexRewrite: { pattern: { regex: '^/(.*)$' }, substitution: '/x/\\1' } } },
  ],
  [
    'weights, the zeros left out',
    {
      route: [
        { destination: { host: 'b' }, weight: 90 },
        {
          destination: { host: 'c', subset: 'v1' },
          weight: 10,
          headers: { request: { set: { host: 'd' } }, response: { remove: ['r'] } },
        },
        { destination: { host: 'e' }, weight: 0 },
      ],
    },
    {
      route: {
        weightedClusters: {
          clusters: [
            { name: 'outbound|80||b', weight: 90 },
            { name: 'outbound|80|v1|c', weight: 10, hostRewriteLiteral: 'd', responseHeadersToRemove: ['r'] },
          ],
        },
      },
      decorator: { operation: 'v:80/*' },
    },
  ],
  [
    'a single destination with weight 0',
    { route: [{ destination: { host: 'b' }, weight: 0 }] },
    { route: { cluster: 'outbound|80||b' } },
  ],
  [
    'headers of the route and of its only destination',
    {
      headers: { request: { set: { b: '1', a: '2' }, add: { c: '3' }, remove: ['x'] } },
      route: [{ destination: { host: 'b' }, headers: { request: { add: { d: '4' } }, response: { set: { e: '5' } } } }],
    },
    {
      requestHeadersToAdd: [
        { header: { key: 'a', value: '2' }, appendAction: 'OVERWRITE_IF_EXISTS_OR_ADD' },
        { header: { key: 'b', value: '1' }, appendAction: 'OVERWRITE_IF_EXISTS_OR_ADD' },
        { header: { key: 'c', value: '3' } },
        { header: { key: 'd', value: '4' } },
      ],
      requestHeadersToRemove: ['x'],
      responseHeadersToAdd: [{ header: { key: 'e', value: '5' }, appendAction: 'OVERWRITE_IF_EXISTS_OR_ADD' }],
    },
  ],
  [
    'the authority of the route before that of the destination',
    {
      headers: { request: { set: { host: 'route' } } },
      route: [{ destination: { host: 'b' }, headers: { request: { set: { host: 'destination' } } } }],
    },
    { route: { hostRewriteLiteral: 'route' } },
  ],
  [
    'mirrors',
    {
      ...to('b'),
      mirrors: [{ destination: { host: 'c' } }, { destination: { host: 'd' }, percentage: { value: 0.5 } }],
    },
    {
      route: {
        requestMirrorPolicies: [
          {
            cluster: 'outbound|80||c',
            runtimeFraction: { defaultValue: { numerator: 100 } },
            traceSampled: false,
            disableShadowHostSuffixAppend: true,
          },
          { cluster: 'outbound|80||d', runtimeFraction: { defaultValue: { numerator: 5000, denominator: 'MILLION' } } },
        ],
      },
    },
  ],
  [
    'a mirror with the deprecated percentage',
    { ...to('b'), mirror: { host: 'c' }, mirrorPercent: 7 },
    { route: { requestMirrorPolicies: [{ runtimeFraction: { defaultValue: { numerator: 7 } } }] } },
  ],
  [
    'a destination that does not exist',
    to('nowhere'),
    { route: { cluster: 'BlackHoleCluster' }, decorator: { operation: 'nowhere:80/*' } },
  ],
  [
    'a redirect',
    { redirect: { authority: 'h', uri: '/x', redirectCode: 308 } },
    {
      redirect: { hostRedirect: 'h', pathRedirect: '/x', responseCode: 'PERMANENT_REDIRECT' },
      decorator: { operation: 'v:80/*' },
    },
  ],
  [
    'a redirect of the scheme alone',
    { redirect: { scheme: 'https' } },
    { redirect: { schemeRedirect: 'https', pathRedirect: '' } },
  ],
  [
    'a redirect of a prefix',
    { match: [{ uri: { prefix: '/a' } }], redirect: { prefixRewrite: '/b' } },
    { redirect: { prefixRewrite: '/b' } },
  ],
  [
    'a direct response',
    { directResponse: { status: 503, body: { string: 'x' } } },
    { directResponse: { status: 503, body: { inlineString: 'x' } } },
  ],
  [
    'bytes as a direct response',
    { directResponse: { status: 200, body: { bytes: 'aGk=' } } },
    { directResponse: { body: { inlineBytes: 'aGk=' } } },
  ],
  [
    'a fault',
    {
      ...to('b'),
      fault: {
        delay: { fixedDelay: '1s', percent: 7 },
        abort: { grpcStatus: 'UNAVAILABLE', percentage: { value: 0.29 } },
      },
    },
    {
      typedPerFilterConfig: {
        'envoy.filters.http.fault': {
          delay: { fixedDelay: '1s', percentage: { numerator: 7 } },
          abort: { grpcStatus: 14, percentage: { numerator: 2900, denominator: 'MILLION' } },
        },
      },
    },
  ],
  [
    'CORS',
    { ...to('b'), corsPolicy: { allowOrigins: [{ regex: '.*' }], maxAge: '1.5s', unmatchedPreflights: 'IGNORE' } },
    {
      typedPerFilterConfig: {
        'envoy.filters.http.cors': {
          allowOriginStringMatch: [{ safeRegex: { regex: '.*' } }],
          maxAge: '1',
          filterEnabled: { defaultValue: { numerator: 100 } },
          forwardNotMatchingPreflights: false,
        },
      },
    },
  ],
  ['hash by header', to('header'), { route: { hashPolicy: [{ header: { headerName: 'x-user' } }] } }],
  ['hash by query parameter', to('query'), { route: { hashPolicy: [{ queryParameter: { name: 'user' } }] } }],
  ['hash by address', to('source'), { route: { hashPolicy: [{ connectionProperties: { sourceIp: true } }] } }],
  [
    'hash by cookie',
    to('cookie'),
    {
      route: {
        hashPolicy: [
          { cookie: { name: 'c', path: '/p', ttl: '5s', attributes: [{ name: 'SameSite', value: 'Lax' }] } },
        ],
      },
    },
  ],
])('%s', (_, route, expected) => {
  expect(routesOf([route])).toMatchObject([expected]);
});

test('a hash keeps retries where it leads, unless there are several destinations', () => {
  const { retryHostPredicate, ...hashed } = defaultRetries;
  expect(routesOf([to('header')])).toMatchObject([{ route: { retryPolicy: hashed } }]);
  expect(JSON.stringify(routesOf([to('header')]))).not.toContain('retryHostPredicate');
  const several = { route: to('header', 'b').route.map((one) => ({ ...one, weight: 1 })) };
  expect(routesOf([several])).toMatchObject([{ route: { hashPolicy: [{}], retryPolicy: { retryHostPredicate } } }]);
});

test.each([
  [{ port: 8443, scheme: 'https' }, {}, 8443],
  [{ port: 443, scheme: 'https' }, {}, undefined],
  [{ port: 80 }, {}, undefined],
  [{ port: 80 }, { tls: true }, 80],
  [{ port: 443 }, { tls: true }, undefined],
  [{ derivePort: 'FROM_REQUEST_PORT' }, { listenerPort: 8080 }, 8080],
  [{ derivePort: 'FROM_REQUEST_PORT' }, { listenerPort: 80 }, undefined],
  [{ derivePort: 'FROM_PROTOCOL_DEFAULT', uri: '/' }, { listenerPort: 8080 }, undefined],
])('the redirect %j at %j has port %s', (redirect, options, port) => {
  const { routes } = translate([{ redirect }], options);
  expect(routes[0]?.redirect?.portRedirect).toBe(port);
});

test('what is missing is reported with its field, once for a route with several matches', () => {
  const { problems, clusters } = translate([
    { match: [{ uri: { prefix: '/a' } }, { uri: { prefix: '/b' } }], ...to('nowhere') },
    {
      route: [
        { destination: { host: 'b' }, weight: 1 },
        { destination: { host: 'c', subset: 'none' }, weight: 9 },
      ],
      mirror: { host: 'nowhere' },
    },
  ]);
  expect(problems).toMatchObject([
    { object: { name: 'v' }, field: 'spec.http[0].route[0].destination.host', reason: 'RefNotFound' },
    { field: 'spec.http[1].mirror.host' },
    { field: 'spec.http[1].route[1].destination.subset' },
  ]);
  expect(clusters).toEqual(['BlackHoleCluster', 'outbound|80||b']);
});

test('origins are the object of the routes and the rules with a hash', () => {
  expect(translate([to('header'), to('b')]).origins).toMatchObject([
    { kind: 'VirtualService', name: 'v' },
    { name: 'hashed' },
  ]);
});
