import { describe, expect, test } from 'vitest';
import type { KubernetesObject } from '../../api/object.ts';
import { MeshLab, objectOf, proxy, route, service, sidecar } from '../../../test/harness/lab.ts';

/** A database at one address, known in a namespace by a name of its own. */
function database(path: string, year: number, spec: object = {}): KubernetesObject {
  const [namespace, name] = path.split('/');
  return objectOf(
    'ServiceEntry',
    path,
    {
      spec: {
        hosts: [`${name}.${namespace}.example.com`],
        addresses: ['192.0.2.1'],
        ports: [{ name: 'tcp', number: 5432, protocol: 'TCP' }],
        resolution: 'STATIC',
        endpoints: [{ address: '198.51.100.1' }],
        ...spec,
      },
    },
    { creationTimestamp: `${year}-01-01T00:00:00Z` },
  );
}

/** Clusters that the listeners of the address name, in order; one element for each listener. */
function listeners(lab: MeshLab, stream: string): string[][] {
  expect(lab.faults(stream)).toEqual([]);
  return (lab.json(stream).lds as { readonly name: string }[])
    .filter(({ name }) => name === '192.0.2.1_5432')
    .map((listener) => JSON.stringify(listener).match(/"cluster":"[^"]+"/g) ?? [])
    .map((found) => found.map((cluster) => /\|([^|.]+)\.[^|]+"$/.exec(cluster)?.[1] ?? cluster));
}

const client = 'x.client';
const shop = 'x.shop';

test.each([[['shop/new', 'other/old']], [['other/old', 'shop/new']]])(
  'services of several namespaces at one address have one listener, that of the oldest, whoever came first (%j)',
  (order) => {
    const lab = new MeshLab([], [proxy(client), proxy(shop)]);
    for (const path of order) lab.apply([database(path, path.endsWith('new') ? 2026 : 2020)]);
    expect(listeners(lab, client)).toEqual([['old']]);
    expect(listeners(lab, shop)).toEqual([['old']]);
    lab.delete([database('other/old', 2020)]);
    expect(listeners(lab, client)).toEqual([['new']]);
    lab.apply([database('other/old', 2020)]);
    expect(listeners(lab, client)).toEqual([['old']]);
  },
);

test('who sees only one of them has that one', () => {
  const lab = new MeshLab(
    [database('other/old', 2020, { exportTo: ['.'] }), database('shop/new', 2026)],
    [proxy(client), proxy('x.other')],
  );
  expect(listeners(lab, client)).toEqual([['new']]);
  expect(listeners(lab, 'x.other')).toEqual([['old']]);
});

test('what a Sidecar imports of one namespace meets what it imports of another', () => {
  const lab = new MeshLab(
    [
      database('shop/new', 2026),
      database('other/old', 2020),
      sidecar('client/s', 'shop/*', 'other/old.other.example.com'),
    ],
    [proxy(client), proxy(shop)],
  );
  expect(listeners(lab, client)).toEqual([['old']]);
  lab.apply([sidecar('client/s', 'shop/*')]);
  expect(listeners(lab, client)).toEqual([['new']]);
});

test('services of one namespace at one address share a listener among all clients', () => {
  const lab = new MeshLab([database('shop/a', 2020), database('shop/b', 2021)], [proxy(client), proxy('x.other')]);
  expect(listeners(lab, client)).toEqual([['a']]);
  expect(lab.size('addressedListeners')).toBe(1);
  lab.apply([database('other/c', 2022)]);
  expect(lab.size('addressedListeners')).toBe(0);
  expect(listeners(lab, client)).toEqual([['a']]);
});

test('where an agent or Envoy itself listens, that proxy has no listener of a service', () => {
  const ports = [9100, 15021].map((port) => ({ name: `http-${port}`, port }));
  const lab = new MeshLab(
    [service('shop/a', { ports })],
    [proxy('other.shop'), proxy('status.shop', {}, { ENVOY_STATUS_PORT: 15021, ENVOY_PROMETHEUS_PORT: 9100 })],
  );
  const names = (stream: string): string[] =>
    lab.snapshot(stream).lds.flatMap(({ name }) => (name.startsWith('0.0.0.0_') ? [name] : []));
  expect(names('other.shop')).toEqual(['0.0.0.0_15021', '0.0.0.0_9100']);
  expect(lab.faults('status.shop')).toEqual([]);
  expect(names('status.shop')).toEqual([]);
  expect(lab.clusters('status.shop')).toEqual(['a.shop:15021', 'a.shop:9100']);
});

describe('the listener for clients of an HTTP proxy', () => {
  const own = proxy('none.shop', {}, { INTERCEPTION_MODE: 'NONE', HTTP_PROXY_PORT: '8080' });
  const tablesAt = (lab: MeshLab, address: string): string[] =>
    (lab.json(own.stream).lds as { readonly name: string }[])
      .filter(({ name }) => name === address)
      .map((listener) => /"routeConfigName":"([^"]+)"/.exec(JSON.stringify(listener))?.[1] ?? '');

  test('comes before Services at its address, whoever came first', () => {
    const onItsPort = service('shop/a', { ports: [{ name: 'http', port: 8080 }] });
    const lab = new MeshLab([onItsPort], [own]);
    expect(tablesAt(lab, '127.0.0.1_8080')).toEqual(['http_proxy']);
    lab.delete([onItsPort]);
    expect(tablesAt(lab, '127.0.0.1_8080')).toEqual(['http_proxy']);
    lab.apply([onItsPort]);
    expect(tablesAt(lab, '127.0.0.1_8080')).toEqual(['http_proxy']);
  });

  const two = service('shop/orders', {
    clusterIP: '10.0.0.2',
    ports: [80, 9090].map((port) => ({ name: `http-${port}`, port })),
  });
  const table = (...objects: KubernetesObject[]) => {
    const lab = new MeshLab([two, ...objects], [own]);
    expect(lab.faults(own.stream)).toEqual([]);
    const of = (domain: string) =>
      Object.entries(lab.domains(own.stream, 'http_proxy')).find(([, domains]) => domains.includes(domain))?.[0];
    return (...names: string[]) => names.map(of);
  };

  test('has the routes that apply there: not those for one port', () => {
    const at = (creationTimestamp: string, object: KubernetesObject): KubernetesObject => ({
      ...object,
      metadata: { ...object.metadata, creationTimestamp },
    });
    const lab = new MeshLab(
      [
        two,
        service('shop/b', { clusterIP: '10.0.0.3' }),
        at('2029-01-01T00:00:00Z', route('shop/first', 'orders', 'orders', {}, { port: 80 })),
        at('2029-01-02T00:00:00Z', route('shop/second', 'orders', 'b')),
      ],
      [own],
    );
    const tables = lab.json(own.stream).rds as { name: string; virtualHosts: { name: string; routes: object[] }[] }[];
    const clusters = tables
      .find(({ name }) => name === 'http_proxy')!
      .virtualHosts.filter(({ name }) => name === 'orders.shop.svc.cluster.local:80')
      .map(({ routes }) => /"cluster":"([^"]+)"/.exec(JSON.stringify(routes))?.[1]);
    expect(clusters).toEqual(['outbound|80||b.shop.svc.cluster.local']);
  });

  test('goes by the port of the URL', () => {
    const of = table();
    expect(of('orders', 'orders:80', 'orders:9090')).toEqual(['orders.shop:80', 'orders.shop:80', 'orders.shop:9090']);
    expect(of('orders.shop.svc.cluster.local:9090', '10.0.0.2:9090', '10.0.0.2')).toEqual([
      'orders.shop:9090',
      'orders.shop:9090',
      'orders.shop:80',
    ]);
    // Nobody serves them: they are unknown, like other hosts.
    expect(of('orders:8080', 'orders:443')).toEqual([undefined, undefined]);
  });

  test('knows a host without port 80 only with its port, be it a Service, of another namespace, or a ServiceEntry', () => {
    const ports = [{ name: 'http', port: 8080 }];
    const of = table(
      service('shop/carts', { clusterIP: '10.0.0.3', ports }),
      service('bank/ledger', { clusterIP: '10.0.0.4', ports }),
      objectOf('ServiceEntry', 'shop/e', {
        spec: {
          hosts: ['x.example'],
          resolution: 'DNS',
          ports: [
            { number: 8443, name: 'http', protocol: 'HTTP' },
            { number: 9000, name: 'tcp', protocol: 'TCP' },
          ],
        },
      }),
    );
    expect(of('carts:8080', 'ledger.bank:8080', 'x.example:8443')).toEqual([
      'carts.shop:8080',
      'ledger.bank:8080',
      'x.example:8443',
    ]);
    expect(of('carts', 'carts:80', 'ledger:8080', 'x.example', 'x.example:9000')).toEqual(Array(5).fill(undefined));
  });

  test('has its table where a Sidecar imports nothing for it', () => {
    const spec = { egress: [{ port: { number: 9000, name: 'http', protocol: 'HTTP' }, hosts: ['./*'] }] };
    const lab = new MeshLab([service('shop/a'), objectOf('Sidecar', 'shop/default', { spec })], [own]);
    expect(lab.faults(own.stream)).toEqual([]);
    expect((lab.json(own.stream).rds as { readonly name: string }[]).map(({ name }) => name)).toContain('http_proxy');
  });
});

test.each(['http', 'grpc', 'tcp', 'web'])(
  'without interception, a headless Service with port %s has endpoints',
  (name) => {
    const spec = { clusterIP: 'None', selector: { app: 'db' }, ports: [{ name, port: 9000 }] };
    const none = proxy('none.shop', {}, { INTERCEPTION_MODE: 'NONE' });
    const subset = objectOf('DestinationRule', 'shop/d', {
      spec: { host: 'db', subsets: [{ name: 'v1', labels: { version: 'v1' } }] },
    });
    const entry = objectOf('ServiceEntry', 'shop/e', {
      spec: { hosts: ['x.example'], resolution: 'NONE', ports: [{ number: 81, name: 'http', protocol: 'HTTP' }] },
    });
    const lab = new MeshLab([service('shop/db', spec), subset, entry], [none, proxy('x.shop')]);
    const types = (stream: string) =>
      (lab.json(stream).cds as { readonly name: string; readonly type?: string }[]).flatMap(
        ({ name: cluster, type }) =>
          cluster.startsWith('outbound|') ? [`${cluster.replace('.shop.svc.cluster.local', '')} ${type}`] : [],
      );
    expect(lab.faults(none.stream)).toEqual([]);
    const [own, all] = ['EDS', 'ORIGINAL_DST'].map((type) => [
      'outbound|81||x.example ORIGINAL_DST',
      `outbound|9000|v1|db ${type}`,
      `outbound|9000||db ${type}`,
    ]);
    expect(types(none.stream)).toEqual(own);
    expect(types('x.shop')).toEqual(all);
  },
);
