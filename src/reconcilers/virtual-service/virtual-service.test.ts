import { expect, test } from 'vitest';
import type { VirtualServiceModel } from '../../model/virtual-service.ts';
import { reconcileVirtualService } from './virtual-service.ts';

const to = (host: string) => [{ destination: { host } }];

function reconcile(spec: unknown, namespace = 'shop') {
  return reconcileVirtualService(
    {
      apiVersion: 'networking.istio.io/v1',
      kind: 'VirtualService',
      metadata: { name: 'v', namespace, generation: 3, creationTimestamp: '2026-01-01T00:00:00Z' },
      spec,
    },
    { source: 'test', domainSuffix: 'cluster.local', rootNamespace: 'istio-system', defaultExportTo: ['*'] },
  );
}

function modelOf(spec: object): VirtualServiceModel {
  const { models, problems } = reconcile(spec);
  expect(problems).toEqual([]);
  expect(models).toHaveLength(1);
  return models[0]!;
}

const http = (...routes: object[]) => ({ hosts: ['a'], http: routes });
const firstMatch = (match: object) =>
  modelOf({ ...http({ match: [match], route: to('a') }), gateways: ['g'] }).http[0]!.matches[0]!;

test('short names are of the own namespace, all others stay as they are', () => {
  const model = modelOf({
    hosts: ['reviews', 'reviews.prod', '*.example.com', '10.0.0.1'],
    http: [
      {
        route: [{ destination: { host: 'ratings', subset: 'v1', port: { number: 81 } } }],
        mirror: { host: 'other.example.com' },
      },
    ],
  });
  expect(model.hosts).toEqual(['reviews.shop.svc.cluster.local', 'reviews.prod', '*.example.com', '10.0.0.1']);
  expect(model.http[0]).toMatchObject({
    field: 'spec.http[0]',
    action: {
      destinations: [
        {
          host: 'ratings.shop.svc.cluster.local',
          subset: 'v1',
          port: 81,
          field: 'spec.http[0].route[0].destination',
        },
      ],
      mirrors: [{ destination: { host: 'other.example.com', field: 'spec.http[0].mirror' } }],
    },
  });
});

test('the identity and the age come from the metadata', () => {
  expect(modelOf(http({ route: to('a') }))).toMatchObject({
    key: 'test/shop/v',
    createdAt: '2026-01-01T00:00:00Z',
    ref: { kind: 'VirtualService', namespace: 'shop', name: 'v', generation: 3 },
  });
});

test.each([
  [undefined, ['mesh']],
  [[], ['mesh']],
  [
    ['mesh', 'g'],
    ['mesh', 'shop/g'],
  ],
  [['./g'], ['shop/g']],
  [['other/g'], ['other/g']],
  [['g.other.svc.cluster.local'], ['other/g']],
  [['g.other'], ['other/g']],
  [
    ['g', './g'],
    ['shop/g', 'shop/g'],
  ],
])('gateways %j are %j', (gateways, resolved) => {
  expect(modelOf({ ...http({ route: to('a') }), gateways }).gateways).toEqual(resolved);
});

test.each([
  [{ uri: { prefix: '/x' } }, { uri: { kind: 'prefix', value: '/x' } }],
  [{ uri: { prefix: '' } }, { uri: { kind: 'prefix', value: '' } }],
  [{ uri: {} }, {}],
  [{ method: { exact: 'GET' } }, { method: { kind: 'exact', value: 'GET' } }],
  [
    { headers: { b: { regex: '*' }, a: {} }, withoutHeaders: { aa: { exact: 'x' } } },
    {
      headers: [
        { name: 'a', match: { kind: 'present' }, invert: false },
        { name: 'aa', match: { kind: 'exact', value: 'x' }, invert: true },
        { name: 'b', match: { kind: 'present' }, invert: false },
      ],
    },
  ],
  [
    { headers: { '@request.auth.claims.group.id': { exact: 'x' }, '@request.auth.claims[a.b][c]': { prefix: 'y' } } },
    {
      headers: [],
      claims: [
        { path: ['a.b', 'c'], match: { kind: 'prefix', value: 'y' }, invert: false },
        { path: ['group', 'id'], match: { kind: 'exact', value: 'x' }, invert: false },
      ],
    },
  ],
  [
    { queryParams: { q: { exact: '1' }, p: {} } },
    {
      queryParams: [
        { name: 'p', match: { kind: 'present' } },
        { name: 'q', match: { kind: 'exact', value: '1' } },
      ],
    },
  ],
  [{ gateways: ['g', 'mesh'] }, { gateways: ['shop/g', 'mesh'] }],
  [
    { ignoreUriCase: true, port: 80, sourceLabels: { app: 'a' }, sourceNamespace: 'n' },
    { port: 80, sourceNamespace: 'n' },
  ],
])('the match %j is read', (match, expected) => {
  expect(firstMatch(match)).toMatchObject(expected);
});

test('host and :authority among the headers to set are the new authority', () => {
  const headers = (operations: object) => modelOf(http({ headers: operations, route: to('a') })).http[0]!.headers;
  expect(headers({ request: { set: { Host: 'x', b: '1', a: '2' }, add: { ':authority': 'y' } } })).toMatchObject({
    requestSet: [
      { name: 'a', value: '2' },
      { name: 'b', value: '1' },
    ],
    requestAdd: [],
    authority: 'x',
  });
  expect(headers({ request: { add: { ':authority': 'y' } } })).toMatchObject({ authority: 'y' });
});

