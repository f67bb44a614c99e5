import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { differences } from '../../../test/truth/difference.ts';
import { normalise, recorded, type Tree } from '../../../test/truth/normalise.ts';
import {
  clusterOf,
  clustersOf,
  endpointOf,
  fixedClusters,
  httpOptionsOf,
  jsonOf,
  settingsOf,
} from '../testing/clusters.ts';
import { entryOf, port, serviceOf, traitsOf } from '../testing/listeners.ts';

/** The clusters that were recorded for a proxy of a truth case. */
function truth(name: string, proxy: string): { [name: string]: Tree } {
  const file = join(import.meta.dirname, '../../../test/truth/cases', name, 'expected', `${proxy}.json`);
  const { primary } = recorded(JSON.parse(readFileSync(file, 'utf8')) as { [key: string]: Tree });
  return primary['cds'] as { [name: string]: Tree };
}

describe('a cluster is what Istio serves', () => {
  const inNamespace = (namespace: string, name = 'a', ports = [port(80, 'HTTP', 'http')]) =>
    serviceOf(name, ports, { namespace, host: `${name}.${namespace}.svc.cluster.local` });
  const spiffe = (namespace: string) => [`spiffe://cluster.local/ns/${namespace}/sa/default`];
  test.each([
    {
      name: 'destinationrule/subsets',
      service: inNamespace('subsets'),
      summary: { identities: spiffe('subsets') },
      rule: {
        subsets: [
          { name: 'one', labels: { version: 'v1' } },
          { name: 'two', labels: { version: 'v2' } },
          { name: 'none', labels: { version: 'v9' } },
          { name: 'any' },
        ],
      },
    },
    {
      name: 'destinationrule/headless',
      service: serviceOf('a', [port(80, 'HTTP', 'http'), port(81, 'TCP', 'tcp')], {
        namespace: 'headless',
        host: 'a.headless.svc.cluster.local',
        resolution: 'Passthrough',
      }),
      rule: {
        trafficPolicy: { loadBalancer: { simple: 'ROUND_ROBIN' }, tls: { mode: 'ISTIO_MUTUAL' } },
        subsets: [{ name: 's', labels: { x: 'y' } }],
      },
    },
    {
      name: 'locality/dns-service-entry',
      service: entryOf('ext.example.com', [port(80, 'HTTP', 'http')], {
        namespace: 'dns-service-entry',
        name: 'ext.example.com',
        resolution: 'DNSLB',
        meshExternal: true,
      }),
      summary: {
        dnsEndpoints: [
          { address: 'one.example.com', workload: 's-0', locality: 'r1/z1/s1', weight: 3 },
          { address: 'two.example.com', workload: 's-1', locality: 'r2/z3', weight: 1 },
        ].map(({ address, ...rest }) =>
          endpointOf(address, { ...rest, namespace: 'dns-service-entry', portName: 'http', port: 80 }),
        ),
      },
      rule: { host: 'ext.example.com', trafficPolicy: { outlierDetection: {} } },
      topology: { locality: 'r1/z1/s1', network: '', cluster: 'Kubernetes', nodeName: '', labels: {} },
    },
    {
      name: 'mesh/tcp-keepalive',
      service: inNamespace('tcp-keepalive'),
      mesh: 'tcpKeepalive: {probes: 2, time: 10s, interval: 3s}',
    },
  ])('$name', ({ name, ...given }) => {
    const want = truth(name, 'client');
    const got = normalise({ cds: [...clustersOf(given).values()] as unknown as Tree[] });
    const wanted = Object.fromEntries(
      Object.keys(got.primary['cds'] as object).map((cluster) => [cluster, want[cluster] ?? null]),
    );
    expect(differences(wanted, got.primary['cds'] ?? null)).toEqual([]);
  });

  test.each(['client', 'router'])('the fixed ones of a %s', (proxy) => {
    const proxyType = proxy === 'router' ? 'router' : 'sidecar';
    const fixed = fixedClusters({
      traits: traitsOf({ proxyType }),
      settings: settingsOf(),
      outboundPolicy: 'ALLOW_ANY',
    });
    const got = normalise({ cds: fixed.map((cluster) => jsonOf(cluster)) as unknown as Tree[] });
    const clusters = truth('destinationrule/tls-credential-name', proxy);
    const wanted = Object.fromEntries(Object.entries(clusters).filter(([name]) => !name.includes('|')));
    expect(differences(wanted, got.primary['cds'] ?? null)).toEqual([]);
  });
});

test('UDP ports, aliases and DNS services without endpoints have no cluster', () => {
  const ports = [port(53, 'UDP', 'dns'), port(53, 'TCP', 'dns-tcp')];
  expect([...clustersOf({ service: serviceOf('a', ports) }).keys()]).toEqual(['outbound|53||a.shop.svc.cluster.local']);
  expect(clustersOf({ service: serviceOf('a', ports, { resolution: 'Alias' }) }).size).toBe(0);
  expect(clustersOf({ service: entryOf('x.example.com', [port(80, 'HTTP')], { resolution: 'DNSLB' }) }).size).toBe(0);
});

