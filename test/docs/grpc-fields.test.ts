import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { unsupportedFields } from '../../src/reconcilers/unsupported-fields.ts';
import { TestMesh, connectedProxy, readObjects } from '../harness/mesh.ts';

/**
 * What the user guide says gRPC's own clients ignore: each field is set once, and what an Envoy and such a client get is
 * compared with what they get without it.
 */

const ROOT = join(import.meta.dirname, '../..');

const SERVICES = `
apiVersion: v1
kind: Service
metadata: {name: a, namespace: shop}
spec: {ports: [{name: grpc, port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: b, namespace: shop}
spec: {ports: [{name: grpc, port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: a-1, namespace: shop, labels: {kubernetes.io/service-name: a}}
addressType: IPv4
ports: [{name: grpc, port: 80}]
endpoints: [{addresses: [10.1.1.1], zone: z}, {addresses: [10.1.1.2], zone: y}]
`;

/** A value of a field that Envoys act on, and what must be set beside it. */
type Case = readonly [value: unknown, beside?: Readonly<Record<string, unknown>>];

const b = { host: 'b' };
const instead = { 'http[].route': undefined };
const mutual = { 'trafficPolicy.tls.mode': 'ISTIO_MUTUAL' };
const retried = { 'http[].retries.attempts': 3 };
const ejecting = { 'trafficPolicy.outlierDetection.consecutive5xxErrors': 3 };
const splitting = { 'trafficPolicy.outlierDetection.splitExternalLocalOriginErrors': true };
const byHeader = { 'trafficPolicy.loadBalancer.consistentHash.httpHeaderName': 'user' };

