import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { DestinationRule } from '../../api/gen/destination-rule.gen.ts';
import { reconcileDestinationRule } from './destination-rule.ts';
import { runs } from '../../testing/runs.ts';

function reconcile(spec: unknown, metadata: object = {}) {
  return reconcileDestinationRule(
    {
      apiVersion: 'networking.istio.io/v1',
      kind: 'DestinationRule',
      metadata: { name: 'd', namespace: 'shop', ...metadata },
      spec,
    } as DestinationRule,
    { source: 'test', domainSuffix: 'cluster.local', defaultExportTo: ['*'] },
  );
}

const rule = (spec: object) => reconcile({ host: 'a', ...spec }).rules[0]!;
const fields = (spec: object) => reconcile({ host: 'a', ...spec }).problems.map((problem) => problem.field);

test('a rule has the resolved host, its visibility and where it came from', () => {
  expect(reconcile({ host: 'a' }, { creationTimestamp: '2026-01-01T00:00:00Z', uid: 'u', generation: 3 })).toEqual({
    rules: [
      {
        id: 'shop/a.shop.svc.cluster.local@*',
        host: 'a.shop.svc.cluster.local',
        namespace: 'shop',
        name: 'd',
        createdAt: '2026-01-01T00:00:00Z',
        exportTo: ['*'],
        policy: {},
        portPolicies: {},
        subsets: [],
        origins: [
          {
            source: 'test',
            group: 'networking.istio.io',
            kind: 'DestinationRule',
            namespace: 'shop',
            name: 'd',
            uid: 'u',
            generation: 3,
          },
        ],
      },
    ],
    problems: [],
  });
});

test.each([
  ['a', 'a.shop.svc.cluster.local'],
  ['a.other', 'a.other'],
  ['*.example.com', '*.example.com'],
  ['*', '*'],
])('host %s is %s', (host, resolved) => {
  expect(rule({ host }).host).toBe(resolved);
});

test.each([[undefined], [''], ['a b'], ['a..b'], [7]])('without a host (%j) there is no rule', (host) => {
  const { rules, problems } = reconcile({ host });
  expect(rules).toEqual([]);
  expect(problems).toMatchObject([{ field: 'spec.host', reason: 'Invalid' }, ...problems.slice(1)]);
});

test.each([
  [['.'], ['shop']],
  [
    ['other', '.'],
    ['other', 'shop'],
  ],
  [['*'], ['*']],
  [[], ['*']],
])('exportTo %j is %j', (exportTo, settled) => {
  expect(rule({ exportTo }).exportTo).toEqual(settled);
});

test('an exportTo that cannot be read hides the rule from others instead of showing it to all', () => {
  expect(rule({ exportTo: ['~'] }).exportTo).toEqual(['shop']);
  expect(fields({ exportTo: ['~'] })).toEqual(['spec.exportTo[0]']);
  expect(fields({ exportTo: ['*', 'other'] })).toEqual(['spec.exportTo']);
  expect(fields({ exportTo: ['.', 'shop'] })).toEqual(['spec.exportTo']);
});

test('a rule for some workloads is for its own namespace', () => {
  const selective = { workloadSelector: { matchLabels: { app: 'client' } }, exportTo: ['other'] };
  expect(rule(selective)).toMatchObject({
    id: 'shop/a.shop.svc.cluster.local@shop{app=client}',
    exportTo: ['shop'],
    workloadSelector: { app: 'client' },
  });
  expect(fields(selective)).toEqual(['spec.exportTo']);
});

