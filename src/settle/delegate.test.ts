import { expect, test } from 'vitest';
import type { VirtualServiceModel } from '../model/virtual-service.ts';
import { applyDelegates } from './delegate.ts';
import { reconcileVirtualService } from '../reconcilers/virtual-service/virtual-service.ts';

function model(name: string, spec: object, namespace = 'shop'): VirtualServiceModel {
  const { models, problems } = reconcileVirtualService(
    { apiVersion: 'networking.istio.io/v1', kind: 'VirtualService', metadata: { name, namespace }, spec },
    { source: 'test', domainSuffix: 'cluster.local', rootNamespace: 'istio-system', defaultExportTo: ['*'] },
  );
  expect(problems).toEqual([]);
  return models[0]!;
}

const to = (host: string) => [{ destination: { host } }];

/** Routes of the root after its only route, `root`, has delegated to `delegate`. */
function apply(
  root: object,
  delegate: object | undefined,
  { namespace = 'shop', ...rest }: { namespace?: string; exportTo?: string[]; hosts?: string[] } = {},
) {
  const parent = model('root', {
    hosts: ['a'],
    http: [{ delegate: { name: 'part', namespace }, ...root }, { route: to('rest') }],
  });
  const part = delegate && model('part', { http: [delegate], ...rest }, namespace);
  const { model: applied, problems } = applyDelegates(parent, (ns, name) =>
    ns === namespace && name === 'part' ? part : undefined,
  );
  expect(applied?.http.at(-1)).toBe(parent.http.at(-1));
  return { routes: applied!.http.slice(0, -1), problems };
}

test('a route that delegates is replaced by the routes of its delegate', () => {
  const { routes, problems } = apply({ name: 'r', match: [{ uri: { prefix: '/x' } }] }, { name: 'd', route: to('b') });
  expect(routes).toMatchObject([
    {
      name: 'r-d',
      object: { name: 'part' },
      field: 'spec.http[0]',
      delegatedBy: 'spec.http[0]',
      matches: [{ uri: { kind: 'prefix', value: '/x' } }],
      action: { kind: 'forward', destinations: [{ host: 'b.shop.svc.cluster.local' }] },
    },
  ]);
  expect(problems).toEqual([]);
});

test('a VirtualService without delegates stays the same object', () => {
  const plain = model('v', { hosts: ['a'], http: [{ route: to('b') }] });
  expect(applyDelegates(plain, () => undefined).model).toBe(plain);
});

test('what the delegate does not set comes from the root', () => {
  const root = {
    timeout: '5s',
    retries: { attempts: 7 },
    fault: { abort: { httpStatus: 500, percentage: { value: 1 } } },
    corsPolicy: { allowMethods: ['GET'] },
    headers: { request: { set: { a: 'root' } } },
    mirror: { host: 'm' },
    rewrite: { uri: '/root' },
  };
  expect(apply(root, { route: to('b') }).routes).toMatchObject([
    {
      fault: { abort: { status: { code: 500 } } },
      cors: { allowMethods: ['GET'] },
      headers: { requestSet: [{ value: 'root' }] },
      action: { timeout: 5000, retries: { attempts: 7 }, mirrors: [{}], rewrite: { uri: '/root' } },
    },
  ]);
  const own = { timeout: '1s', headers: { request: { set: { a: 'own' } } }, mirror: { host: 'm' }, mirrorPercent: 0 };
  expect(apply(root, { ...own, route: to('b') }).routes).toMatchObject([
    { headers: { requestSet: [{ value: 'own' }] }, action: { timeout: 1000, retries: { attempts: 7 }, mirrors: [] } },
  ]);
  expect(apply(root, { redirect: { uri: '/y' } }).routes).toMatchObject([{ action: { kind: 'redirect', uri: '/y' } }]);
  expect(apply({ directResponse: { status: 404 } }, { route: to('b') }).routes).toMatchObject([
    { action: { kind: 'directResponse', status: 404 } },
  ]);
});

test.each([
  ['a delegate that is missing', undefined, {}, 'does not exist'],
  ['a delegate with hosts', { route: to('b') }, { hosts: ['b'] }, 'has hosts of its own'],
  [
    'a delegate of another namespace',
    { route: to('b') },
    { namespace: 'other', exportTo: ['.'] },
    'is not exported to namespace "shop"',
  ],
])('the route with %s disappears, and its owner is told', (_, delegate, options, message) => {
  const { routes, problems } = apply({}, delegate, options);
  expect(routes).toEqual([]);
  expect(problems).toMatchObject([
    {
      object: { name: 'root' },
      field: 'spec.http[0].delegate',
      reason: 'RefNotFound',
      message: expect.stringContaining(message),
    },
  ]);
});

const prefix = (value: string) => ({ uri: { prefix: value } });
const exact = (value: string) => ({ uri: { exact: value } });