const fields = {
  VirtualService: {
    'http[].match': [[{ uri: { prefix: '/other' } }]],
    'http[].route': [[{ destination: b }]],
    'http[].redirect': [{ uri: '/x' }, instead],
    'http[].directResponse': [{ status: 204 }, instead],
    'http[].rewrite': [{ uri: '/x' }],
    'http[].timeout': ['3s'],
    'http[].retries': [{ attempts: 3 }],
    'http[].fault': [{ abort: { grpcStatus: 'UNAVAILABLE', percentage: { value: 50 } } }],
    'http[].mirror': [b],
    'http[].mirrors': [[{ destination: b }]],
    'http[].mirrorPercentage': [{ value: 7 }, { 'http[].mirror': b }],
    'http[].corsPolicy': [{ allowOrigins: [{ exact: 'https://example.com' }] }],
    'http[].headers': [{ request: { set: { 'x-a': 'b' } } }],
    'http[].match[].uri': [{ exact: '/shop.A/Get' }],
    'http[].match[].scheme': [{ exact: 'https' }],
    'http[].match[].method': [{ exact: 'GET' }],
    'http[].match[].authority': [{ exact: 'other' }],
    'http[].match[].headers': [{ user: { exact: 'me' } }],
    'http[].match[].port': [81],
    'http[].match[].sourceLabels': [{ app: 'other' }],
    'http[].match[].sourceNamespace': ['other'],
    'http[].match[].gateways': [['edge']],
    'http[].match[].queryParams': [{ q: { exact: 'x' } }],
    'http[].match[].ignoreUriCase': [true],
    'http[].match[].withoutHeaders': [{ user: { exact: 'me' } }],
    'http[].match[].statPrefix': ['mine'],
    'http[].route[].destination': [b],
    'http[].route[].headers': [{ request: { set: { 'x-a': 'b' } } }],
    'http[].retries.attempts': [7],
    'http[].retries.perTryTimeout': ['1s', retried],
    'http[].retries.retryOn': ['cancelled', retried],
    'http[].retries.retryRemoteLocalities': [true, retried],
    'http[].retries.retryIgnorePreviousHosts': [false, retried],
    'http[].retries.backoff': ['1s', retried],
    'http[].fault.abort': [{ grpcStatus: 'UNAVAILABLE', percentage: { value: 50 } }],
    'http[].fault.delay': [{ fixedDelay: '1s', percentage: { value: 50 } }],
  },
  DestinationRule: {
    'trafficPolicy.loadBalancer': [{ consistentHash: { httpHeaderName: 'user' } }],
    'trafficPolicy.connectionPool': [{ http: { http2MaxRequests: 7 } }],
    'trafficPolicy.outlierDetection': [{ consecutive5xxErrors: 3 }],
    'trafficPolicy.tls': [{ mode: 'ISTIO_MUTUAL' }],
    'trafficPolicy.portLevelSettings': [[{ port: { number: 80 }, tls: { mode: 'ISTIO_MUTUAL' } }]],
    'trafficPolicy.proxyProtocol': [{ version: 'V2' }],
    'trafficPolicy.retryBudget': [{ percent: 7 }],
    'trafficPolicy.loadBalancer.simple': ['RANDOM'],
    'trafficPolicy.loadBalancer.localityLbSetting': [{ distribute: [{ from: 'r/*', to: { 'r/y': 100 } }] }],
    'trafficPolicy.loadBalancer.warmup': [{ duration: '9s' }],
    'trafficPolicy.loadBalancer.warmupDurationSecs': ['9s'],
    'trafficPolicy.loadBalancer.consistentHash.httpHeaderName': ['user'],
    'trafficPolicy.loadBalancer.consistentHash.httpCookie': [{ name: 'c', ttl: '0s' }],
    'trafficPolicy.loadBalancer.consistentHash.useSourceIp': [true],
    'trafficPolicy.loadBalancer.consistentHash.httpQueryParameterName': ['q'],
    'trafficPolicy.loadBalancer.consistentHash.ringHash': [{ minimumRingSize: 64 }, byHeader],
    'trafficPolicy.loadBalancer.backendUtilization': [{ weightUpdatePeriod: '7s' }],
    'trafficPolicy.loadBalancer.consistentHash.maglev': [{ tableSize: 101 }, byHeader],
    'trafficPolicy.loadBalancer.consistentHash.minimumRingSize': [64, byHeader],
    'trafficPolicy.connectionPool.tcp': [{ maxConnections: 7 }],
    'trafficPolicy.connectionPool.tcp.maxConnections': [7],
    'trafficPolicy.connectionPool.tcp.connectTimeout': ['7s'],
    'trafficPolicy.connectionPool.tcp.tcpKeepalive': [{ time: '7s' }],
    'trafficPolicy.connectionPool.tcp.maxConnectionDuration': ['7s'],
    'trafficPolicy.connectionPool.tcp.idleTimeout': ['7s'],
    'trafficPolicy.connectionPool.http.http1MaxPendingRequests': [7],
    'trafficPolicy.connectionPool.http.http2MaxRequests': [7],
    'trafficPolicy.connectionPool.http.maxRequestsPerConnection': [7],
    'trafficPolicy.connectionPool.http.maxRetries': [7],
    'trafficPolicy.connectionPool.http.idleTimeout': ['7s'],
    'trafficPolicy.connectionPool.http.useClientProtocol': [true],
    'trafficPolicy.connectionPool.http.maxConcurrentStreams': [7],
    'trafficPolicy.connectionPool.http.http2KeepAlive': [{ interval: '7s', timeout: '1s' }],
    'trafficPolicy.outlierDetection.consecutive5xxErrors': [7],
    'trafficPolicy.outlierDetection.consecutiveGatewayErrors': [7],
    'trafficPolicy.outlierDetection.splitExternalLocalOriginErrors': [true],
    'trafficPolicy.outlierDetection.consecutiveLocalOriginFailures': [7, splitting],
    'trafficPolicy.outlierDetection.outlierDetectionHttpErrorCodes': [[{ start: 500, end: 501 }]],
    'trafficPolicy.outlierDetection.interval': ['7s', ejecting],
    'trafficPolicy.outlierDetection.baseEjectionTime': ['7s', ejecting],
    'trafficPolicy.outlierDetection.maxEjectionPercent': [7, ejecting],
    'trafficPolicy.outlierDetection.minHealthPercent': [7, ejecting],
    'trafficPolicy.outlierDetection.failurePercentageThreshold': [7],
    'trafficPolicy.tls.mode': ['ISTIO_MUTUAL'],
    'trafficPolicy.tls.sni': ['other', mutual],
    'trafficPolicy.tls.subjectAltNames': [['spiffe://x'], mutual],
  },
} satisfies Readonly<Record<string, Readonly<Record<string, Case>>>>;

type Kind = keyof typeof fields;

const base = {
  VirtualService: {
    hosts: ['a'],
    http: [
      { match: [{ uri: { prefix: '/shop.A/' } }], route: [{ destination: { host: 'a' } }] },
      { route: [{ destination: b }] },
    ],
  },
  DestinationRule: { host: 'a' },
};

