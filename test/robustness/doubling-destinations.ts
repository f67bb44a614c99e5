import {
  type DoublingCase,
  many,
  record,
  spec,
  port,
  service,
  host,
  address,
  toA,
  names,
  entry,
  rule,
  subsets,
  grown,
  unconnected,
  vs,
} from './doubling-objects.ts';

export const casesOfDestinations: readonly DoublingCase[] = [
  grown(
    'DestinationRule: subsets that distribute, ports',
    (n) => [
      rule({
        host: 'h0.example.com',
        subsets: subsets(n, () => ({
          tls: { mode: 'SIMPLE' },
          loadBalancer: { localityLbSetting: { enabled: true, distribute: [{ from: 'r/*', to: { 'r9/*': 100 } }] } },
        })),
      }),
    ],
    (n) => [
      entry({
        endpoints: many(n, (i) => ({ address: address(i), labels: { version: `v${i}` }, locality: `r/z${i}` })),
      }),
    ],
  ),
  unconnected(
    grown(
      'DestinationRule: subsets of one label that distribute',
      (n) => [
        rule({
          host: 'h0.example.com',
          subsets: many(n, (i) => ({
            name: `v${i}`,
            labels: { version: 'v' },
            trafficPolicy: {
              loadBalancer: {
                localityLbSetting: { enabled: true, distribute: [{ from: 'r/*', to: { 'r9/*': 100 } }] },
              },
            },
          })),
        }),
      ],
      (n) => [
        entry({ endpoints: many(n, (i) => ({ address: address(i), labels: { version: `v` }, locality: `r/z${i}` })) }),
      ],
    ),
  ),
  grown(
    'DestinationRule: distribute × endpoints',
    (n) => [
      rule({
        host: 'h0.example.com',
        trafficPolicy: {
          loadBalancer: {
            localityLbSetting: {
              enabled: true,
              distribute: many(n, (i) => ({ from: `f${i}/*`, to: { [`r9/z${i}`]: 100 } })),
            },
          },
        },
      }),
    ],
    (n) => [
      entry({
        endpoints: many(n, (i) => ({ address: address(i), labels: { version: `v${i}` }, locality: `r/z${i}` })),
      }),
    ],
  ),
  grown(
    'DestinationRule: patterns × endpoints',
    (n) => [
      rule({
        host: 'h0.example.com',
        trafficPolicy: {
          loadBalancer: {
            localityLbSetting: {
              enabled: true,
              distribute: [{ from: `f/*`, to: { ...record(n, (i) => [`r9/z${i}`, i === 0 ? 100 - n + 1 : 1]) } }],
            },
          },
        },
      }),
    ],
    (n) => [
      entry({
        endpoints: many(n, (i) => ({ address: address(i), labels: { version: `v${i}` }, locality: `r/z${i}` })),
      }),
    ],
  ),
  grown(
    'DestinationRule: portLevelSettings × ports',
    (n) => [
      rule({
        trafficPolicy: {
          portLevelSettings: many(n, (i) => ({
            port: { number: 1000 + i },
            tls: { mode: 'SIMPLE', subjectAltNames: ['a'] },
          })),
        },
      }),
    ],
    (n) => [service(n, 'a', 'https')],
  ),
  grown(
    'DestinationRule: portLevelSettings of ports that are not there',
    (n) => [
      rule({
        trafficPolicy: {
          portLevelSettings: many(n, (i) => ({
            port: { number: 5000 + i },
            tls: { mode: 'SIMPLE', subjectAltNames: ['a'] },
          })),
        },
      }),
    ],
    (n) => [service(n, 'a', 'https')],
  ),
  grown(
    'DestinationRule: subsets that encrypt',
    (n) => [rule({ subsets: subsets(n, () => ({ tls: { mode: 'SIMPLE', caCertificates: '/a' } })) })],
    () => [service(1, 'a', 'https')],
  ),
  grown('DestinationRule: subsets and labels', (n) => [
    rule({
      subsets: [...subsets(n), { name: 'all', labels: record(n, (i) => [`l${i}`, 'a']) }],
      exportTo: names(n, 'n'),
      workloadSelector: { matchLabels: record(n, (i) => [`l${i}`, 'a']) },
    }),
  ]),
  grown(
    'DestinationRule: failover lists',
    (n) => [
      rule({
        host: 'h0.example.com',
        trafficPolicy: {
          outlierDetection: {},
          loadBalancer: {
            localityLbSetting: { enabled: true, failover: many(n, (i) => ({ from: `f${i}`, to: `t${i}` })) },
          },
        },
      }),
    ],
    (n) => [entry({ endpoints: many(n, (i) => ({ address: address(i), locality: `r/z${i}` })) })],
  ),
  grown(
    'DestinationRule: failoverPriority',
    (n) => [
      rule({
        host: 'h0.example.com',
        trafficPolicy: {
          outlierDetection: {},
          loadBalancer: { localityLbSetting: { enabled: true, failoverPriority: names(n, 'l') } },
        },
      }),
    ],
    (n) => [entry({ endpoints: many(n, (i) => ({ address: address(i), locality: `r/z${i}` })) })],
  ),
  grown('DestinationRule: subjectAltNames, hash and cookies', (n) => [
    rule({
      trafficPolicy: {
        tls: { mode: 'SIMPLE', subjectAltNames: many(n, host) },
        outlierDetection: {},
        loadBalancer: {
          consistentHash: {
            httpCookie: { name: 'a', ttl: '1s', attributes: many(n, (i) => ({ name: `a${i}`, value: 'x' })) },
          },
        },
      },
    }),
  ]),
  grown(
    'ServiceEntry: hosts',
    (n) => [entry({ hosts: many(n, host) })],
    (n) => [vs({ hosts: many(n, host), http: [toA] }), rule({ host: '*.example.com' })],
  ),
  grown(
    'ServiceEntry: hosts that others have',
    (n) => [entry({ hosts: many(n, host) })],
    (n) => many(n, (i) => spec('ServiceEntry', { hosts: [host(i)], ports: [port(1)], resolution: 'DNS' }, `e${i}`)),
  ),
  grown(
    'ServiceEntry: wildcard hosts',
    (n) => [entry({ hosts: many(n, (i) => `*.${host(i)}`), resolution: 'NONE' })],
    (n) => [vs({ hosts: many(n, (i) => `a.${host(i)}`), http: [toA] }), entry({})],
  ),
  grown(
    'ServiceEntry: ports',
    (n) => [entry({ ports: many(n, (i) => ({ ...port(i), targetPort: 7000 + i })) })],
    (n) => [
      rule({
        host: 'h0.example.com',
        trafficPolicy: { portLevelSettings: many(n, (i) => ({ port: { number: 1000 + i }, tls: { mode: 'SIMPLE' } })) },
      }),
    ],
  ),
  grown(
    'ServiceEntry: ports and routes to them',
    (n) => [entry({ ports: many(n, (i) => port(i, 'TLS')), resolution: 'DNS' })],
    (n) => [
      vs({
        hosts: ['h0.example.com'],
        tls: many(n, (i) => ({
          match: [{ port: 1000 + i, sniHosts: ['h0.example.com'] }],
          route: [{ destination: { host: 'h0.example.com', port: { number: 1000 + i } } }],
        })),
      }),
    ],
  ),
  grown(
    'ServiceEntry: endpoints',
    (n) => [
      entry({
        endpoints: many(n, (i) => ({
          address: address(i),
          labels: { version: `v${i}` },
          locality: `r/z${i}`,
          network: `n${i}`,
        })),
      }),
    ],
    (n) => [
      rule({
        host: 'h0.example.com',
        trafficPolicy: {
          outlierDetection: {},
          loadBalancer: { localityLbSetting: { enabled: true, failover: [{ from: 'a', to: 'b' }] } },
        },
      }),
      ...many(n, (i) => spec('WorkloadEntry', { address: address(i), labels: { app: 'x' } }, `w${i}`)),
    ],
  ),
  grown('ServiceEntry: endpoints with names and ports', (n) => [
    entry({
      resolution: 'DNS',
      endpoints: many(n, (i) => ({
        address: `e${i}.example.com`,
        ports: { 'http-0': 7000 + i },
        labels: { a: `${i}` },
      })),
    }),
  ]),
  grown('ServiceEntry: an endpoint with many ports and labels', (n) => [
    entry({
      ports: many(n, port as (i: number) => object),
      endpoints: [
        {
          address: address(0),
          labels: record(n, (i) => [`l${i}`, 'a']),
          ports: record(n, (i) => [`http-${i}`, 7000 + i]),
        },
      ],
    }),
  ]),
  grown(
    'ServiceEntry: addresses',
    (n) => [entry({ resolution: 'NONE', ports: [port(0, 'TCP')], addresses: many(n, address) })],
    (n) => [
      spec(
        'ServiceEntry',
        { hosts: ['other.example.com'], resolution: 'NONE', ports: [port(0, 'TCP')], addresses: many(n, address) },
        'e',
      ),
    ],
  ),
  grown(
    'ServiceEntry: ranges',
    (n) => [entry({ resolution: 'NONE', ports: [port(0, 'TCP')], addresses: many(n, (i) => `10.${i}.0.0/16`) })],
    (n) => [
      spec(
        'ServiceEntry',
        {
          hosts: ['other.example.com'],
          resolution: 'NONE',
          ports: [port(0, 'TCP')],
          addresses: many(n, (i) => `10.${i}.0.0/16`),
        },
        'e',
      ),
    ],
  ),
  grown('ServiceEntry: exportTo', (n) => [
    entry({ exportTo: names(n, 'n'), endpoints: many(n, (i) => ({ address: address(i) })) }),
  ]),
  grown(
    'ServiceEntry: selector and workloads',
    () => [entry({ workloadSelector: { labels: { app: 'x' } } })],
    (n) => many(n, (i) => spec('WorkloadEntry', { address: address(i), labels: { app: 'x' } }, `w${i}`)),
  ),
  grown('Service: annotations and external addresses', (n) => [
    spec(
      'Service',
      {
        clusterIP: '10.96.0.1',
        ports: [{ name: 'http-0', port: 1000 }],
        selector: record(n, (i) => [`l${i}`, 'a']),
        externalIPs: many(n, address),
        loadBalancerSourceRanges: many(n, address),
      },
      'a',
      { annotations: { 'networking.istio.io/exportTo': names(n, 'n').join(',') } },
    ),
  ]),
];