test.each([
  ['a longer prefix', prefix('/a'), prefix('/a/b')],
  ['an exact path below the prefix', prefix('/a'), exact('/a/b')],
  ['the same exact path', exact('/a'), exact('/a')],
  ['another condition', prefix('/a'), { method: { exact: 'GET' } }],
  ['a header of its own', { headers: { a: { exact: 'x' } } }, { headers: { b: { exact: 'y' } } }],
  ['fewer gateways', { gateways: ['g', 'mesh'] }, { gateways: ['mesh'] }],
])('a match of the delegate may have %s', (_, root, delegate) => {
  expect(apply({ match: [root] }, { match: [delegate], route: to('b') })).toMatchObject({ routes: [{}], problems: [] });
});

test.each([
  ['another prefix', prefix('/a'), prefix('/b')],
  ['a shorter prefix', prefix('/a/b'), prefix('/a')],
  ['a prefix below an exact path', exact('/a'), prefix('/a')],
  ['a regex', prefix('/a'), { uri: { regex: '/a.*' } }],
  ['another header value', { headers: { a: { exact: 'x' } } }, { headers: { a: { exact: 'y' } } }],
  ['other case sensitivity', { ...prefix('/a'), ignoreUriCase: true }, prefix('/a')],
  ['another port', { port: 80 }, { port: 81 }],
  ['no source namespace', { sourceNamespace: 'x' }, {}],
  ['another source label', { sourceLabels: { a: 'x' } }, { sourceLabels: { a: 'y' } }],
  ['another gateway', { gateways: ['mesh'] }, { gateways: ['g'] }],
])('a match of the delegate with %s contradicts the root', (_, root, delegate) => {
  const { routes, problems } = apply({ match: [root] }, { match: [delegate], route: to('b') });
  expect(routes).toEqual([]);
  expect(problems).toMatchObject([{ object: { name: 'part' }, field: 'spec.http[0].match' }]);
});

test('matches are combined, and the names joined', () => {
  const { routes } = apply(
    {
      match: [
        { name: 'r1', ...prefix('/a'), headers: { h: { exact: '1' } } },
        { name: 'r2', ...prefix('/b') },
      ],
    },
    { match: [{ name: 'd1', ...prefix('/a/x'), headers: { i: {} } }, { ...prefix('/b/y') }], route: to('b') },
  );
  expect(routes[0]?.matches).toMatchObject([
    { name: 'r1-d1', uri: { value: '/a/x' }, headers: [{ name: 'h' }, { name: 'i' }] },
    { name: 'r2', uri: { value: '/b/y' }, headers: [] },
  ]);
});

test('one match of the delegate that fits nowhere drops its whole route', () => {
  const { routes } = apply({ match: [prefix('/a')] }, { match: [prefix('/a'), prefix('/b')], route: to('b') });
  expect(routes).toEqual([]);
});

test('more routes than memory holds are refused before they are made, by hosts or by delegates', () => {
  const routes = (count: number, more: object = { route: to('b') }) =>
    Array.from({ length: count }, (_, i) => ({ match: [{ uri: { prefix: `/${i}/` } }], ...more }));
  const part = model('part', { http: routes(100) });
  const find = () => part;
  const largest = model('root', { hosts: ['a'], http: routes(100, { delegate: { name: 'part' } }) });
  expect(applyDelegates(largest, find).problems).toHaveLength(100);
  for (const tooLarge of [
    model('root', { hosts: ['a'], http: routes(10_000, { delegate: { name: 'part' } }) }),
    model('root', { hosts: Array.from({ length: 1_000 }, (_, i) => `h${i}.example.com`), http: routes(1_000) }),
  ]) {
    const { model: applied, problems } = applyDelegates(tooLarge, find);
    expect(applied).toBeUndefined();
    expect(problems).toMatchObject([{ object: { name: 'root' }, field: 'spec.http', reason: 'Invalid' }]);
  }
});

test('matches with more headers than memory holds are refused before they are combined, or repeated for hosts', () => {
  const headers = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`x-${i}`, {}]));
  const matches = Array.from({ length: 2_000 }, (_, i) => ({ headers: { [`y-${i}`]: { exact: 'b' } } }));
  const part = model('part', { http: [{ match: matches, route: to('b') }] });
  const rootOf = (count: number) =>
    model('root', { hosts: ['a'], http: [{ match: [{ headers: headers(count) }], delegate: { name: 'part' } }] });
  expect(applyDelegates(rootOf(10), () => part).model?.http).toHaveLength(1);
  const hosts = Array.from({ length: 2_000 }, (_, i) => `h${i}.example.com`);
  const many = model('root', { hosts, http: [{ match: [{ headers: headers(4_000) }], route: to('b') }] });
  for (const tooLarge of [rootOf(2_000), many]) {
    const { model: applied, problems } = applyDelegates(tooLarge, () => part);
    expect(applied).toBeUndefined();
    expect(problems).toMatchObject([{ object: { name: 'root' }, field: 'spec.http', reason: 'Invalid' }]);
  }
});