test('every field of a policy is read', () => {
  const trafficPolicy = {
    loadBalancer: {
      consistentHash: {
        httpCookie: { name: 'c', path: '/', ttl: '0s', attributes: [{ name: 'SameSite', value: 'Lax' }] },
        ringHash: { minimumRingSize: 2048 },
      },
      localityLbSetting: { distribute: [{ from: 'r/*', to: { 'r/z': 30, 'q/*': 70 } }] },
    },
    connectionPool: {
      tcp: {
        maxConnections: 1,
        connectTimeout: '2s',
        idleTimeout: '0s',
        maxConnectionDuration: '3s',
        tcpKeepalive: { probes: 4, time: '5s', interval: '6s' },
      },
      http: {
        http1MaxPendingRequests: 7,
        http2MaxRequests: 8,
        maxRequestsPerConnection: 9,
        maxRetries: 10,
        idleTimeout: '11s',
        h2UpgradePolicy: 'UPGRADE',
        maxConcurrentStreams: 12,
        http2KeepAlive: { interval: '13s', timeout: '14s' },
      },
    },
    outlierDetection: {
      consecutive5xxErrors: 1,
      consecutiveGatewayErrors: 0,
      splitExternalLocalOriginErrors: true,
      consecutiveLocalOriginFailures: 2,
      interval: '3s',
      baseEjectionTime: '4s',
      maxEjectionPercent: 5,
      minHealthPercent: 6,
      outlierDetectionHttpErrorCodes: [500],
    },
    tls: { mode: 'SIMPLE', sni: 'x', subjectAltNames: ['y'], caCertificates: '/ca' },
    retryBudget: { percent: 20.5, minRetryConcurrency: 3, budgetInterval: '0s' },
    proxyProtocol: { version: 'V2' },
    portLevelSettings: [{ port: { number: 80 }, loadBalancer: { simple: 'RANDOM' } }],
  };
  expect(fields({ trafficPolicy })).toEqual([]);
  expect(rule({ trafficPolicy })).toMatchObject({
    policy: {
      loadBalancer: {
        consistentHash: {
          key: { kind: 'cookie', name: 'c', path: '/', ttl: 0, attributes: [{ name: 'SameSite', value: 'Lax' }] },
          ring: { kind: 'ringHash', minimumRingSize: 2048 },
        },
        localityLb: {
          enabled: true,
          distribute: [{ from: 'r/*', to: { 'r/z': 30, 'q/*': 70 } }],
          failover: [],
          failoverPriority: [],
        },
      },
      connectionPool: {
        tcp: {
          maxConnections: 1,
          connectTimeout: 2000,
          idleTimeout: 0,
          maxConnectionDuration: 3000,
          tcpKeepalive: { probes: 4, time: 5000, interval: 6000 },
        },
        http: {
          http1MaxPendingRequests: 7,
          http2MaxRequests: 8,
          maxRequestsPerConnection: 9,
          maxRetries: 10,
          idleTimeout: 11_000,
          h2UpgradePolicy: 'UPGRADE',
          maxConcurrentStreams: 12,
          http2KeepAlive: { interval: 13_000, timeout: 14_000 },
          useClientProtocol: false,
        },
      },
      outlierDetection: {
        consecutive5xx: 1,
        consecutiveGatewayErrors: 0,
        splitExternalLocalOriginErrors: true,
        consecutiveLocalOriginFailures: 2,
        interval: 3000,
        baseEjectionTime: 4000,
        maxEjectionPercent: 5,
        minHealthPercent: 6,
        httpErrorCodes: [500],
      },
      tls: { mode: 'SIMPLE', sni: 'x', subjectAltNames: ['y'], caCertificates: '/ca' },
      retryBudget: { percent: 20.5, minRetryConcurrency: 3, budgetInterval: 0 },
      proxyProtocol: 'V2',
    },
    portPolicies: { 80: { loadBalancer: { simple: 'RANDOM' } } },
  });
});

