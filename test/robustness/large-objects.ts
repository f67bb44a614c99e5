import type { KubernetesObject } from '../../src/api/object.ts';
import { TestMesh, connectedProxy, readObjects } from '../harness/mesh.ts';

const MEGABYTE = 1024 * 1024;

type Large = readonly [title: string, object: KubernetesObject, reads: 'served' | 'refused' | 'either'];

/** Objects as large as an API server takes them, or with more of something than anybody needs. */
export function largeObjects(): Large[] {
  const toA = { route: [{ destination: { host: 'a' } }] };
  const many = <T>(count: number, make: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));
  const long = 'x'.repeat(MEGABYTE);
  const http = (route: object) => ({ hosts: ['a'], http: [route] });
  const port = { number: 80, name: 'http', protocol: 'HTTP' };
  return [
    [
      'a VirtualService with 10,000 routes',
      custom('VirtualService', {
        hosts: ['a'],
        http: many(10_000, (i) => ({ match: [{ uri: { prefix: `/${i}/` } }], ...toA })),
      }),
      'served',
    ],
    [
      'a VirtualService with 1,000 hosts',
      custom('VirtualService', { hosts: many(1000, (i) => `h${i}`), http: [toA] }),
      'served',
    ],
    [
      'a VirtualService with 5,000 broken routes',
      custom('VirtualService', { hosts: ['a'], http: many(5000, () => ({ timeout: 'x' })) }),
      'refused',
    ],
    [
      'a path of a megabyte',
      custom('VirtualService', http({ match: [{ uri: { prefix: `/${long}` } }], ...toA })),
      'either',
    ],
    ['a regex of a megabyte', custom('VirtualService', http({ match: [{ uri: { regex: long } }], ...toA })), 'refused'],
    [
      'a header of a megabyte',
      custom('VirtualService', http({ headers: { request: { set: { a: long } } }, ...toA })),
      'either',
    ],
    [
      'a body of more than a megabyte',
      custom('VirtualService', http({ directResponse: { status: 200, body: { string: `${long}x` } } })),
      'refused',
    ],
    ['a host of a megabyte', custom('VirtualService', { hosts: [long], http: [toA] }), 'refused'],
    [
      'a field name of a megabyte',
      custom('VirtualService', http({ [long]: 1, headers: { request: { set: { [long]: 'a' } } }, ...toA })),
      'either',
    ],
    [
      'a DestinationRule with 500 subsets',
      custom('DestinationRule', {
        host: 'a',
        subsets: many(500, (i) => ({ name: `v${i}`, labels: { version: `v${i}` } })),
      }),
      'served',
    ],
    [
      'a ServiceEntry with 5,000 endpoints',
      custom('ServiceEntry', {
        hosts: ['x.example.com'],
        ports: [port],
        resolution: 'STATIC',
        endpoints: many(5000, (i) => ({ address: `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}` })),
      }),
      'served',
    ],
    [
      'a ServiceEntry with 200 hosts and 5 ports',
      custom('ServiceEntry', {
        hosts: many(200, (i) => `h${i}.example.com`),
        ports: many(5, (i) => ({ ...port, number: 8000 + i, name: `http-${i}` })),
        resolution: 'NONE',
      }),
      'served',
    ],
    [
      'a Gateway with 500 servers',
      custom('Gateway', {
        servers: many(500, (i) => ({
          port: { ...port, number: 10_000 + i, name: `http-${i}` },
          hosts: [`h${i}.example.com`],
        })),
      }),
      'served',
    ],
    [
      'a Sidecar with 10,000 hosts',
      custom('Sidecar', { egress: [{ hosts: ['*/*', ...many(10_000, (i) => `./h${i}.example.com`)] }] }),
      'served',
    ],
    [
      'a WorkloadEntry with a label of a megabyte',
      custom('WorkloadEntry', { address: '192.0.2.1', labels: { app: long } }),
      'either',
    ],
    ['nesting that is 10,000 levels deep', custom('VirtualService', http({ fault: nested(10_000), ...toA })), 'either'],
  ];
}

function nested(depth: number): object {
  let value: object = {};
  for (let i = 0; i < depth; i++) value = { delay: value };
  return value;
}

/** In the namespace of the Services beside it. */
export function custom(kind: string, spec: object): KubernetesObject {
  const metadata = { name: 'large', namespace: 'shop' };
  return { apiVersion: 'networking.istio.io/v1', kind, metadata, spec } as KubernetesObject;
}

const services = readObjects(`
apiVersion: v1
kind: Service
metadata: {name: a, namespace: shop}
spec: {clusterIP: 10.96.1.1, ports: [{name: http, port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: b, namespace: shop}
spec: {clusterIP: 10.96.1.2, ports: [{name: http, port: 80}]}
`);

/** A mesh with the objects and two Services, which a sidecar and a router look at. */
export function servedBeside(...objects: readonly KubernetesObject[]): TestMesh {
  const mesh = new TestMesh({ oracle: false });
  mesh.apply([...services, ...objects]);
  mesh.connect(connectedProxy('sidecar', { id: 'sidecar~10.1.0.1~client.shop~shop.svc.cluster.local' }));
  mesh.connect(connectedProxy('router', { id: 'router~10.1.0.2~router.shop~shop.svc.cluster.local' }));
  return mesh;
}
