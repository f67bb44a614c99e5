import type { KubernetesObject } from '../../src/api/object.ts';

const many = <T>(count: number, make: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));
const portsOf = (count: number, protocol = 'HTTP') =>
  many(count, (i) => ({ number: 1000 + i, name: `p-${i}`, protocol }));
const endpointsOf = (count: number) => many(count, (i) => ({ address: `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}` }));
const subsetsOf = (count: number) => many(count, (i) => ({ name: `v${i}`, labels: { version: `v${i}` } }));
const toA = { route: [{ destination: { host: 'a' } }] };
const entry = (hosts: number, ports: number, endpoints: number, more: object = {}) =>
  custom('ServiceEntry', {
    hosts: many(hosts, (i) => `h${i}.example.com`),
    ports: portsOf(ports),
    resolution: 'STATIC',
    endpoints: endpointsOf(endpoints),
    ...more,
  });
const addressed = (addresses: number, ports: number) =>
  custom('ServiceEntry', {
    hosts: ['h.example.com'],
    ports: portsOf(ports, 'TCP'),
    resolution: 'NONE',
    addresses: many(addresses, (i) => `10.1.${i >> 8}.${i & 255}`),
  });
/** An entry whose hosts have all of the ranges. */
export const rangesOf = (hosts: number, ranges: number, ports: number, protocol: string) =>
  custom('ServiceEntry', {
    hosts: many(hosts, (i) => `h${i}.example.com`),
    ports: portsOf(ports, protocol),
    resolution: 'NONE',
    addresses: many(ranges, (i) => `10.${i >> 8}.${i & 255}.0/24`),
  });
const routesOf = (hosts: number, routes: number) =>
  custom('VirtualService', {
    hosts: many(hosts, (i) => `h${i}.example.com`),
    http: many(routes, (i) => ({ match: [{ uri: { prefix: `/${i}/` } }], ...toA })),
  });
const answers = (body: number, paths: number, hosts: number) =>
  custom('VirtualService', {
    hosts: many(hosts, (i) => `h${i}.example.com`),
    http: [
      {
        match: many(paths, (i) => ({ uri: { exact: `/${i}` } })),
        directResponse: { status: 200, body: { string: 'x'.repeat(body) } },
      },
    ],
  });
const serversOf = (servers: number) =>
  custom('Gateway', {
    servers: many(servers, (i) => ({
      port: { number: 443, name: `tls-${i}`, protocol: 'HTTPS' },
      hosts: [`h${i}.example.com`],
      tls: { mode: 'SIMPLE', serverCertificate: '/c', privateKey: '/k' },
    })),
  });

/** Objects of which each list is of a size that somebody might write, and whose lists multiply: as much as is possible. */
export function objectsWithProducts(): [title: string, object: KubernetesObject][] {
  return [
    ['a ServiceEntry with 1 host, 1 port and 10,000 endpoints', entry(1, 1, 10_000)],
    ['a ServiceEntry with 1 host, 20 ports and 2,000 endpoints', entry(1, 20, 2000)],
    ['a ServiceEntry with 1 host, 1,000 ports and 40 endpoints', entry(1, 1000, 40)],
    ['a ServiceEntry with 1,000 hosts, 10 ports and 10 endpoints', entry(1000, 10, 10)],
    ['a ServiceEntry with 2,000 addresses and 5 TCP ports', addressed(2000, 5)],
    ['a ServiceEntry with 50 hosts, 50 ranges and 4 TLS ports', rangesOf(50, 50, 4, 'TLS')],
    ['a ServiceEntry with 50 hosts, 50 ranges and 4 TCP ports', rangesOf(50, 50, 4, 'TCP')],
    ['a DestinationRule with 1,000 subsets', custom('DestinationRule', { host: 'a', subsets: subsetsOf(1000) })],
    [
      'a DestinationRule with 500 subsets, each with 20 ports',
      custom('DestinationRule', {
        host: 'twenty',
        subsets: subsetsOf(500).map((subset) => ({
          ...subset,
          trafficPolicy: {
            portLevelSettings: many(20, (i) => ({ port: { number: 80 + i }, tls: { mode: 'SIMPLE', sni: `s${i}` } })),
          },
        })),
      }),
    ],
    [
      'a DestinationRule with 10 subsets for a wildcard host',
      custom('DestinationRule', { host: '*.example.com', subsets: subsetsOf(10) }),
    ],
    ['a VirtualService with 100 hosts and 1,000 routes', routesOf(100, 1000)],
    ['a VirtualService with 10,000 routes', routesOf(1, 10_000)],
    [
      'a VirtualService with 400 regular expressions',
      custom('VirtualService', {
        hosts: ['a'],
        http: many(400, (i) => ({ match: [{ uri: { regex: `/(a|b|c){1,20}x${i}[a-z]{1,30}` } }], ...toA })),
      }),
    ],
    [
      'a VirtualService with 1,000 TLS routes of 20 names',
      custom('VirtualService', {
        hosts: ['*.example.com'],
        tls: many(1000, (i) => ({ match: [{ sniHosts: many(20, (n) => `s${n}.h${i}.example.com`) }], ...toA })),
      }),
    ],
    [
      'a Gateway with 100 servers of 500 hosts',
      custom('Gateway', {
        servers: many(100, (i) => ({
          port: { number: 10_000 + i, name: `http-${i}`, protocol: 'HTTP' },
          hosts: many(500, (n) => `h${n}.example.com`),
        })),
      }),
    ],
    ['a Gateway with 2,000 servers of TLS', serversOf(2000)],
    [
      'a Sidecar with 100 listeners of 500 hosts',
      custom('Sidecar', {
        egress: many(100, (i) => ({
          port: { number: 10_000 + i, name: `http-${i}`, protocol: 'HTTP' },
          hosts: many(500, (n) => `*/h${n}.example.com`),
        })),
      }),
    ],
  ];
}