test('a subset of a DNS service that no endpoint has is left out', () => {
  const service = entryOf('x.example.com', [port(80, 'HTTP')], { resolution: 'DNSLB' });
  const dnsEndpoints = [endpointOf('x.example.com', { labels: { v: '1' } })];
  const rule = { host: 'x.example.com', subsets: [1, 2].map((v) => ({ name: `v${v}`, labels: { v: String(v) } })) };
  expect([...clustersOf({ service, rule, summary: { dnsEndpoints } }).keys()]).toEqual([
    'outbound|80||x.example.com',
    'outbound|80|v1|x.example.com',
  ]);
});

test.each(['DNSRoundRobinLB', 'DNSLB'] as const)(
  'a logical host (%s) has one endpoint, as Envoy wants it',
  (resolution) => {
    const service = entryOf('x.example.com', [port(80, 'HTTP')], { resolution, raceConnect: resolution === 'DNSLB' });
    const dnsEndpoints = [endpointOf('a.example.com'), endpointOf('b.example.com')];
    const { type, loadAssignment } = clusterOf({ service, summary: { dnsEndpoints } });
    expect(type).toBe('LOGICAL_DNS');
    expect(JSON.stringify(loadAssignment)).not.toContain('b.example.com');
  },
);

test('a ServiceEntry without resolution connects to its target port', () => {
  const ports = [
    { ...port(80, 'HTTP'), targetPort: 8080 },
    { ...port(81, 'HTTP'), targetPort: 81 },
  ];
  const clusters = clustersOf({ service: entryOf('x.example.com', ports, { resolution: 'Passthrough' }) });
  expect(clusters.get('outbound|80||x.example.com')).toMatchObject({
    type: 'ORIGINAL_DST',
    originalDstLbConfig: { upstreamPortOverride: 8080 },
  });
  expect(clusters.get('outbound|81||x.example.com')).not.toHaveProperty('originalDstLbConfig');
});

test('where a rule asks for the address of the client, its port is kept', () => {
  const service = entryOf('x.example.com', [{ ...port(80, 'HTTP'), targetPort: 8080 }], { resolution: 'ClientSideLB' });
  const rule = { trafficPolicy: { loadBalancer: { simple: 'PASSTHROUGH' } } };
  expect(clusterOf({ service, rule })).toMatchObject({ type: 'ORIGINAL_DST' });
  expect(clusterOf({ service, rule })).not.toHaveProperty('originalDstLbConfig');
  const none = { ...service, resolution: 'Passthrough' } as const;
  expect(clusterOf({ service: none, rule })).toHaveProperty('originalDstLbConfig');
});

test('a router has endpoints for headless services, and does not sniff', () => {
  const service = serviceOf('a', [port(80, 'Unsupported')], { resolution: 'Passthrough' });
  const traits = { proxyType: 'router' } as const;
  expect(clusterOf({ service, traits })).toMatchObject({ type: 'EDS' });
  expect(httpOptionsOf(clusterOf({ service, traits }))).toBeUndefined();
});

test('a cluster for any host binds the certificate to the host of the request as soon as it has options', () => {
  const service = entryOf('*.example.com', [port(80, 'HTTP'), port(81, 'GRPC'), port(9000, 'TCP')], {
    resolution: 'DynamicDNS',
  });
  const clusters = clustersOf({ service });
  expect([...clusters.keys()]).toEqual(['outbound|80||*.example.com', 'outbound|81||*.example.com']);
  expect(httpOptionsOf(clusters.get('outbound|80||*.example.com')!)).toBeUndefined();
  expect(httpOptionsOf(clusters.get('outbound|81||*.example.com')!)).toMatchObject({
    upstreamHttpProtocolOptions: { autoSni: true, autoSanValidation: true },
  });
});