describe('what Envoy would refuse, or be stuck with, is left out of the cluster', () => {
  const balancer = (consistentHash: object) => {
    const spec = { trafficPolicy: { loadBalancer: { consistentHash: { useSourceIp: true, ...consistentHash } } } };
    return { problems: fields(spec), hash: rule(spec).policy.loadBalancer?.consistentHash };
  };
  const at = 'spec.trafficPolicy.loadBalancer.consistentHash';
  const key = { kind: 'sourceIp' };
  test.each<[object, string[], object]>([
    [{ maglev: { tableSize: 1000 } }, [`${at}.maglev.tableSize`], { key, ring: { kind: 'maglev' } }],
    [{ maglev: { tableSize: 0 } }, [`${at}.maglev.tableSize`], { key, ring: { kind: 'maglev' } }],
    [{ maglev: { tableSize: 5_000_011 } }, [`${at}.maglev.tableSize`], { key, ring: { kind: 'maglev' } }],
    [{ maglev: { tableSize: 65_537 } }, [], { key, ring: { kind: 'maglev', tableSize: 65_537 } }],
    [
      { ringHash: { minimumRingSize: 8_388_608 } },
      [`${at}.ringHash.minimumRingSize`],
      { key, ring: { kind: 'ringHash' } },
    ],
    [{ minimumRingSize: 77 }, [], { key, minimumRingSize: 77 }],
    [{ minimumRingSize: 77, ringHash: {} }, [`${at}.minimumRingSize`], { key, ring: { kind: 'ringHash' } }],
    [{ maglev: {}, ringHash: {} }, [`${at}.maglev`], { key, ring: { kind: 'ringHash' } }],
  ])('%j', (hash, problems, read) => {
    expect(balancer(hash)).toEqual({ problems, hash: read });
  });

  test('an HTTP/2 keepalive without a timeout', () => {
    const spec = { trafficPolicy: { connectionPool: { http: { http2KeepAlive: { interval: '1s' } } } } };
    expect(fields(spec)).toEqual(['spec.trafficPolicy.connectionPool.http.http2KeepAlive']);
    expect(rule(spec).policy.connectionPool?.http).toEqual({ useClientProtocol: false });
  });
});

const policy = (block: object) => ({ trafficPolicy: block });

test('numbers may be as large, and percents as fine, as the API has them', () => {
  const most = 2 ** 32 - 1;
  const trafficPolicy = {
    loadBalancer: { warmup: { duration: '1s', minimumPercent: 12.5 } },
    connectionPool: { tcp: { tcpKeepalive: { probes: most } } },
    outlierDetection: {
      consecutive5xxErrors: most,
      consecutiveGatewayErrors: most,
      splitExternalLocalOriginErrors: true,
      consecutiveLocalOriginFailures: most,
    },
    retryBudget: { percent: 12.5, minRetryConcurrency: most },
  };
  expect(fields({ trafficPolicy })).toEqual([]);
  expect(rule({ trafficPolicy }).policy.loadBalancer?.warmup).toEqual({ duration: 1000, minimumPercent: 12.5 });
});

