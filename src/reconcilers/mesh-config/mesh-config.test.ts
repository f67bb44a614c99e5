import { expect, test } from 'vitest';
import { isValidMeshConfig, reconcileMeshConfig } from './mesh-config.ts';

const { config: defaults } = reconcileMeshConfig(undefined);

test('without a ConfigMap the defaults of Istio are in force', () => {
  expect(reconcileMeshConfig(undefined).problems).toEqual([]);
  expect(defaults.visibility).toMatchObject({
    rootNamespace: 'istio-system',
    trustDomain: 'cluster.local',
    defaultServiceExportTo: ['*'],
  });
  expect(defaults.clusters).toMatchObject({
    connectTimeout: 10_000,
    dnsRefreshRate: 60_000,
    enableAutoMtls: true,
    inboundTrafficPolicy: 'PASSTHROUGH',
    localityLb: { distribute: [], failover: [], failoverPriority: [] },
  });
  expect(defaults.routes).toEqual({});
  expect(defaults.listeners).toMatchObject({
    proxyListenPort: 15001,
    proxyInboundListenPort: 15006,
    proxyHttpPort: 0,
    protocolDetectionTimeout: 0,
    outboundTrafficPolicy: 'ALLOW_ANY',
    pathNormalization: 'BASE',
    accessLogFile: '',
    tracingSampling: 1,
    minTlsVersion: 'TLSV1_2',
  });
});

test.each([
  ['', []],
  ['{}', []],
  ['null', []],
  ['# only a comment', []],
])('the text %j is the defaults', (yaml, problems) => {
  expect(reconcileMeshConfig(yaml)).toEqual({ config: defaults, problems });
});

test('every section takes its fields', () => {
  const { config, problems } = reconcileMeshConfig(`
    rootNamespace: mesh-root
    trustDomain: td
    trustDomainAliases: [old]
    defaultServiceExportTo: ["."]
    connectTimeout: 3s
    enableAutoMtls: false
    h2UpgradePolicy: UPGRADE
    tcpKeepalive: {probes: 2, time: 10s}
    tlsDefaults: {minProtocolVersion: TLSV1_3, cipherSuites: [AES128-SHA], ecdhCurves: [P-256]}
    meshMTLS: {minProtocolVersion: TLSV1_3}
    defaultTrafficPolicy: {connectionPool: {tcp: {maxConnections: 9}}}
    localityLbSetting: {failover: [{from: a, to: b}], distribute: [{from: a/*, to: {"a/*": 80, "b/*": 20}}]}
    defaultHttpRetryPolicy: {attempts: 5, retryOn: "5xx", perTryTimeout: 2s}
    proxyListenPort: 16001
    proxyHttpPort: 15002
    outboundTrafficPolicy: {mode: REGISTRY_ONLY}
    inboundTrafficPolicy: {mode: LOCALHOST}
    pathNormalization: {normalization: MERGE_SLASHES}
    accessLogFile: /dev/stdout
    enableTracing: false
    defaultConfig: {gatewayTopology: {numTrustedProxies: 2}, terminationDrainDuration: 5s}
  `);
  expect(problems).toEqual([]);
  expect(config.visibility).toMatchObject({
    rootNamespace: 'mesh-root',
    trustDomain: 'td',
    defaultServiceExportTo: ['.'],
  });
  expect(config.clusters).toMatchObject({
    connectTimeout: 3000,
    enableAutoMtls: false,
    h2Upgrade: true,
    inboundTrafficPolicy: 'LOCALHOST',
    tcpKeepalive: { probes: 2, time: 10_000 },
    tlsDefaults: { minProtocolVersion: 'TLSV1_3', cipherSuites: ['AES128-SHA'], ecdhCurves: ['P-256'] },
    defaultTrafficPolicy: { connectionPool: { tcp: { maxConnections: 9 } } },
    localityLb: { failover: [{ from: 'a', to: 'b' }], distribute: [{ from: 'a/*', to: { 'a/*': 80, 'b/*': 20 } }] },
  });
  expect(config.routes.defaultHttpRetryPolicy).toEqual({
    attempts: 5,
    retryOn: '5xx',
    perTryTimeout: 2000,
    retryRemoteLocalities: false,
  });
  expect(config.listeners).toMatchObject({
    proxyListenPort: 16001,
    proxyHttpPort: 15002,
    outboundTrafficPolicy: 'REGISTRY_ONLY',
    inboundTrafficPolicy: 'LOCALHOST',
    pathNormalization: 'MERGE_SLASHES',
    accessLogFile: '/dev/stdout',
    minTlsVersion: 'TLSV1_3',
    trustDomainAliases: ['old'],
    gatewayTopology: { numTrustedProxies: 2, forwardClientCertDetails: 'SANITIZE_SET', proxyProtocol: false },
  });
  expect(config.listeners).not.toHaveProperty('tracingSampling');
});

test.each([
  '%START_TIME%',
  '%START_TIME(%Y/%m/%dT%H:%M:%S)%',
  '%REQ(X?Y):10% 100%% %ENVIRONMENT(POD_NAME)% %REQ_WITHOUT_QUERY(:PATH?X):10%',
  'plain',
])('the log format %j is one that Envoy takes', (format) => {
  const { config, problems } = reconcileMeshConfig(`accessLogFormat: ${JSON.stringify(format)}`);
  expect(problems).toEqual([]);
  expect(config.listeners.accessLogFormat).toBe(format);
});