describe('insecureSkipVerify of a cluster for any host', () => {
  const any = (protocol: 'HTTP' | 'GRPC' | 'TLS') =>
    entryOf('*.example.com', [port(80, protocol)], { resolution: 'DynamicDNS' });
  const skip = { mode: 'SIMPLE', insecureSkipVerify: true };
  const said = (protocol: 'HTTP' | 'GRPC' | 'TLS', trafficPolicy: object) => {
    const text = JSON.stringify(clusterOf({ service: any(protocol), rule: { trafficPolicy } }));
    return { binds: text.includes('"autoSanValidation":true'), mayNot: text.includes('allowInsecureClusterOptions') };
  };

  test.each([
    ['for the host', 'HTTP', { tls: skip }],
    ['for the port', 'HTTP', { portLevelSettings: [{ port: { number: 80 }, tls: skip }] }],
    [
      'with a certificate of its own',
      'HTTP',
      { tls: { ...skip, mode: 'MUTUAL', clientCertificate: '/a', privateKey: '/b' } },
    ],
    ['for HTTP/2', 'GRPC', { tls: skip }],
    ['for connections', 'TLS', { tls: skip }],
  ] as const)('%s', (_, protocol, policy) => {
    expect(said(protocol, policy)).toEqual({ binds: false, mayNot: true });
  });

  test('is needed: otherwise certificates are bound to the host of the request', () => {
    expect(said('HTTP', { tls: { mode: 'SIMPLE' } })).toEqual({ binds: true, mayNot: false });
    const other = { portLevelSettings: [{ port: { number: 81 }, tls: skip }], tls: { mode: 'SIMPLE' } };
    expect(said('HTTP', other)).toEqual({ binds: true, mayNot: false });
  });
});

test('statistics have the name that the mesh wants, with a semicolon', () => {
  const mesh =
    'outboundClusterStatName: "%SERVICE%_%SERVICE_PORT%_%SERVICE_PORT_NAME%_%SUBSET_NAME%_%SERVICE_FQDN%_%X%"';
  expect(clusterOf({ mesh, rule: { subsets: [{ name: 'v1' }] } }, 'v1')).toMatchObject({
    altStatName: 'a.shop_80_p_v1_a.shop.svc.cluster.local_%X%;',
  });
});

describe('what is spoken upstream', () => {
  const http1 = { explicitHttpConfig: { httpProtocolOptions: {} } };
  const http2 = { explicitHttpConfig: { http2ProtocolOptions: {} } };
  const downstream = { useDownstreamProtocolConfig: { httpProtocolOptions: {}, http2ProtocolOptions: {} } };
  const pool = (http: object) => ({ trafficPolicy: { connectionPool: { http } } });
  test.each([
    ['HTTP/1.1 is not mentioned', 'HTTP', undefined, '', undefined],
    ['HTTP/2 ports are', 'GRPC', undefined, '', http2],
    ['sniffed ports follow the client', 'Unsupported', undefined, '', downstream],
    ['the mesh upgrades HTTP ports', 'HTTP', undefined, 'h2UpgradePolicy: UPGRADE', http2],
    ['the mesh upgrades no TCP ports', 'TCP', undefined, 'h2UpgradePolicy: UPGRADE', undefined],
    [
      'a rule forbids the upgrade',
      'HTTP',
      pool({ h2UpgradePolicy: 'DO_NOT_UPGRADE' }),
      'h2UpgradePolicy: UPGRADE',
      undefined,
    ],
    ['a rule upgrades any port', 'TCP', pool({ h2UpgradePolicy: 'UPGRADE' }), '', http2],
    ['but not a sniffed one', 'Unsupported', pool({ h2UpgradePolicy: 'UPGRADE' }), '', downstream],
    ['useClientProtocol wins', 'GRPC', pool({ useClientProtocol: true }), '', downstream],
    [
      'limits make HTTP/1.1 explicit',
      'HTTP',
      pool({ maxRequestsPerConnection: 3 }),
      '',
      { ...http1, commonHttpProtocolOptions: { maxRequestsPerConnection: 3 } },
    ],
    [
      'streams and keepalive are for HTTP/2',
      'HTTP2',
      pool({ maxConcurrentStreams: 7, http2KeepAlive: { interval: '5s', timeout: '1s' } }),
      '',
      {
        commonHttpProtocolOptions: {},
        explicitHttpConfig: {
          http2ProtocolOptions: { maxConcurrentStreams: 7, connectionKeepalive: { interval: '5s', timeout: '1s' } },
        },
      },
    ],
    [
      'and for nothing else',
      'HTTP',
      pool({ maxConcurrentStreams: 7 }),
      '',
      { commonHttpProtocolOptions: {}, explicitHttpConfig: { httpProtocolOptions: {} } },
    ],
  ] as const)('%s', (_, protocol, rule, mesh, options) => {
    const given = { service: serviceOf('a', [port(80, protocol)]), mesh };
    expect(httpOptionsOf(clusterOf(rule === undefined ? given : { ...given, rule }))).toEqual(options);
  });

  test('headers keep their case where the proxy asks for it', () => {
    const options = httpOptionsOf(clusterOf({ traits: { preserveHeaderCase: true } }));
    expect(options).toMatchObject({
      explicitHttpConfig: {
        httpProtocolOptions: { headerKeyFormat: { statefulFormatter: { name: 'preserve_case' } } },
      },
    });
    const tcp = { service: serviceOf('a', [port(80, 'TCP')]), traits: { preserveHeaderCase: true } };
    expect(httpOptionsOf(clusterOf(tcp))).toBeUndefined();
  });
});