test.each<[string, object, string[]]>([
  ['an empty policy', policy({}), ['spec.trafficPolicy']],
  [
    'a port without a number',
    policy({ portLevelSettings: [{ tls: {} }] }),
    ['spec.trafficPolicy.portLevelSettings[0].port.number'],
  ],
  [
    'two settings for a port',
    policy({ portLevelSettings: [1, 2].map(() => ({ port: { number: 80 }, tls: {} })) }),
    ['spec.trafficPolicy.portLevelSettings[1].port.number'],
  ],
  [
    'a port without settings',
    policy({ portLevelSettings: [{ port: { number: 80 } }] }),
    ['spec.trafficPolicy.portLevelSettings[0]'],
  ],
  [
    'a simple balancer beside hashing',
    policy({ loadBalancer: { simple: 'RANDOM', consistentHash: { useSourceIp: true } } }),
    ['spec.trafficPolicy.loadBalancer.simple'],
  ],
  [
    'two hash keys',
    policy({ loadBalancer: { consistentHash: { useSourceIp: true, httpHeaderName: 'x' } } }),
    ['spec.trafficPolicy.loadBalancer.consistentHash'],
  ],
  [
    'a cookie without a name',
    policy({ loadBalancer: { consistentHash: { httpCookie: { ttl: '1s' } } } }),
    ['spec.trafficPolicy.loadBalancer.consistentHash.httpCookie.name'],
  ],
  [
    'cookies that Envoy refuses',
    policy({
      loadBalancer: {
        consistentHash: {
          httpCookie: {
            name: 'c',
            path: '/\n',
            attributes: [{ name: 'a\r' }, { name: 'x'.repeat(20_000) }, { name: 'b', value: '\0' }],
          },
        },
      },
    }),
    ['path', 'attributes[0].name', 'attributes[1].name', 'attributes[2].value'].map(
      (field) => `spec.trafficPolicy.loadBalancer.consistentHash.httpCookie.${field}`,
    ),
  ],
  [
    'a warmup without a duration',
    policy({ loadBalancer: { warmup: { minimumPercent: 10 } } }),
    ['spec.trafficPolicy.loadBalancer.warmup.duration'],
  ],
  [
    'shares that are not 100',
    policy({ loadBalancer: { localityLbSetting: { distribute: [{ from: 'a', to: { a: 50 } }] } } }),
    ['spec.trafficPolicy.loadBalancer.localityLbSetting.distribute[0].to'],
  ],
  [
    'shares for one place twice',
    policy({
      loadBalancer: {
        localityLbSetting: { distribute: ['a/*', 'a/b'].map((from) => ({ from, to: { a: 100 } })) },
      },
    }),
    ['spec.trafficPolicy.loadBalancer.localityLbSetting.distribute'],
  ],
  [
    'failover to itself, and within regions',
    policy({
      loadBalancer: {
        localityLbSetting: {
          failover: [
            { from: 'a', to: 'a' },
            { from: 'a/b', to: 'c' },
          ],
        },
      },
    }),
    [0, 1].map((index) => `spec.trafficPolicy.loadBalancer.localityLbSetting.failover[${index}]`),
  ],
  ['a pool without either part', policy({ connectionPool: {} }), ['spec.trafficPolicy.connectionPool']],
  [
    'durations below a millisecond',
    policy({ connectionPool: { tcp: { connectTimeout: '100us' } } }),
    ['spec.trafficPolicy.connectionPool.tcp.connectTimeout'],
  ],
  [
    'an upgrade against the client’s protocol',
    policy({ connectionPool: { http: { useClientProtocol: true, h2UpgradePolicy: 'UPGRADE' } } }),
    ['spec.trafficPolicy.connectionPool.http.h2UpgradePolicy'],
  ],
  [
    'local errors that are not split',
    policy({ outlierDetection: { consecutiveLocalOriginFailures: 3 } }),
    ['spec.trafficPolicy.outlierDetection.consecutiveLocalOriginFailures'],
  ],
  [
    'MUTUAL without files',
    policy({ tls: { mode: 'MUTUAL' } }),
    ['spec.trafficPolicy.tls.clientCertificate', 'spec.trafficPolicy.tls.privateKey'],
  ],
  [
    'no verification beside names to verify',
    policy({ tls: { mode: 'SIMPLE', insecureSkipVerify: true, subjectAltNames: ['x'] } }),
    ['spec.trafficPolicy.tls.insecureSkipVerify'],
  ],
  [
    'no verification beside roots in a Secret',
    policy({ tls: { mode: 'SIMPLE', insecureSkipVerify: true, caCertCredentialName: 'x' } }),
    ['spec.trafficPolicy.tls.insecureSkipVerify'],
  ],
  [
    'roots in a file and in a Secret',
    policy({ tls: { mode: 'SIMPLE', caCertificates: '/x', caCertCredentialName: 'x' } }),
    ['spec.trafficPolicy.tls.caCertCredentialName'],
  ],
  [
    'roots in a ConfigMap of another namespace',
    policy({ tls: { mode: 'SIMPLE', caCertCredentialName: 'configmap://other/x' } }),
    ['spec.trafficPolicy.tls.caCertCredentialName'],
  ],
  [
    'a Secret for the certificates of the mesh',
    policy({ tls: { mode: 'ISTIO_MUTUAL', caCertCredentialName: 'x' } }),
    ['spec.trafficPolicy.tls.mode'],
  ],
  [
    'ejection of endpoints that do not fail',
    policy({ outlierDetection: { failurePercentageThreshold: 0 } }),
    ['spec.trafficPolicy.outlierDetection.failurePercentageThreshold'],
  ],
  [
    'balancing by load beside another policy',
    policy({ loadBalancer: { simple: 'RANDOM', backendUtilization: {} } }),
    ['spec.trafficPolicy.loadBalancer.backendUtilization'],
  ],
  [
    'more metrics than are looked for',
    policy({
      loadBalancer: { backendUtilization: { metricNamesForComputingUtilization: Array(101).fill('cpu_utilization') } },
    }),
    ['spec.trafficPolicy.loadBalancer.backendUtilization.metricNamesForComputingUtilization'],
  ],
  [
    'a tunnel beside the PROXY protocol',
    policy({ tunnel: { targetHost: 'x.example.com', targetPort: 443 }, proxyProtocol: {} }),
    ['spec.trafficPolicy.tunnel'],
  ],
  [
    'a tunnel to nowhere',
    policy({ tunnel: { targetHost: 'a b', targetPort: 443 } }),
    ['spec.trafficPolicy.tunnel.targetHost'],
  ],
  ['a subset without a name', { subsets: [{ labels: {} }] }, ['spec.subsets[0].name']],
  ['a subset twice', { subsets: [{ name: 'a' }, { name: 'a' }] }, ['spec.subsets[1].name']],
])('%s is a problem of that field', (_, spec, expected) => {
  const { rules, problems } = reconcile({ host: 'a', ...spec });
  expect(problems.map((problem) => problem.field)).toEqual(expected);
  expect(new Set(problems.map((problem) => problem.reason))).toEqual(new Set(['Invalid']));
  expect(rules).toHaveLength(1);
});

