import { expect, test } from 'vitest';
import { MeshLab, objectOf, proxy, route, service, sidecar } from '../../../test/harness/lab.ts';

const namespaces = Array.from({ length: 20 }, (_, i) => `ns-${i}`);

test('proxies of a namespace share a scope, and replicas of a deployment what they serve', () => {
  const deployments = Array.from({ length: 50 }, (_, i) => ({ app: `app-${i}`, namespace: namespaces[i % 20]! }));
  const services = deployments.map(({ app, namespace }) =>
    service(`${namespace}/${app}`, { selector: { app }, ports: [{ name: 'http', port: 80, targetPort: 8080 }] }),
  );
  const replicas = deployments.flatMap(({ app, namespace }) =>
    Array.from({ length: 40 }, (_, i) => proxy(`${app}-${i}.${namespace}`, { app, 'pod-template-hash': `${i}` })),
  );
  const lab = new MeshLab(services, replicas);
  expect(lab.size('resolvedProxies')).toBe(2_000);
  expect(lab.size('scopes')).toBe(20);
  // Services of one deployment each: what it serves is its own.
  expect(lab.size('workloadClasses')).toBe(50);
  // The public view of each namespace, whoever looks.
  expect(lab.size('viewLists')).toBe(20);
});

test.each([
  { IDLE_TIMEOUT: '77s' },
  { HTTP10: '1' },
  { OUTBOUND_LISTENER_EXACT_BALANCE: 'true' },
  { INTERCEPTION_MODE: 'TPROXY' },
  { ENVOY_STATUS_PORT: 15999 },
])('with %j a proxy has listeners of its own, and sees the same services', (metadata) => {
  const objects = [service('shop/a'), service('shop/b', { ports: [{ name: 'tcp', port: 9000 }] })];
  const lab = new MeshLab(objects, [proxy('plain.shop')]);
  const views = lab.size('serviceViews');
  lab.join([proxy('other.shop', {}, metadata)]);
  expect(lab.size('scopes')).toBe(2);
  expect(lab.size('serviceViews')).toBe(views);
  expect(lab.changed.filter((name) => name.includes('outbound|'))).toEqual([]);
  expect(lab.faults('other.shop')).toEqual([]);
});

test('each proxy listens as it says, to the same services', () => {
  const objects = [
    service('shop/b', { ports: [{ name: 'tcp', port: 9000 }], clusterIP: '10.0.0.9' }),
    service('shop/a'),
  ];
  const ways = [{}, { IDLE_TIMEOUT: '77s' }, { OUTBOUND_LISTENER_EXACT_BALANCE: 'true' }, { HTTP10: '1' }];
  const lab = new MeshLab(
    objects,
    ways.map((metadata, i) => proxy(`p${i}.shop`, {}, metadata)),
  );
  const found = ways.map((_, i) => {
    const text = JSON.stringify(lab.json(`p${i}.shop`).lds);
    return [text.includes('"idleTimeout":"77s"'), text.includes('exactBalance'), text.includes('acceptHttp10')];
  });
  expect(found).toEqual([
    [false, false, false],
    [true, false, false],
    [false, true, false],
    [false, false, true],
  ]);
});

test('labels split a scope only where a selector in use distinguishes them', () => {
  const lab = new MeshLab(
    [
      service('shop/a'),
      service('shop/b'),
      route('shop/v', 'a', 'b', {}, { sourceLabels: { app: 'x', tier: 'front' } }),
    ],
    [
      proxy('x-1.c', { app: 'x', tier: 'front' }),
      proxy('x-2.c', { app: 'x', tier: 'front', more: 'y' }),
      proxy('x-3.c', { app: 'x', tier: 'back' }),
      proxy('y.c', { app: 'y' }),
    ],
  );
  expect(lab.size('scopes')).toBe(2);
  expect(lab.routes('x-2.c')).toMatchObject({ 'a.shop:80': ['b.shop:80'] });
  expect(lab.routes('x-3.c')).toMatchObject({ 'a.shop:80': ['a.shop:80'] });
});

