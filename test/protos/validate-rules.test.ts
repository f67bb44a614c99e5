import { expect, test } from 'vitest';
import { any, createProtos } from '../../src/envoy/encode/proto.ts';
import { types } from '../../src/envoy/encode/proto-types.ts';
import { createRules } from './validate-rules.ts';

const protos = createProtos();
const check = createRules();

const listenerWith = (manager: object) => ({
  name: 'x',
  filterChains: [{ filters: [{ name: 'hcm', typedConfig: any(types.httpConnectionManager as string, manager) }] }],
});
const router = { name: 'router', typedConfig: any(types.router, {}) };
const routeWith = (route: object) => ({ virtualHosts: [{ name: 'x', domains: ['*'], routes: [route] }] });
const route = 'virtualHosts[0].routes[0]';
const chain = 'filterChains[0].filters[0].typedConfig';

test('a message that Envoy accepts has no violations', () => {
  const listener = listenerWith({
    statPrefix: 'x',
    rds: { routeConfigName: '80', configSource: { ads: {} } },
    httpFilters: [router],
  });
  expect(check(types.listener, protos.encode(types.listener as string, listener))).toEqual([]);
});

test.each([
  [
    'a string that is too short, inside an Any',
    types.listener,
    listenerWith({ rds: { routeConfigName: '80', configSource: { ads: {} } } }),
    `${chain}.statPrefix`,
    'has 0 characters, at least 1',
  ],
  [
    'a oneof that is not set',
    types.listener,
    listenerWith({ statPrefix: 'x' }),
    chain,
    'one of rds, routeConfig, scopedRoutes is required',
  ],
  ['a missing message', types.route, { requestHeadersToAdd: [{}] }, 'requestHeadersToAdd[0].header', 'is required'],
  [
    'a list that is too short',
    types.route,
    { virtualHosts: [{ name: 'x' }] },
    'virtualHosts[0].domains',
    'has 0 items, at least 1',
  ],
  [
    'a number outside of its range',
    types.endpoint,
    { clusterName: 'x', endpoints: [{ priority: 129 }] },
    'endpoints[0].priority',
    'is 129, must be <= 128',
  ],
  [
    'a wrapped number outside of its range',
    types.cluster,
    { name: 'x', maglevLbConfig: { tableSize: { value: 5000012 } } },
    'maglevLbConfig.tableSize',
    'is 5000012, must be <= 5000011',
  ],
  [
    'a duration outside of its range',
    types.cluster,
    { name: 'x', connectTimeout: { seconds: 0 } },
    'connectTimeout',
    'is 0, must be > 0',
  ],
  ['an enum value that does not exist', types.cluster, { name: 'x', lbPolicy: 99 }, 'lbPolicy', '99 is not defined'],
  [
    'a header name with a line break',
    types.route,
    { internalOnlyHeaders: ['a\nb'] },
    'internalOnlyHeaders',
    '[0] is not a valid HTTP_HEADER_NAME',
  ],
  [
    'a pattern that does not match',
    types.route,
    routeWith({ match: { pathSeparatedPrefix: '/a/' } }),
    `${route}.match.pathSeparatedPrefix`,
    'must match ^[^?#]+[^?#/]$',
  ],
  [
    'an unknown type in an Any',
    types.listener,
    { name: 'x', filterChains: [{ filters: [{ name: 'x', typedConfig: { typeUrl: 'x/nope' } }] }] },
    chain,
    'holds an unknown type x/nope',
  ],
  [
    'a field that Envoy disallows',
    types.route,
    routeWith({
      match: { prefix: '/' },
      route: {
        cluster: 'x',
        rateLimits: [
          { actions: [{ dynamicMetadata: { descriptorKey: 'x', metadataKey: { key: 'x', path: [{ key: 'x' }] } } }] },
        ],
      },
    }),
    `${route}.route.rateLimits[0].actions[0].dynamicMetadata`,
    'is disallowed by default',
  ],
])('%s is a violation', (_, type, message, path, text) => {
  const found = check(type, protos.encode(type as string, message));
  expect(found).toContainEqual({ path, message: text });
});