test('locality load balancing can be switched off', () => {
  expect(reconcileMeshConfig('localityLbSetting: {enabled: false}').config.clusters).not.toHaveProperty('localityLb');
});

test('the most specific clusterLocal setting comes first; the control plane is that of the own cluster', () => {
  const { config } = reconcileMeshConfig(`
    defaultConfig: {discoveryAddress: "fairlead.istio-system.svc:15012"}
    serviceSettings: [{settings: {clusterLocal: false}, hosts: ["*.kube-system.svc.cluster.local", a.b.svc.cluster.local]}]
  `);
  expect(config.visibility.clusterLocalHosts).toEqual([
    { host: 'fairlead.istio-system.svc.cluster.local', clusterLocal: true },
    { host: 'kubernetes.default.svc.cluster.local', clusterLocal: true },
    { host: 'a.b.svc.cluster.local', clusterLocal: false },
    { host: '*.kube-system.svc.cluster.local', clusterLocal: false },
  ]);
});

test.each([
  ['connectTimeout: soon', 'connectTimeout'],
  ['proxyListenPort: 99999', 'proxyListenPort'],
  ['outboundTrafficPolicy: {mode: SOMETIMES}', 'outboundTrafficPolicy.mode'],
  ['trustDomainAliases: a', 'trustDomainAliases'],
  ['accessLogEncoding: JSON\naccessLogFormat: "{"', 'accessLogFormat'],
  ['accessLogFormat: "100% %START_TIME%"', 'accessLogFormat'],
  ['accessLogFormat: "%REQ(:)%"', 'accessLogFormat'],
  ['accessLogFormat: "%REQ_WITHOUT_QUERY(:)%"', 'accessLogFormat'],
  ['accessLogFormat: "%CEL(1 +)%"', 'accessLogFormat'],
  ['accessLogFormat: "%FOO%"', 'accessLogFormat'],
  ['accessLogEncoding: JSON\naccessLogFormat: \'{"a": {"b": "%START_TIME"}}\'', 'accessLogFormat'],
  ['meshMTLS: {cipherSuites: [AES128-SHA, NONSENSE]}', 'meshMTLS.cipherSuites[1]'],
  ['tlsDefaults: {ecdhCurves: [P-1]}', 'tlsDefaults.ecdhCurves[0]'],
  ['- a list', ''],
  ['a: [', ''],
  ['a: 1\na: 2', ''],
  [
    ['a: &a [x,x,x,x,x,x,x,x,x]', ...[...'bcdefg'].map((n, i) => `${n}: &${n} [${`*${'abcdef'[i]},`.repeat(9)}]`)].join(
      '\n',
    ),
    '',
  ],
  ['x'.repeat(1024 * 1024 + 1), ''],
])('what is wrong in %.40j is said, and the field has its default', (yaml, field) => {
  const { config, problems } = reconcileMeshConfig(yaml);
  expect(problems[0]).toMatchObject({ field });
  expect(config.listeners.outboundTrafficPolicy).toBe('ALLOW_ANY');
  expect(config.clusters.connectTimeout).toBe(10_000);
});

test('the text is read as files of objects are', () => {
  const { config, problems } = reconcileMeshConfig('enableAutoMtls: no\nproxyListenPort: 0o17');
  expect(problems).toEqual([]);
  expect(config.clusters.enableAutoMtls).toBe(false);
  expect(config.listeners.proxyListenPort).toBe(15);
  expect(reconcileMeshConfig('a: 1\nb: [').problems[0]?.message).toBe(
    'Line 2 of the text: is not valid YAML: [ is never closed.',
  );
});

test.each(['tlsDefaults: {cipherSuites: [NEWER]}', 'tlsDefaults: {ecdhCurves: [NEWER]}', 'accessLogFormat: "%NEWER%"'])(
  'what only a newer Envoy may know makes no mesh config invalid: %s',
  (yaml) => {
    expect(isValidMeshConfig(yaml)).toBe(true);
    expect(reconcileMeshConfig(yaml).problems).toMatchObject([{ reason: 'Ineffective' }]);
  },
);

test('a field that nothing acts on is said once; fields for the agent and the injector are not ours', () => {
  const { problems } = reconcileMeshConfig(`
    ingressService: x
    extensionProviders: []
    defaultConfig: {discoveryAddress: x, gatewayTopology: {forwardClientCertDetails: SANITIZE}}
    meshMTLS: {ecdhCurves: [P-256]}
    enableEnvoyAccessLogService: true
  `);
  expect(problems.map(({ field }) => field).sort()).toEqual(['enableEnvoyAccessLogService', 'meshMTLS.ecdhCurves']);
});

test('a variable that chooses the code of proxies is said', () => {
  const of = (proxyMetadata: string) =>
    reconcileMeshConfig(`defaultConfig: {proxyMetadata: ${proxyMetadata}}`).problems;
  expect(of('{NODE_OPTIONS: x, LD_AUDIT: x, CA_ADDR: x, A: x}')).toMatchObject([
    { field: 'defaultConfig.proxyMetadata.NODE_OPTIONS', reason: 'Ineffective' },
    { field: 'defaultConfig.proxyMetadata.LD_AUDIT', reason: 'Ineffective' },
  ]);
  expect(of('[NODE_OPTIONS]')).toEqual([]);
});