/** Other spellings, what is settled before clients are looked at, and what only TCP, or TLS that gRPC does not speak, has. */
const others = [
  ...['http[].name', 'http[].delegate', 'http[].mirrorPercent', 'http[].mirror_percent', 'http[].route[].weight'],
  ...['http[].match[].name', 'trafficPolicy.connectionPool.http.h2UpgradePolicy', 'trafficPolicy.tunnel'],
  ...['clientCertificate', 'privateKey', 'caCertificates', 'caCrl', 'credentialName', 'caCertCredentialName', 'insecureSkipVerify'].map(
    (name) => `trafficPolicy.tls.${name}`,
  ),
];

/** Sets a field; `[]` is the first element. Undefined: removes it. */
function setField(spec: object, path: string, value: unknown): void {
  const steps = path.replaceAll('[]', '.0').split('.');
  let at = spec as Record<string, unknown>;
  for (const step of steps.slice(0, -1)) at = (at[step] ??= {}) as Record<string, unknown>;
  if (value === undefined) delete at[steps.at(-1)!];
  else at[steps.at(-1)!] = value;
}

interface Answers {
  readonly envoy: unknown;
  readonly grpc: unknown;
}

/** What both get if the object has these fields. */
function answersTo(kind: Kind, set: Readonly<Record<string, unknown>>): Answers {
  const spec = structuredClone(base[kind]);
  for (const [path, value] of Object.entries(set)) setField(spec, path, value);
  const object = { apiVersion: 'networking.istio.io/v1', kind, metadata: { name: 'a', namespace: 'shop' }, spec };
  const mesh = new TestMesh({ oracle: false });
  mesh.apply([...readObjects(SERVICES), object]);
  const answerTo = (stream: string, metadata: object): unknown => {
    const id = 'sidecar~10.1.0.1~client.shop~shop.svc.cluster.local';
    const locality = { region: 'r', zone: 'z' };
    mesh.connect(connectedProxy(stream, { id, metadata: { NAMESPACE: 'shop', ISTIO_VERSION: '1.30.0', ...metadata }, locality }));
    return mesh.json(stream);
  };
  return { envoy: answerTo('envoy', {}), grpc: answerTo('grpc', { GENERATOR: 'grpc' }) };
}

const kinds = Object.keys(fields) as Kind[];
const guide = readFileSync(join(ROOT, 'docs/guide/sidecars.md'), 'utf8');

test.each(kinds)('the fields of a %s that the guide says have no effect for gRPC are those', (kind) => {
  const ignored: string[] = [];
  const inert: string[] = [];
  for (const [path, [value, beside = {}]] of Object.entries<Case>(fields[kind])) {
    const [without, having] = [answersTo(kind, beside), answersTo(kind, { ...beside, [path]: value })];
    if (isDeepStrictEqual(having.envoy, without.envoy)) inert.push(path);
    if (isDeepStrictEqual(having.grpc, without.grpc)) ignored.push(path);
  }
  expect(inert, 'Envoys ignore them, too').toEqual([]);
  const [, row = ''] = new RegExp(`^\\| ${kind} \\| (\`.*\`) \\|$`, 'm').exec(guide) ?? [];
  const isWithin = (path: string): boolean => ignored.some((whole) => path.startsWith(`${whole}.`));
  expect([...row.matchAll(/`([^`]*)`/g)].map(([, path]) => path).sort()).toEqual(
    ignored.filter((path) => !isWithin(path)).sort(),
  );
});

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
}

test.each(kinds)('no field of a %s is forgotten', (kind) => {
  const file = join(ROOT, 'crds', `${kind.toLowerCase()}s.yaml`);
  const { spec: definition } = parse(readFileSync(file, 'utf8')) as {
    spec: { versions: { schema: { openAPIV3Schema: { properties: { spec: Schema } } } }[] };
  };
  const unsupported = unsupportedFields.map(({ field }) => field.replace(/^spec\./, ''));
    const parents = new Set(Object.keys(fields[kind]).map((path) => path.slice(0, path.lastIndexOf('.'))));
  const known = new Set([...Object.keys(fields[kind]), ...parents, ...others, ...unsupported]);
  const forgotten: string[] = [];
  for (const parent of parents) {
    let schema: Schema | undefined = definition.versions[0]!.schema.openAPIV3Schema.properties.spec;
    for (const step of parent.split('.')) {
      schema = schema?.properties?.[step.replace('[]', '')];
      if (step.endsWith('[]')) schema = schema?.items;
    }
    for (const name of Object.keys(schema?.properties ?? {}))
      if (!known.has(`${parent}.${name}`)) forgotten.push(`${parent}.${name}`);
  }  expect(forgotten).toEqual([]);
});
