import { expect, test } from 'vitest';
import { routesOf, to, translate } from '../testing/translate.ts';

test.each<[object, object, string]>([
  [{ uri: { exact: '/x' } }, { path: '/x' }, '/x'],
  [{ uri: { prefix: '/x' }, ignoreUriCase: true }, { prefix: '/x', caseSensitive: false }, '/x*'],
  [{ uri: { regex: '/x.+' } }, { safeRegex: { regex: '/x.+' } }, '/x.+'],
  [{ uri: {} }, { prefix: '/', caseSensitive: true }, '/*'],
  [
    {
      headers: { b: { prefix: 'x' } },
      withoutHeaders: { a: {}, c: { exact: 'y' } },
      method: { exact: 'GET' },
      scheme: { exact: 'https' },
      authority: {},
    },
    {
      headers: [
        { name: 'a', presentMatch: true, invertMatch: true },
        { name: 'b', stringMatch: { prefix: 'x' } },
        { name: 'c', stringMatch: { exact: 'y' }, invertMatch: true, treatMissingHeaderAsEmpty: true },
        { name: ':method', stringMatch: { exact: 'GET' } },
        { name: ':authority', presentMatch: true },
        { name: ':scheme', stringMatch: { exact: 'https' } },
      ],
    },
    '/*',
  ],
  [
    { queryParams: { p: {}, q: { regex: 'x' } } },
    {
      queryParameters: [
        { name: 'p', presentMatch: true },
        { name: 'q', stringMatch: { safeRegex: { regex: 'x' } } },
      ],
    },
    '/*',
  ],
  [
    { withoutHeaders: { '@request.auth.claims.a': { exact: 'x' } } },
    {
      dynamicMetadata: [
        {
          filter: 'envoy.filters.http.jwt_authn',
          path: [{ key: 'payload' }, { key: 'a' }],
          value: {
            orMatch: {
              valueMatchers: [
                { listMatch: { oneOf: { stringMatch: { exact: 'x' } } } },
                { stringMatch: { exact: 'x' } },
              ],
            },
          },
          invert: true,
        },
      ],
    },
    '/*',
  ],
])('the match %j', (match, expected, path) => {
  expect(routesOf([{ match: [match], ...to('b') }])).toMatchObject([
    { match: expected, decorator: { operation: `b:80${path}` } },
  ]);
});

test('names of a route and of its matches are joined', () => {
  const match = (name: string) => ({ name, uri: { prefix: `/x${name}` } });
  const http = [
    { name: 'r', match: [match('m'), match('')], ...to('b') },
    { match: [{ ...match('n'), statPrefix: 's' }], ...to('b') },
  ];
  expect(routesOf([...http, to('b')])).toMatchObject([
    { name: 'r.m' },
    { name: 'r' },
    { name: '.n', statPrefix: 's' },
    {},
  ]);
  expect(translate(http).routes[1]).not.toHaveProperty('statPrefix');
});

test('nothing is behind a route for every request', () => {
  const catchAlls = [
    to('b'),
    { match: [{ uri: { prefix: '/' } }], ...to('b') },
    { match: [{ uri: { regex: '.*' } }], ...to('b') },
  ];
  for (const all of catchAlls) expect(translate([all, to('c')]).clusters).toEqual(['outbound|80||b']);
  const narrow = [
    { headers: { a: {} } },
    { queryParams: { a: {} } },
    { method: {} },
    { headers: { '@request.auth.claims.a': {} } },
  ];
  for (const match of narrow) {
    expect(translate([{ match: [{ uri: { prefix: '/' }, ...match }], ...to('b') }, to('c')]).routes).toHaveLength(2);
  }
});

test('matches that cannot hold are left out', () => {
  const http = [
    { match: [{ port: 81 }, { sourceLabels: { app: 'x' } }, { gateways: ['g'] }], ...to('b') },
    {
      match: [
        { gateways: ['mesh'], uri: { prefix: '/m' } },
        { sourceNamespace: 'shop', uri: { prefix: '/s' } },
      ],
      ...to('c'),
    },
  ];
  expect(translate(http).routes.map((route) => route.match?.prefix)).toEqual(['/m', '/s']);
  expect(translate(http).clusters).toEqual(['outbound|80||c']);
  expect(translate(http, { gateway: 'shop/g', listenerPort: 81 }).clusters).toEqual(['outbound|80||b']);
});

test('a large regex asks for room where the bootstrap may not give it', () => {
  const regexOf = (regex: string, agent: boolean) =>
    translate([{ match: [{ uri: { regex } }], ...to('b') }], { agent }).routes[0]?.match?.safeRegex;
  expect(regexOf('/x.+', false)).toEqual({ regex: '/x.+' });
  expect(regexOf('/[a-z]{100}', true)).toEqual({ regex: '/[a-z]{100}' });
  for (const regex of ['/[a-z]{100}', `/(${'a|'.repeat(20)}b)`, '\\pP'.repeat(8)]) {
    expect(regexOf(regex, false)).toEqual({ googleRe2: { maxProgramSize: { value: 32768 } }, regex });
  }
});