test('a broken TLS setting does not turn TLS off', () => {
  expect(rule(policy({ tls: { mode: 'MUTUAL', sni: 'x'.repeat(300) } })).policy.tls).toMatchObject({ mode: 'MUTUAL' });
});

test.each<[name: string, tls: object]>([
  ['clientCertificate', { mode: 'MUTUAL', clientCertificate: '/proc/self/pagemap', privateKey: '/k' }],
  ['privateKey', { mode: 'MUTUAL', clientCertificate: '/c', privateKey: 'k.pem' }],
  ['caCertificates', { mode: 'SIMPLE', caCertificates: '/etc/../dev/zero' }],
  ['caCrl', { mode: 'SIMPLE', caCrl: '//sys/kernel/notes' }],
])('%s that cannot be read as a path lets no connection succeed', (name, tls) => {
  expect(fields(policy({ tls }))).toEqual([`spec.trafficPolicy.tls.${name}`]);
  expect(rule(policy({ tls })).policy.tls).toMatchObject({ [name]: '', isWithheld: true });
});

test('a file has one spelling, and the roots of the operating system are not a file', () => {
  const files = { clientCertificate: '//c', privateKey: '/x/../k', caCertificates: '/a/./ca', caCrl: '/crl' };
  expect(rule(policy({ tls: { mode: 'MUTUAL', ...files } })).policy.tls).toMatchObject({
    clientCertificate: '/c',
    privateKey: '/k',
    caCertificates: '/a/ca',
    caCrl: '/crl',
    filesField: 'spec.trafficPolicy.tls',
  });
  const system = rule(policy({ tls: { mode: 'SIMPLE', caCertificates: 'system' } })).policy.tls;
  expect(system).toMatchObject({ caCertificates: '' });
  expect(system).not.toHaveProperty('filesField');
});

test('a broken subset leaves the others', () => {
  const subsets = [
    { name: 'v1', labels: { version: 'v1' } },
    { name: 'a b' },
    { name: 'v2', trafficPolicy: { tls: {} } },
  ];
  expect(rule({ subsets }).subsets).toMatchObject([
    { name: 'v1', labels: { version: 'v1' } },
    { name: 'v2', policy: { tls: { mode: 'DISABLE' } } },
  ]);
});

test('what has no effect is said for each place', () => {
  const outlierDetection = { consecutiveErrors: 5 };
  const spec = {
    host: 'a',
    trafficPolicy: { outlierDetection, portLevelSettings: [{ port: { number: 80 }, outlierDetection }] },
    subsets: [{ name: 'a' }, { name: 'b', trafficPolicy: { outlierDetection } }],
  };
  expect(reconcile(spec).problems).toMatchObject(
    [
      'spec.trafficPolicy.outlierDetection.consecutiveErrors',
      'spec.trafficPolicy.portLevelSettings[0].outlierDetection.consecutiveErrors',
      'spec.subsets[1].trafficPolicy.outlierDetection.consecutiveErrors',
    ].map((field) => ({ field, reason: 'UnsupportedField' })),
  );
});

