import {
  type DoublingCase,
  many,
  record,
  service,
  host,
  to,
  toA,
  gateways,
  names,
  entry,
  rule,
  subsets,
  grown,
  unconnected,
  vs,
} from './doubling-objects.ts';

export const casesOfRoutes: readonly DoublingCase[] = [
  grown(
    'VirtualService: routes, gateways',
    (n) => [
      vs({
        hosts: ['h0.example.com'],
        gateways: [...names(n, 'g'), 'mesh'],
        http: many(n, (i) => ({ name: `r${i}`, match: [{ uri: { prefix: `/${i}/` } }], ...toA })),
      }),
    ],
    (n) => gateways(n, () => ['other.example.com']),
  ),
  grown(
    'VirtualService: hosts, gateways that have other hosts',
    (n) => [vs({ hosts: many(n, host), gateways: [...names(n, 'g'), 'mesh'], http: [toA] })],
    (n) => gateways(n, (i) => [`g${i}.example.com`]),
  ),
  grown(
    'VirtualService: hosts, gateways, each with one',
    (n) => [vs({ hosts: many(n, host), gateways: [...names(n, 'g'), 'mesh'], http: [toA] })],
    (n) => gateways(n, (i) => [host(i)]),
  ),
  grown(
    'VirtualService: hosts of ServiceEntries',
    (n) => [vs({ hosts: many(n, host), http: [toA] })],
    (n) => [entry({ hosts: many(n, host) })],
  ),
  grown(
    'VirtualService: routes, ports of destination',
    (n) => [
      vs({
        hosts: ['h0.example.com'],
        http: many(n, (i) => ({
          match: [{ uri: { prefix: `/${i}/` }, port: 1000 + i }],
          route: [{ destination: { host: 'a', port: { number: 1000 + i } } }],
        })),
      }),
    ],
    (n) => [service(n)],
  ),
  unconnected(
    grown(
      'VirtualService: missing destinations, ports of its host',
      (n) => [vs({ hosts: ['a'], http: [{ route: many(n, (i) => ({ destination: { host: `x${i}` }, weight: 1 })) }] })],
      (n) => [service(n)],
    ),
  ),
  grown('VirtualService: matches', (n) => [
    vs({
      hosts: ['a'],
      http: [
        {
          match: many(n, (i) => ({
            name: `m${i}`,
            uri: { prefix: `/${i}/` },
            headers: { [`x-${i}`]: { exact: 'a' } },
            sourceLabels: { app: `l${i}` },
          })),
          ...toA,
        },
      ],
    }),
  ]),
  grown('VirtualService: routes with sourceLabels, sourceNamespace', (n) => [
    vs({
      hosts: ['a'],
      http: many(n, (i) => ({
        match: [{ uri: { prefix: `/${i}/` }, sourceLabels: { app: `l${i}` } }, { sourceNamespace: `n${i}` }],
        ...toA,
      })),
    }),
  ]),
  grown(
    'VirtualService: a match with many of each',
    (n) => [
      vs({
        hosts: ['a'],
        gateways: [...names(n, 'g'), 'mesh'],
        http: [
          {
            match: [
              {
                headers: record(n, (i) => [`x-${i}`, { exact: 'a' }]),
                withoutHeaders: record(n, (i) => [`y-${i}`, { exact: 'a' }]),
                queryParams: record(n, (i) => [`q${i}`, { exact: 'a' }]),
                sourceLabels: record(n, (i) => [`l${i}`, 'a']),
                gateways: [...names(n, 'g'), 'mesh'],
              },
            ],
            ...toA,
          },
        ],
      }),
    ],
    () => gateways(1, () => ['*']),
  ),
  grown(
    'VirtualService: destinations of a route, subsets',
    (n) => [
      vs({
        hosts: ['a'],
        http: [
          {
            route: many(n, (i) => ({ ...to(i), weight: 1, headers: { request: { set: { [`x-${i}`]: 'a' } } } })),
            mirrors: many(n, (i) => to(i)),
            headers: {
              request: {
                set: record(n, (i) => [`x-${i}`, 'a']),
                add: record(n, (i) => [`y-${i}`, 'a']),
                remove: names(n, 'z-'),
              },
              response: { set: record(n, (i) => [`x-${i}`, 'a']) },
            },
            corsPolicy: {
              allowOrigins: many(n, (i) => ({ exact: `http://${host(i)}` })),
              allowMethods: names(n, 'M'),
              allowHeaders: names(n, 'h'),
              exposeHeaders: names(n, 'e'),
            },
          },
        ],
      }),
    ],
    (n) => [rule({ subsets: subsets(n) })],
  ),
  grown(
    'VirtualService: routes to missing subsets of many',
    (n) => [
      vs({ hosts: ['a'], http: many(n, (i) => ({ match: [{ uri: { prefix: `/${i}/` } }], route: [to(i + 1000)] })) }),
    ],
    (n) => [rule({ subsets: subsets(n) })],
  ),
  grown(
    'VirtualService: TLS matches, gateways',
    (n) => [
      vs({
        hosts: ['*.example.com'],
        gateways: [...names(n, 'g'), 'mesh'],
        tls: many(n, (i) => ({ match: [{ sniHosts: [host(i)] }], ...toA })),
      }),
    ],
    (n) => gateways(n, () => ['other.example.com'], 'TLS'),
  ),
  grown(
    'VirtualService: TLS matches that name one Gateway of many hosts',
    (n) => [
      vs({
        hosts: ['*.example.com'],
        gateways: ['g0'],
        tls: many(n, (i) => ({ match: [{ sniHosts: [host(i)], gateways: ['g0'] }], ...toA })),
      }),
    ],
    (n) => gateways(1, () => names(n, 'other').map((name) => `${name}.example.com`), 'TLS'),
  ),
  grown(
    'VirtualService: server names, subnets and Gateways of a match',
    (n) => [
      vs({
        hosts: ['*.example.com'],
        gateways: [...names(n, 'g'), 'mesh'],
        tls: [
          {
            match: [
              {
                sniHosts: many(n, host),
                destinationSubnets: many(n, (i) => `10.1.${i}.0/24`),
                gateways: names(n, 'g'),
              },
            ],
            ...toA,
          },
        ],
      }),
    ],
    (n) => gateways(n, (i) => [`g${i}.example.com`], 'TLS'),
  ),
  grown(
    'VirtualService: TCP routes, gateways',
    (n) => [
      vs({
        hosts: ['a'],
        gateways: [...names(n, 'g'), 'mesh'],
        tcp: many(n, (i) => ({ match: [{ port: 1000 + i, destinationSubnets: [`10.1.${i}.0/24`] }], ...toA })),
      }),
    ],
    (n) => [service(n, 'a', 'tcp'), ...gateways(n, () => ['*'], 'TCP')],
  ),
  grown('VirtualService: exportTo, gateways, routes', (n) => [
    vs({
      hosts: ['a'],
      exportTo: names(n, 'n'),
      gateways: [...names(n, 'g'), 'mesh'],
      http: many(n, (i) => ({ match: [{ uri: { prefix: `/${i}/` } }], ...toA })),
    }),
  ]),
  grown(
    'VirtualService: delegates',
    (n) => [
      vs({
        hosts: ['a'],
        http: many(n, (i) => ({
          match: [{ uri: { prefix: `/${i}/` } }],
          delegate: { name: `d${i}`, namespace: 'shop' },
        })),
      }),
    ],
    (n) => many(n, (i) => vs({ http: [{ match: [{ uri: { prefix: `/${i}/x` } }], ...toA }] }, `d${i}`)),
  ),
  grown(
    'VirtualService: one delegate of many routes',
    (n) => [
      vs({
        hosts: ['a'],
        http: [{ match: many(n, (i) => ({ uri: { prefix: `/${i}/` } })), delegate: { name: 'd0', namespace: 'shop' } }],
      }),
    ],
    () => many(1, (i) => vs({ http: [{ ...toA }] }, `d${i}`)),
  ),
  grown(
    'VirtualService: TLS matches that name several Gateways of many hosts',
    (n) => [
      vs({
        hosts: ['*.example.com'],
        gateways: ['g0', 'g1'],
        tls: many(n, (i) => ({ match: [{ sniHosts: [host(i)], gateways: ['g0', 'g1'] }], ...toA })),
      }),
    ],
    (n) => gateways(2, () => names(n, 'other').map((name) => `${name}.example.com`), 'TLS'),
  ),
];