describe('the balancer', () => {
  const withBalancer = (loadBalancer: object) => clusterOf({ rule: { trafficPolicy: { loadBalancer } } });
  test.each([
    [{}, { lbPolicy: 'LEAST_REQUEST' }],
    [{ simple: 'UNSPECIFIED' }, { lbPolicy: 'LEAST_REQUEST' }],
    [{ simple: 'LEAST_CONN' }, { lbPolicy: 'LEAST_REQUEST' }],
    [{ simple: 'RANDOM' }, { lbPolicy: 'RANDOM' }],
    [
      { consistentHash: { useSourceIp: true } },
      { lbPolicy: 'RING_HASH', ringHashLbConfig: { minimumRingSize: '1024' } },
    ],
    [{ consistentHash: { useSourceIp: true, maglev: {} } }, { lbPolicy: 'MAGLEV' }],
    [
      { simple: 'LEAST_REQUEST', warmup: { duration: '30s' } },
      {
        leastRequestLbConfig: {
          slowStartConfig: {
            slowStartWindow: '30s',
            aggression: { defaultValue: 1, runtimeKey: '(' },
            minWeightPercent: { value: 10 },
          },
        },
      },
    ],
    [{ simple: 'PASSTHROUGH' }, { type: 'ORIGINAL_DST', lbPolicy: 'CLUSTER_PROVIDED' }],
  ])('%j', (balancer, expected) => {
    expect(withBalancer(balancer)).toMatchObject(expected);
  });

  test('PASSTHROUGH of the host counts for a subset with another one, which may then speak mutual TLS', () => {
    const rule = {
      trafficPolicy: { loadBalancer: { simple: 'PASSTHROUGH' } },
      subsets: [{ name: 'v1', trafficPolicy: { loadBalancer: { simple: 'RANDOM' } } }],
    };
    const given = { rule, summary: { plaintext: true } };
    expect(clusterOf(given)).toMatchObject({ type: 'ORIGINAL_DST' });
    expect(clusterOf(given)).not.toHaveProperty('transportSocket');
    const subset = clusterOf(given, 'v1');
    expect(subset).toMatchObject({ type: 'ORIGINAL_DST', transportSocket: { name: 'envoy.transport_sockets.tls' } });
    expect(subset).not.toHaveProperty('edsClusterConfig');
  });

  test.each([
    [
      'none without outlier detection',
      { loadBalancer: { localityLbSetting: { failover: [{ from: 'a', to: 'b' }] } } },
      false,
    ],
    [
      'with failover',
      { outlierDetection: {}, loadBalancer: { localityLbSetting: { failover: [{ from: 'a', to: 'b' }] } } },
      true,
    ],
    ['with labels', { outlierDetection: {}, loadBalancer: { localityLbSetting: { failoverPriority: ['v'] } } }, true],
    ['with shares', { loadBalancer: { localityLbSetting: { distribute: [{ from: 'a', to: { a: 100 } }] } } }, true],
    [
      'none where it is off',
      { loadBalancer: { localityLbSetting: { enabled: false, distribute: [{ from: 'a', to: { a: 100 } }] } } },
      false,
    ],
    ['none by the mesh alone', { outlierDetection: {} }, false],
  ])('weighs localities: %s', (_, trafficPolicy, weighs) => {
    const { commonLbConfig } = clusterOf({ rule: { trafficPolicy } });
    expect(Object.hasOwn(commonLbConfig as object, 'localityWeightedLbConfig')).toBe(weighs);
  });
});

test('the panic mode is off, unless a rule asks for it and the Service does not prefer near endpoints', () => {
  const rule = { trafficPolicy: { outlierDetection: { minHealthPercent: 20 } } };
  expect(clusterOf({}).commonLbConfig).toEqual({ healthyPanicThreshold: {} });
  expect(clusterOf({ rule }).commonLbConfig).toEqual({ healthyPanicThreshold: { value: 20 } });
  const service = serviceOf('a', [port(80, 'HTTP')], { trafficDistribution: 'same-zone' });
  expect(clusterOf({ rule, service }).commonLbConfig).toMatchObject({ healthyPanicThreshold: {} });
});

test('error codes replace 5xx for outlier detection', () => {
  const given = (codes: number[]) => ({
    rule: { trafficPolicy: { outlierDetection: { outlierDetectionHttpErrorCodes: codes } } },
  });
  const match = (code: string) => ({
    httpResponseHeadersMatch: { headers: [{ name: ':status', stringMatch: { exact: code } }] },
  });
  expect(httpOptionsOf(clusterOf(given([500])))).toMatchObject({ outlierDetection: { errorMatcher: match('500') } });
  expect(httpOptionsOf(clusterOf(given([500, 503])))).toMatchObject({
    outlierDetection: { errorMatcher: { orMatch: { rules: [match('500'), match('503')] } } },
  });
});
