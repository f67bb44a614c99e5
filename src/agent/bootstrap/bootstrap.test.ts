import { expect, test } from 'vitest';
import { type AgentSurroundings, readSettings } from '../settings/settings.ts';
import { bootstrapOf } from './bootstrap.ts';

const files: Readonly<Record<string, string>> = {
  '/etc/istio/pod/labels': 'app="reviews"\npod-template-hash="abc"\nversion="v1"\n',
  '/etc/istio/pod/annotations':
    'proxy.istio.io/config="concurrency: 3\\nproxyStatsMatcher:\\n  inclusionPrefixes: [cluster.outbound]\\n"\nsidecar.istio.io/statsInclusionSuffixes="upstream_rq_time,x"\n',
};

function settings(
  env: AgentSurroundings['env'],
  type: 'sidecar' | 'router' = 'sidecar',
  isSocket: AgentSurroundings['isSocket'] = () => false,
) {
  return readSettings(
    { type, domain: 'shop.svc.cluster.local', root: '/', meshConfigFile: 'etc/istio/config/mesh' },
    {
      env: {
        POD_NAME: 'reviews-1',
        POD_NAMESPACE: 'shop',
        SERVICE_ACCOUNT: 'reviews',
        INSTANCE_IP: '10.0.0.1',
        ...env,
      },
      readFile: (path) => files[path],
      isSocket,
      addresses: () => [{ interface: 'eth0', address: '10.0.0.1' }],
    },
  );
}

test('a sidecar says who it is', () => {
  const { node } = bootstrapOf(
    settings({
      ISTIO_META_CLUSTER_ID: 'east',
      ISTIO_META_WORKLOAD_NAME: 'reviews-v1',
      ISTIO_META_POD_PORTS: '[{"name":"http","containerPort":9080}]',
      ISTIO_METAJSON_LABELS: '{"team":"books","app":"x"}',
      ISTIO_METAJSON_MORE: '{"A":{"b":1}}',
      PROXY_CONFIG: '{"discoveryAddress":"fairlead.istio-system.svc:15012","meshId":"mesh1"}',
    }),
    'json',
  );
  expect(node).toMatchInlineSnapshot(`
    {
      "cluster": "reviews.shop",
      "id": "sidecar~10.0.0.1~reviews-1.shop~shop.svc.cluster.local",
      "metadata": {
        "A": {
          "b": 1,
        },
        "ANNOTATIONS": {
          "proxy.istio.io/config": "concurrency: 3
    proxyStatsMatcher:
      inclusionPrefixes: [cluster.outbound]
    ",
          "sidecar.istio.io/statsInclusionSuffixes": "upstream_rq_time,x",
        },
        "CLUSTER_ID": "east",
        "ENVOY_PROMETHEUS_PORT": 15090,
        "ENVOY_STATUS_PORT": 15021,
        "INSTANCE_IPS": "10.0.0.1",
        "INTERCEPTION_MODE": "REDIRECT",
        "ISTIO_VERSION": "1.30.0",
        "LABELS": {
          "app": "reviews",
          "team": "books",
          "version": "v1",
        },
        "MESH_ID": "mesh1",
        "NAME": "reviews-1",
        "NAMESPACE": "shop",
        "PILOT_SAN": [
          "fairlead.istio-system.svc",
        ],
        "POD_PORTS": "[{"name":"http","containerPort":9080}]",
        "PROXY_CONFIG": {
          "concurrency": 3,
          "discoveryAddress": "fairlead.istio-system.svc:15012",
          "meshId": "mesh1",
          "proxyStatsMatcher": {
            "inclusionPrefixes": [
              "cluster.outbound",
            ],
          },
        },
        "SERVICE_ACCOUNT": "reviews",
        "STATIC_LABELS": {
          "app": "x",
          "team": "books",
        },
        "WORKLOAD_NAME": "reviews-v1",
      },
    }
  `);
});

test('a user adds to what Envoy counts', () => {
  const { statsConfig } = bootstrapOf(settings({}), 'json') as unknown as {
    statsConfig: { statsMatcher: { inclusionList: { patterns: object[] } } };
  };
  expect(statsConfig.statsMatcher.inclusionList.patterns).toEqual(
    expect.arrayContaining([{ prefix: 'cluster.outbound' }, { suffix: 'upstream_rq_time' }, { suffix: 'x' }]),
  );
  expect(statsConfig.statsMatcher.inclusionList.patterns).not.toContainEqual({ suffix: 'downstream_cx_active' });
});

test('who waits for connections to end has to see them', () => {
  expect(JSON.stringify(bootstrapOf(settings({ EXIT_ON_ZERO_ACTIVE_CONNECTIONS: 'true' }), 'json'))).toContain(
    '"suffix":"downstream_cx_active"',
  );
});