test.each<[object, string | undefined]>([
  [{ mode: 'SIMPLE' }, undefined],
  [{ mode: 'MUTUAL', clientCertificate: '/c', privateKey: '/k' }, undefined],
  [{ mode: 'SIMPLE', credentialName: 'a' }, 'Invalid'],
  [{ mode: 'ISTIO_MUTUAL' }, 'Ineffective'],
  [{ mode: 'DISABLE' }, 'Ineffective'],
  [{ mode: 'SIMPLE', insecureSkipVerify: true }, 'Ineffective'],
])('a list of revoked certificates is for servers that are verified with files: %j', (tls, reason) => {
  const { problems } = reconcile({ host: 'a', trafficPolicy: { tls: { ...tls, caCrl: '/crl' } } });
  const own = problems.filter(({ field }) => field === 'spec.trafficPolicy.tls.caCrl');
  expect(own.map((problem) => problem.reason)).toEqual(reason === undefined ? [] : [reason]);
});

test.each<[object, readonly string[]]>([
  [{ mode: 'ISTIO_MUTUAL', caCrl: '/proc/x' }, ['caCrl Ineffective']],
  [{ mode: 'DISABLE', caCrl: 'x' }, ['caCrl Ineffective']],
  [{ mode: 'ISTIO_MUTUAL', caCrl: '/crl', credentialName: 'a' }, ['mode Invalid', 'caCrl Ineffective']],
])('where no list of revoked certificates is read, it is not judged either, as in Istio: %j', (tls, found) => {
  const { problems } = reconcile({ host: 'a', trafficPolicy: { tls } });
  expect(problems.map(({ field, reason }) => `${field?.split('.').at(-1)} ${reason}`)).toEqual(found);
  expect(rule(policy({ tls })).policy.tls).toMatchObject({ caCrl: '' });
  expect(rule(policy({ tls })).policy.tls).not.toHaveProperty('isWithheld');
});

test('no object makes it throw', () => {
  const known = fc.constantFrom(
    'host', 'trafficPolicy', 'subsets', 'exportTo', 'workloadSelector', 'matchLabels', 'loadBalancer', 'consistentHash',
    'localityLbSetting', 'distribute', 'failover', 'connectionPool', 'tcp', 'http', 'outlierDetection', 'tls', 'mode',
    'portLevelSettings', 'port', 'number', 'name', 'labels', 'tunnel', 'proxyProtocol', 'retryBudget', 'warmup',
    'maglev', 'tableSize', 'ringHash', '__proto__', 'subjectAltNames', 'http2KeepAlive', 'from', 'to', 'simple',
  ); // prettier-ignore
  const { json } = fc.letrec((tie) => ({
    json: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.constantFrom(null, true, 0, -1, 1.5, 80, '', 'a', '*', '1s', 'MUTUAL', '\ud800'),
      fc.array(tie('json'), { maxLength: 3 }),
      fc.dictionary(known, tie('json'), { maxKeys: 6 }),
    ),
  }));
  fc.assert(
    fc.property(json, (spec) => {
      for (const problem of reconcile(spec).problems) expect(problem.field).toMatch(/^spec/);
    }),
    { numRuns: runs(500) },
  );
});

test.each([
  ['*', 'a'],
  ['a/*', '*'],
  ['a/b', 'a/*'],
  ['a', 'a/*'],
  ['a/b/c', 'a/*'],
  ['a/b/*', 'a/b/c'],
  ['a', 'a'],
])('shares from %s and %s overlap, and those of many other places are not compared with each', (one, other) => {
  const many = Array.from({ length: 20_000 }, (_, i) => `r${i}/z/*`);
  const distribute = (...places: string[]) =>
    policy({ loadBalancer: { localityLbSetting: { distribute: places.map((from) => ({ from, to: { a: 100 } })) } } });
  expect(fields(distribute(one, other))).toHaveLength(1);
  expect(fields(distribute(...many.slice(0, 10), 'r0/z', 'a/b', 'a/c'))).toHaveLength(1);
  expect(fields(distribute(...many, 'a/b', 'a/c', 'a', 'b'))).toEqual([]);
});