test('a selector that is mentioned already moves nobody into another scope or view', () => {
  const match = { sourceLabels: { app: 'x' } };
  const lab = new MeshLab(
    [service('shop/a'), service('shop/b'), service('other/c'), route('shop/v', 'a', 'b', {}, match)],
    [proxy('x.client', { app: 'x' })],
  );
  const lists = () => new Set(lab.resources('x.client').map(({ name }) => name));
  const before = lists();
  lab.apply([route('other/v', 'c', 'c', {}, match)]);
  expect(lab.last.worlds).toEqual([]);
  expect(lab.changed.filter((name) => name.includes('shop'))).toEqual([]);
  expect(lists()).toEqual(before);
  lab.delete([route('shop/v', 'a', 'b')]);
  expect(lab.last.worlds).toEqual([]);
});

test('a selector of a private VirtualService does not split the proxies of other namespaces', () => {
  const spec = { exportTo: ['.'] };
  const match = { sourceLabels: { app: 'x' } };
  const proxies = ['c', 'shop'].flatMap((ns) => [proxy(`x.${ns}`, { app: 'x' }), proxy(`y.${ns}`, { app: 'y' })]);
  const lab = new MeshLab([service('shop/a'), service('shop/b'), route('shop/v', 'a', 'b', spec, match)], proxies);
  expect(lab.size('scopes')).toBe(3);
});

test('a Sidecar changes nothing for proxies that it does not select, and its scope goes with it', () => {
  const objects = [service('shop/a'), service('other/b')];
  const lab = new MeshLab(objects, [proxy('x.shop'), proxy('y.c')]);
  const before = lab.snapshot('y.c');
  const selected = objectOf('Sidecar', 'shop/s', {
    spec: { workloadSelector: { labels: { app: 'x' } }, egress: [{ hosts: ['./*'] }] },
  });
  lab.apply([selected]);
  expect(lab.last.worlds).toEqual([]);
  lab.connect(proxy('x.shop', { app: 'x' }));
  expect(lab.clusters('x.shop')).toEqual(['a.shop:80']);
  expect(lab.size('scopes')).toBe(2);
  lab.delete([selected]);
  expect(lab.clusters('x.shop')).toEqual(['a.shop:80', 'b.other:80']);
  expect(lab.size('scopes')).toBe(2);
  expect(lab.snapshot('y.c')).toEqual(before);
});

test('a Sidecar that imports whole namespaces shares their views with those who have none', () => {
  const lab = new MeshLab(
    [service('shop/a'), service('other/b'), sidecar('c/s', './*', 'shop/*')],
    [proxy('x.c'), proxy('y.d')],
  );
  expect(lab.clusters('x.c')).toEqual(['a.shop:80']);
  expect(lab.clusters('y.d')).toEqual(['a.shop:80', 'b.other:80']);
  // shop and other, both public.
  expect(lab.size('viewLists')).toBe(2);
});

test('it has a view of its own where another namespace has routes that it does not import', () => {
  const foreign = route('other/v', 'a.shop.svc.cluster.local', 'b.other.svc.cluster.local');
  const lab = new MeshLab(
    [service('shop/a'), service('other/b'), foreign, sidecar('c/s', 'shop/*'), sidecar('d/s', 'shop/*', 'other/*')],
    [proxy('x.c'), proxy('y.d'), proxy('z.e')],
  );
  expect(lab.routes('x.c')).toEqual({ 'a.shop:80': ['a.shop:80'] });
  expect(lab.routes('y.d')).toEqual({ 'a.shop:80': ['b.other:80'], 'b.other:80': ['b.other:80'] });
  expect(lab.routes('z.e')).toEqual(lab.routes('y.d'));
  // shop for c alone; shop and other for all others.
  expect(lab.size('viewLists')).toBe(3);
});
