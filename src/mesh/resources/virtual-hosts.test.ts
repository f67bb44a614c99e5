import { describe, expect, test, vi } from 'vitest';
import { type KubernetesObject, objectKey } from '../../api/object.ts';
import { Derived } from '../../cache/derived.ts';
import { defaultMeshOptions } from '../inputs.ts';
import { MeshLab, objectOf, proxy, route, service, sidecar } from '../../../test/harness/lab.ts';

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

describe('a wildcard host', () => {
  const entry = (path: string, host: string, spec: object = {}) =>
    objectOf('ServiceEntry', path, {
      spec: {
        hosts: [host],
        ports: [{ number: 80, name: 'http', protocol: 'HTTP' }],
        resolution: 'STATIC',
        endpoints: [{ address: '192.0.2.1' }],
        ...spec,
      },
    });
  const objects = [service('shop/a'), route('shop/v', '*.example.com', 'a.shop.svc.cluster.local')];
  const streams = ['x.shop', 'x.other', 'x.c'];
  const having = (...more: KubernetesObject[]) => {
    const lab = new MeshLab(
      [...objects, ...more],
      streams.map((stream) => proxy(stream)),
    );
    for (const stream of streams) expect(lab.faults(stream)).toEqual([]);
    return streams.filter((stream) => '*.example.com:80' in lab.routes(stream));
  };

  test('is served where the client sees no service under it', () => {
    expect(having()).toEqual(streams);
    expect(having(entry('other/e', 'e.example.com'))).toEqual([]);
    expect(having(entry('other/e', 'e.example.com', { exportTo: ['.'] }))).toEqual(['x.shop', 'x.c']);
    expect(having(entry('other/e', 'e.example.com', { exportTo: ['c'] }))).toEqual(['x.shop', 'x.other']);
    expect(having(entry('other/e', 'e.example.com', { exportTo: ['~'] }))).toEqual(streams);
  });

  test('is served although a service is under it that the Sidecar of the client does not import', () => {
    const other = entry('other/e', 'e.example.com');
    expect(having(other, sidecar('shop/s', './*'))).toEqual(['x.shop']);
    expect(having(other, sidecar('shop/s', './*', 'other/*'))).toEqual([]);
    expect(having(other, sidecar('shop/s', './*', 'other/e.example.com'))).toEqual([]);
    expect(having(other, sidecar('shop/s', './*', 'other/*', '~other/e.example.com'))).toEqual(['x.shop']);
  });

  test('of several services with one host, the one that the client gets counts', () => {
    const tcp = { ports: [{ number: 9000, name: 'tcp', protocol: 'TCP' }] };
    // In its own namespace the own one, elsewhere the first.
    expect(having(entry('shop/e', 'e.example.com'), entry('other/e', 'e.example.com', tcp))).toEqual([
      'x.other',
      'x.c',
    ]);
  });

  test('that ends within a label leaves alone what has only the same suffix', () => {
    const partial = [service('shop/a'), route('shop/v', '*-a.example.com', 'a.shop.svc.cluster.local')];
    const served = (host: string) =>
      '*-a.example.com:80' in new MeshLab([...partial, entry('other/e', host)], [proxy('x.c')]).routes('x.c');
    expect(served('x-b.example.com')).toBe(true);
    expect(served('x-a.example.com')).toBe(false);
    expect(served('y.x-a.example.com')).toBe(false);
  });
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

describe('names of a Kubernetes Service', () => {
  const reviews = service('shop/reviews', { clusterIP: '10.96.1.1' }, younger);
  const streams = ['x.shop', 'x.other', 'x.c'];
  const entry = (path: string, host: string, spec: object = {}) =>
    objectOf(
      'ServiceEntry',
      path,
      {
        spec: {
          hosts: ['e.example.com', host],
          ports: [{ number: 80, name: 'http', protocol: 'HTTP' }],
          resolution: 'STATIC',
          endpoints: [{ address: '192.0.2.1' }],
          ...spec,
        },
      },
      older,
    );
  const labOf = (...objects: Parameters<MeshLab['apply']>[0]) =>
    new MeshLab(
      objects,
      streams.map((name) => proxy(name)),
    );
  /** The virtual host that each proxy has for a domain. */
  const holders = (lab: MeshLab, domain: string) =>
    streams.map((stream) => {
      expect(lab.faults(stream)).toEqual([]);
      return Object.entries(lab.domains(stream)).find(([, domains]) => domains.includes(domain))?.[0];
    });
  const problems = (lab: MeshLab) =>
    [...lab.mesh.problems.byObject.entries()].flatMap(([, found]) =>
      found.map(({ reason, field, message }) => `${reason} ${field}: ${message}`),
    );
  const own = 'reviews.shop:80';

  test.each([
    ['reviews.shop', 'a short name of Service/shop/reviews, which keeps it'],
    ['reviews.shop.svc', 'a short name of Service/shop/reviews, which keeps it'],
    ['Reviews.Shop.', 'a short name of Service/shop/reviews, which keeps it'],
    ['10.96.1.1', 'an address of Service/shop/reviews, which keeps it'],
  ])('are not for older entries of other namespaces: %s', (host, message) => {
    const name = host.toLowerCase().replace(/\.$/, '');
    const lab = labOf(entry('other/e', host));
    expect(holders(lab, name)).toEqual(Array(3).fill(`${name}:80`));
    lab.apply([reviews]);
    expect(holders(lab, name)).toEqual([own, own, own]);
    expect(problems(lab)).toEqual([`Conflicted spec.hosts[1]: "${name}" is ${message}; use another host.`]);
    lab.delete([reviews]);
    expect(holders(lab, name)).toEqual(Array(3).fill(`${name}:80`));
    expect(problems(lab)).toEqual([]);
  });

  test('include the bare one, for clients in its namespace', () => {
    const lab = labOf(reviews, entry('other/e', 'reviews'));
    expect(holders(lab, 'reviews')).toEqual([own, 'reviews:80', 'reviews:80']);
    expect(problems(lab)).toEqual([
      'Conflicted spec.hosts[1]: "reviews" is a short name of Service/shop/reviews, which keeps it for clients in namespace shop; use another host.',
    ]);
  });

  test.each(['reviews.shop', 'reviews.shop.svc', '10.96.1.1'])(
    'are kept for those who see the Service, where it is private: %s',
    (host) => {
      const hidden = service(
        'shop/reviews',
        { clusterIP: '10.96.1.1' },
        { ...younger, annotations: { 'networking.istio.io/exportTo': '.' } },
      );
      const lab = labOf(hidden, entry('other/e', host));
      expect(holders(lab, host)).toEqual([own, `${host}:80`, `${host}:80`]);
      expect(problems(lab)).toHaveLength(1);
    },
  );

  test.each(['reviews', 'reviews.shop', 'reviews.shop.svc', '10.96.1.1'])(
    'may be taken by an entry of its own namespace: %s',
    (host) => {
      const lab = labOf(reviews, entry('shop/e', host));
      expect(holders(lab, host)[0]).toBe(`${host}:80`);
      expect(problems(lab)).toEqual([]);
    },
  );

  test('are not for an entry that its clients do not see, which is told nothing', () => {
    const lab = labOf(reviews, entry('other/e', 'reviews', { exportTo: ['.'] }));
    expect(holders(lab, 'reviews')).toEqual([own, 'reviews:80', undefined]);
    expect(problems(lab)).toEqual([]);
  });

  test('are not for entries on a port that the Service does not have: there the domain is unused', () => {
    const ports = [{ number: 8080, name: 'http', protocol: 'HTTP' }];
    const lab = labOf(reviews, entry('other/e', 'reviews.shop', { hosts: ['reviews.shop'], ports }));
    expect(lab.domains('x.c', '8080')).toEqual({ 'reviews.shop:8080': ['reviews.shop.'], allow_any: ['*'] });
    expect(lab.faults('x.c')).toEqual([]);
  });

  test('include those of an ExternalName Service', () => {
    const alias = objectOf('Service', 'shop/legacy', {
      spec: {
        type: 'ExternalName',
        externalName: 'reviews.shop.svc.cluster.local',
        ports: [{ name: 'http', port: 80 }],
      },
    });
    const lab = labOf(reviews, alias, entry('other/e', 'legacy.shop'));
    expect(holders(lab, 'legacy.shop')).toEqual([own, own, own]);
  });
});

test('a VirtualService without generations that names one host more counts once among the origins', () => {
  const to = 'a.shop.svc.cluster.local';
  const lab = new MeshLab([service('shop/a'), route('other/v', 'x.example.com', to)], [proxy('x.shop')]);
  // Each commit is compared with a build from scratch.
  lab.apply([route('other/v', '', to, { hosts: ['x.example.com', to] })]);
  expect(lab.routes('x.shop')).toMatchObject({ 'a.shop:80': ['a.shop:80'] });
});

test('a new generation that comes to the same routes stops at them', () => {
  const generation = (number: number, timeout: string): KubernetesObject => {
    const object = route('shop/v', 'a', 'a', { http: [{ timeout, route: [{ destination: { host: 'a' } }] }] });
    return { ...object, metadata: { ...object.metadata, generation: number } };
  };
  const lab = new MeshLab([service('shop/a'), generation(1, '60s')], [proxy('x.shop')]);
  const runs = vi.spyOn(Derived.prototype as unknown as { execute: (key: string) => unknown }, 'execute');
  const ranFor = (object: KubernetesObject): string[] => {
    runs.mockClear();
    lab.graph.commit([
      lab.mesh.inputs.objects.VirtualService.write(objectKey(defaultMeshOptions.clusterId, 'shop', 'v'), object),
    ]);
    return runs.mock.contexts.map((collection) => (collection as unknown as { name: string }).name);
  };
  const same = ranFor(generation(2, '1m'));
  expect(same).toContain('virtualHosts');
  expect(same).not.toContain('routeShards');
  expect(lab.last.members).toEqual([]);
  expect(ranFor(generation(3, '61s'))).toContain('routeShards');
  runs.mockRestore();
});

describe('the names of an ExternalName Service without ports', () => {
  const alias = (path: string) =>
    objectOf('Service', path, { spec: { type: 'ExternalName', externalName: 'new.shop.svc.cluster.local' } });
  const full = 'old.shop.svc.cluster.local';
  const domains = (stream: string, table: string, ...objects: KubernetesObject[]) => {
    const ports = [80, 81].map((port) => ({ name: `http-${port}`, port }));
    const lab = new MeshLab([service('shop/new', { ports }), ...objects], [proxy(stream)]);
    expect(lab.faults(stream)).toEqual([]);
    const { [`new.shop:${table}`]: behind = [], [`old.shop:${table}`]: routed = [] } = lab.domains(stream, table);
    return { behind: behind.filter((domain) => domain.startsWith('old')), routed };
  };

  test.each<[string, string, string, string[], string[]]>([
    ['x.shop', '80', full, [`${full}.`, 'old', 'old.shop.svc', 'old.shop'], [full]],
    ['x.bank', '80', full, [`${full}.`, 'old.shop', 'old.shop.svc'], [full]],
    ['x.shop', '80', 'old.shop', [full, `${full}.`, 'old', 'old.shop.svc'], ['old.shop']],
    ['x.shop', '80', 'other.example', [full, `${full}.`, 'old', 'old.shop.svc', 'old.shop'], []],
    // Routes for a host without ports are on port 80 alone.
    ['x.shop', '81', full, [full, `${full}.`, 'old', 'old.shop.svc', 'old.shop'], []],
  ])('on %s, port %s, with routes for %s', (stream, table, host, behind, routed) => {
    const found = domains(stream, table, alias('shop/old'), route('shop/v', host, 'new.shop.svc.cluster.local'));
    expect(found).toEqual({ behind, routed });
  });
});