/** Objects with more than that, and the field whose owner reads so. */
export function objectsBeyondLimits(): [title: string, object: KubernetesObject, field: string][] {
  return [
    ['a ServiceEntry with 1,001 hosts and 10 ports', entry(1001, 10, 1), 'spec.hosts'],
    ['a ServiceEntry with 2,001 addresses and 5 ports', addressed(2001, 5), 'spec.addresses'],
    ['a ServiceEntry with 51 hosts and 50 ranges', rangesOf(51, 50, 1, 'TLS'), 'spec.hosts'],
    ['a ServiceEntry with 40 hosts, 51 ranges and 5 ports', rangesOf(40, 51, 5, 'TCP'), 'spec.addresses'],
    ['a ServiceEntry with 21 ports and 2,000 endpoints', entry(1, 21, 2000), 'spec.endpoints'],
    ['a ServiceEntry with 100 hosts, 20 ports and 101 endpoints', entry(100, 20, 101), 'spec.endpoints'],
    [
      'a DestinationRule with 5,000 subsets',
      custom('DestinationRule', { host: 'a', subsets: subsetsOf(5000) }),
      'spec.subsets',
    ],
    [
      'a DestinationRule with 11 subsets for a wildcard host',
      custom('DestinationRule', { host: '*.example.com', subsets: subsetsOf(11) }),
      'spec.subsets',
    ],
    ['a ServiceEntry with 1,001 ports', entry(1, 1001, 1), 'spec.ports'],
    ['a VirtualService with 10,001 routes', routesOf(1, 10_001), 'spec.http'],
    ['a VirtualService with 101 hosts and 1,000 routes', routesOf(101, 1000), 'spec.http'],
    ['a VirtualService with a body of 100 kB for each of 100 paths', answers(100_000, 100, 1), 'spec.http'],
    ['a VirtualService with a body of 1 MB for each of 100 hosts', answers(1_000_000, 1, 100), 'spec.http'],
    [
      'a VirtualService with 1,000 destinations for each of 1,000 paths',
      custom('VirtualService', {
        hosts: ['a'],
        http: [
          {
            match: many(1000, (i) => ({ uri: { prefix: `/${i}/` } })),
            route: many(1000, (i) => ({ destination: { host: 'a', subset: `v${i}` }, weight: 1 })),
          },
        ],
      }),
      'spec.http',
    ],
    [
      'a ServiceEntry of 201 hosts for each of 100 namespaces',
      entry(201, 1, 1, { exportTo: many(100, (i) => `n${i}`) }),
      'spec.exportTo',
    ],
    [
      'a VirtualService of 201 source labels for each of 100 namespaces',
      custom('VirtualService', {
        hosts: ['a'],
        exportTo: many(100, (i) => `n${i}`),
        http: [{ match: many(201, (i) => ({ sourceLabels: { app: `a${i}` } })), ...toA }],
      }),
      'spec.exportTo',
    ],
    ['a Gateway with 2,001 servers', serversOf(2001), 'spec.servers'],
  ];
}

function custom(kind: string, spec: object): KubernetesObject {
  const metadata = { name: 'large', namespace: 'shop' };
  return { apiVersion: 'networking.istio.io/v1', kind, metadata, spec } as KubernetesObject;
}