test('other pseudo headers are ignored, and the owner is told', () => {
  const { models, problems } = reconcile(
    http({ headers: { request: { set: { ':path': '/' }, remove: ['host'] } }, route: to('a') }),
  );
  expect(models[0]?.http[0]?.headers).toMatchObject({ requestSet: [], requestRemove: [] });
  expect(problems).toMatchObject([
    { field: 'spec.http[0].headers.request.set[":path"]', reason: 'Ineffective' },
    { field: 'spec.http[0].headers.request.remove[0]', reason: 'Ineffective' },
  ]);
});

test('a percentage of 0 switches a mirror off', () => {
  const mirrorsOf = (route: object) => {
    const { action } = modelOf(http({ ...route, route: to('a') })).http[0]!;
    return action.kind === 'forward' ? action.mirrors : undefined;
  };
  expect(mirrorsOf({})).toBeUndefined();
  expect(mirrorsOf({ mirror: { host: 'b' }, mirrorPercentage: { value: 0 } })).toEqual([]);
  expect(mirrorsOf({ mirror: { host: 'b' }, mirrorPercentage: {} })).toEqual([]);
  expect(mirrorsOf({ mirror: { host: 'b' }, mirrorPercent: 7 })).toMatchObject([
    { percentage: { value: 7, whole: true } },
  ]);
  expect(
    mirrorsOf({ mirrors: [{ destination: { host: 'b' }, percentage: { value: 7 } }, { destination: { host: 'c' } }] }),
  ).toMatchObject([{ percentage: { value: 7, whole: false } }, { destination: { host: 'c.shop.svc.cluster.local' } }]);
});

test('a timeout of 0s is allowed and means none', () => {
  expect(modelOf(http({ timeout: '0s', route: to('a') })).http[0]?.action).toMatchObject({ timeout: 0 });
});

test('without hosts it is a delegate', () => {
  expect(modelOf({ http: [{ route: to('a') }] }).hosts).toEqual([]);
});

test('null counts as absent', () => {
  expect(
    modelOf({ hosts: ['a'], gateways: null, tcp: null, http: [{ match: null, timeout: null, route: to('a') }] }),
  ).toMatchObject({ gateways: ['mesh'], tcp: [], http: [{ matches: [] }] });
});

test.each([
  'plain',
  '%%',
  '100%% sure',
  '%REQ(x-name)%',
  '%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%',
  'a %START_TIME(%s.%3f)% b %REQ(:path):10%',
])('the header value %s is accepted', (value) => {
  modelOf(http({ headers: { request: { set: { a: value } } }, route: to('a') }));
});

test('a header whose value not every Envoy expands is left out, and nobody else sets it instead', () => {
  const headers = { request: { set: { a: '%FOO%', b: 'b' }, add: { c: '%FOO%' } }, response: { set: { d: '%FOO%' } } };
  const { models, problems } = reconcile({ hosts: ['a'], http: [{ headers, route: to('a') }] });
  expect(models[0]?.http[0]?.headers).toMatchObject({
    requestSet: [{ name: 'b' }],
    requestAdd: [],
    requestRemove: ['a'],
    responseSet: [],
    responseRemove: ['d'],
  });
  expect(problems.map(({ field, reason }) => [field, reason])).toEqual([
    ['spec.http[0].headers.request.set["a"]', 'Ineffective'],
    ['spec.http[0].headers.request.add["c"]', 'Ineffective'],
    ['spec.http[0].headers.response.set["d"]', 'Ineffective'],
  ]);
});

test.each([
  ['istio-system', 1],
  ['shop', 0],
])("in %s the proxy's environment makes %i VirtualService", (namespace, served) => {
  const spec = { hosts: ['a'], http: [{ headers: { request: { set: { a: '%ENVIRONMENT(X)%' } } }, route: to('a') }] };
  expect(reconcile(spec, namespace).models).toHaveLength(served);
});

test.each([
  [
    'a source subnet',
    { tcp: [{ match: [{ sourceSubnet: '10.0.0.0/8' }], route: to('a') }] },
    'spec.tcp[0].match[0].sourceSubnet',
  ],
])('%s is served, and its owner hears that it has no effect', (_, spec, field) => {
  const { models, problems } = reconcile({ hosts: ['a'], ...spec });
  expect(models).toHaveLength(1);
  expect(problems).toMatchObject([{ field, reason: 'UnsupportedField' }]);
});

test.each<[string, object, object, [number, string[]]]>([
  ['no gateway', {}, {}, [0, ['spec.http[0].match[0] Invalid']]],
  ['sidecars only', { gateways: ['mesh'] }, {}, [0, ['spec.http[0].match[0] Invalid']]],
  ['a gateway', { gateways: ['g'] }, {}, [1, []]],
  ['sidecars, too', { gateways: ['g', 'mesh'] }, {}, [1, ['spec.http[0].match[0] Ineffective']]],
  ['a match for the gateway alone', { gateways: ['g', 'mesh'] }, { gateways: ['g'] }, [1, []]],
  ['nobody: it is a delegate', { hosts: [] }, {}, [1, []]],
])('a claim is compared for %s', (_, spec, match, expected) => {
  for (const headers of ['headers', 'withoutHeaders']) {
    const claim = { ...match, [headers]: { '@request.auth.claims.a': { exact: 'x' } } };
    const { models, problems } = reconcile({ hosts: ['a'], ...spec, http: [{ match: [claim], route: to('a') }] });
    expect([models.length, problems.map(({ field, reason }) => `${field} ${reason}`)]).toEqual(expected);
  }
});
