import { expect, test } from 'vitest';
import { MeshLab, objectOf, proxy, route, service } from './testing/lab.ts';

const older = { creationTimestamp: '2026-01-01T00:00:00Z' };
const younger = { creationTimestamp: '2026-01-02T00:00:00Z' };

test('services have their short names in their own namespace only', () => {
  const lab = new MeshLab([service('shop/a'), service('other/b')], [proxy('x.shop'), proxy('x.other'), proxy('x.c')]);
  const nameOf = (stream: string) =>
    Object.values(lab.domains(stream))
      .flat()
      .filter((domain) => /^[a-z]$/.test(domain));
  expect(nameOf('x.shop')).toEqual(['a']);
  expect(nameOf('x.other')).toEqual(['b']);
  expect(nameOf('x.c')).toEqual([]);
  // What is local is kept beside what is public: no cluster or listener is there twice.
  expect(lab.size('viewLists')).toBe(2);
});

test('the first proxy of a namespace changes nothing for the others', () => {
  const lab = new MeshLab([service('shop/a'), service('other/b')], [proxy('x.c')]);
  lab.connect(proxy('x.shop'));
  const names = lab.last.members.map(({ list }) => list);
  expect(names.filter((list) => list.includes('|c|'))).toEqual([]);
});

test('a host that only a VirtualService names is served on port 80, and beside services of the same VirtualService', () => {
  const ports = [{ name: 'http', port: 8080 }];
  const spec = { hosts: ['x.example.com', 'a.shop.svc.cluster.local'] };
  const objects = [
    service('shop/a', { ports }),
    service('shop/b'),
    route('shop/v', '', 'b.shop.svc.cluster.local', spec),
  ];
  const lab = new MeshLab(objects, [proxy('x.c')]);
  expect(lab.routes('x.c', '80')).toMatchObject({ 'x.example.com:80': ['b.shop:80'] });
  expect(lab.domains('x.c', '8080')).toMatchObject({ 'x.example.com:8080': ['x.example.com'] });
});

test('a host that VirtualServices of several namespaces name is served once, by the oldest', () => {
  const to = (name: string) => ({
    spec: { hosts: ['x.example.com'], http: [{ route: [{ destination: { host: `${name}.svc.cluster.local` } }] }] },
  });
  const lab = new MeshLab(
    [
      service('shop/a'),
      service('other/b'),
      objectOf('VirtualService', 'shop/v', to('a.shop'), younger),
      objectOf('VirtualService', 'other/v', to('b.other'), older),
    ],
    [proxy('x.c')],
  );
  expect(lab.routes('x.c')).toMatchObject({ 'x.example.com:80': ['b.other:80'] });
  expect(
    Object.values(lab.domains('x.c'))
      .flat()
      .filter((domain) => domain === 'x.example.com'),
  ).toHaveLength(1);
  lab.delete([objectOf('VirtualService', 'other/v', {})]);
  expect(lab.routes('x.c')).toMatchObject({ 'x.example.com:80': ['a.shop:80'] });
});

test('also where one of them is private, which only its namespace sees', () => {
  const to = (name: string, exportTo: string[]) => ({
    spec: {
      hosts: ['x.example.com'],
      exportTo,
      http: [{ route: [{ destination: { host: `${name}.svc.cluster.local` } }] }],
    },
  });
  const lab = new MeshLab(
    [
      service('shop/a'),
      service('other/b'),
      objectOf('VirtualService', 'shop/v', to('a.shop', ['.']), older),
      objectOf('VirtualService', 'other/v', to('b.other', ['*']), younger),
    ],
    [proxy('x.shop'), proxy('x.other'), proxy('x.c')],
  );
  for (const stream of ['x.shop', 'x.other', 'x.c'])
    expect(
      Object.values(lab.domains(stream))
        .flat()
        .filter((domain) => domain === 'x.example.com'),
    ).toHaveLength(1);
  expect(lab.routes('x.shop')).toMatchObject({ 'x.example.com:80': ['a.shop:80'] });
  expect(lab.routes('x.c')).toMatchObject({ 'x.example.com:80': ['b.other:80'] });
});

test('routes of such a host look at the labels of clients', () => {
  const to = 'a.shop.svc.cluster.local';
  const lab = new MeshLab(
    [service('shop/a'), route('shop/v', 'x.example.com', to, {}, { sourceLabels: { app: 'x' } })],
    [proxy('x.c', { app: 'x' }), proxy('y.c', { app: 'y' })],
  );
  expect(lab.routes('x.c')).toMatchObject({ 'x.example.com:80': ['a.shop:80'] });
  expect(Object.keys(lab.routes('y.c'))).toEqual(['a.shop:80']);
});