test.each([
  ['{"proxyAdminPort": -1}', 'ProxyConfig proxyAdminPort must be a whole number'],
  ['statusPort: 70000', 'ProxyConfig statusPort must be a port number'],
  ['drainDuration: soon', 'ProxyConfig drainDuration must be a duration, such as 5s'],
  ['a: [', 'PROXY_CONFIG, line 1: is not valid YAML: [ is never closed'],
  [
    'tracing: {zipkin: {address: zipkin}}',
    'ProxyConfig tracing.zipkin.address must be host:port, such as collector.monitoring:9411',
  ],
  ['extraStatTags: a', 'ProxyConfig extraStatTags must be a list of strings'],
  ['proxyMetadata: {}\nfileFlushMinSizeKb: 99999999999', 'ProxyConfig fileFlushMinSizeKb must be at most 2147483647'],
  ['terminationDrainDuration: 1000h', 'ProxyConfig terminationDrainDuration must be at most 596h'],
  ['extraStatTags: [a, " "]', 'ProxyConfig extraStatTags[1] must not be empty'],
  [
    'envoyMetricsService: {address: "m:1", tlsSettings: {mode: MUTUAL}}',
    'ProxyConfig envoyMetricsService.tlsSettings.mode MUTUAL needs clientCertificate and privateKey',
  ],
  [
    'envoyMetricsService: {address: "m:1", tlsSettings: {mode: TLS}}',
    'ProxyConfig envoyMetricsService.tlsSettings.mode must be DISABLE, SIMPLE, MUTUAL or ISTIO_MUTUAL',
  ],
])('a mistake names the setting and what it takes: %s', (config, message) => {
  expect(() => settings({ PROXY_CONFIG: config })).toThrow(message);
});

/** With these annotations only. */
const annotated = (annotations: string) =>
  readSettings(
    { type: 'sidecar', domain: 'shop.svc.cluster.local', root: '/', meshConfigFile: 'etc/istio/config/mesh' },
    {
      env: { POD_NAME: 'reviews-1', POD_NAMESPACE: 'shop', INSTANCE_IP: '10.0.0.1' },
      readFile: (path) => (path === '/etc/istio/pod/annotations' ? annotations : undefined),
      isSocket: () => false,
      addresses: () => [],
    },
  );

test('what Envoy would reject in an annotation is named, and empty items of a list are skipped', () => {
  const flush = 'sidecar.istio.io/statsFlushInterval';
  expect(() => bootstrapOf(annotated(`${flush}="5m"\n`), 'json')).toThrow(
    `annotation ${flush} is 5m: use less than 5m`,
  );
  expect(() => annotated('proxy.istio.io/config="proxyStatsMatcher: {inclusionSuffixes: [\\"\\"]}"\n')).toThrow(
    'ProxyConfig proxyStatsMatcher.inclusionSuffixes[0] must not be empty',
  );
  expect(() => annotated('proxy.istio.io/config="concurrency: 100000"\n')).toThrow(
    'ProxyConfig concurrency must be at most 1024',
  );
  const { statsConfig } = bootstrapOf(annotated('sidecar.istio.io/statsInclusionPrefixes="a, ,b, "\n'), 'json') as {
    readonly statsConfig?: unknown;
  };
  expect(JSON.stringify(statsConfig)).toContain('{"prefix":"a"},{"prefix":"b"}');
  expect(JSON.stringify(statsConfig)).not.toContain('""');
});

test.each([
  [
    { EXIT_ON_ZERO_ACTIVE_CONNECTIONS: 'perhaps' },
    'EXIT_ON_ZERO_ACTIVE_CONNECTIONS is "perhaps": use "true" or "false"',
  ],
  [{ SECRET_TTL: '1 day' }, 'SECRET_TTL is "1 day": use a duration, such as 5s'],
  [{ ENVOY_PROMETHEUS_PORT: '1e3' }, 'ENVOY_PROMETHEUS_PORT is "1e3": use a port number, such as 15090'],
])('so does one in the environment: %s', (env, message) => {
  expect(() => settings(env)).toThrow(message);
});

test('what has no effect is named by its path', () => {
  const config = 'tracing: {lightstep: {address: "a:1"}, customTags: {}}\nconnectionSettings: {}\nreadinessProbe: {}';
  expect(settings({ PROXY_CONFIG: config }).unused).toEqual([
    'ProxyConfig connectionSettings',
    'ProxyConfig readinessProbe',
    'ProxyConfig tracing.lightstep',
    'ProxyConfig tracing.customTags',
  ]);
});

test('an annotation is above PROXY_CONFIG, and the environment above proxyMetadata', () => {
  const { proxy, clusterId, env } = settings({
    PROXY_CONFIG: 'concurrency: 1\nproxyMetadata: {ISTIO_META_CLUSTER_ID: west, B: c}\nterminationDrainDuration: 20s',
    ISTIO_META_CLUSTER_ID: 'east',
  });
  expect(proxy).toMatchObject({ concurrency: 3, terminationDrainDuration: 20_000 });
  expect([clusterId, env['B']]).toEqual(['east', 'c']);
});

test('runtime values replace and remove ours', () => {
  const { layeredRuntime } = bootstrapOf(
    settings({ PROXY_CONFIG: 'runtimeValues: {re2.max_program_size.error_level: "", a.b: "true", c: "5"}' }),
    'json',
  ) as unknown as { layeredRuntime: { layers: object[] } };
  expect(layeredRuntime.layers[0]).toMatchObject({ staticLayer: { 'a.b': true, c: '5' } });
  expect(JSON.stringify(layeredRuntime)).not.toContain('re2.max');
});

test('a router says if a provider of secrets listens in its Pod', () => {
  const credentialOf = (isSocket: (path: string) => boolean): unknown =>
    (bootstrapOf(settings({}, 'router', isSocket), 'json')['node'] as { metadata: Record<string, unknown> }).metadata[
      'credential'
    ];
  expect(credentialOf((path) => path === '/var/run/secrets/credential-uds/socket')).toBe('true');
  expect(credentialOf(() => false)).toBeUndefined();
});
