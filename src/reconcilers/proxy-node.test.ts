import { expect, test } from 'vitest';
import { gatewayTraits, outboundTraits, traitsKey } from '../model/traits.ts';
import { type NodeFacts, type NodeInput, readNode } from './proxy-node.ts';

const locality = { region: '', zone: '', subZone: '' };
const defaults = { namespace: 'default', domainSuffix: 'cluster.local' };
const agentId = 'sidecar~10.1.0.1~web-1.shop~shop.svc.cluster.local';

function read(nodeId: string, metadata: NodeInput['metadata'] = {}): NodeFacts {
  const result = readNode({ nodeId, metadata, locality, extensions: [] }, defaults);
  if ('error' in result) throw new Error(result.error);
  return result.node;
}

function errorOf(nodeId: string, metadata: NodeInput['metadata'] = {}): string {
  const result = readNode({ nodeId, metadata, locality, extensions: [] }, defaults);
  return 'error' in result ? result.error : 'accepted';
}

test('an id of an Istio agent names type, address, workload, namespace and domain', () => {
  expect(read(agentId)).toMatchObject({
    traits: { proxyType: 'sidecar', agent: false, interception: 'REDIRECT', ipFamily: 'v4' },
    namespace: 'shop',
    workloadName: 'web-1',
    addresses: ['10.1.0.1'],
    cluster: 'Kubernetes',
    podPorts: undefined,
  });
});

test('a pod name may have dots, a namespace has none', () => {
  expect(read('router~10.0.0.1~gw.v1.istio-system~istio-system.svc.cluster.local')).toMatchObject({
    traits: { proxyType: 'router' },
    workloadName: 'gw.v1',
  });
});

test('metadata wins over the id', () => {
  const node = read(agentId, { NAMESPACE: 'prod', INSTANCE_IPS: '10.1.0.2,fd00::2', CLUSTER_ID: 'c1', NETWORK: 'n1' });
  expect(node).toMatchObject({ namespace: 'prod', addresses: ['10.1.0.2', 'fd00::2'], cluster: 'c1', network: 'n1' });
  expect(node.traits.ipFamily).toBe('dual');
});

test('one bad address makes all of INSTANCE_IPS count for nothing', () => {
  expect(read(agentId, { INSTANCE_IPS: '10.1.0.2,nonsense' }).addresses).toEqual(['10.1.0.1']);
});

test('addresses are written in one way, each once', () => {
  expect(read(agentId, { INSTANCE_IPS: 'FD00::0001,fd00::1,10.1.0.1' }).addresses).toEqual(['fd00::1', '10.1.0.1']);
});

test('a plain Envoy may have any id, and has the defaults of the flags', () => {
  expect(read('my-envoy')).toMatchObject({
    traits: { proxyType: 'sidecar', ipFamily: 'v4' },
    namespace: 'default',
    workloadName: '',
    addresses: [],
  });
  const router = readNode(
    { nodeId: 'x', metadata: {}, locality, extensions: [] },
    { ...defaults, proxyType: 'router' },
  );
  expect(router).toMatchObject({ node: { traits: { proxyType: 'router' } } });
});

test('a plain Envoy says in its metadata what it is', () => {
  const metadata = { PROXY_TYPE: 'router', NAMESPACE: 'edge', NAME: 'edge-1', INSTANCE_IPS: 'fd00::1' };
  expect(read('edge', metadata)).toMatchObject({
    traits: { proxyType: 'router', ipFamily: 'v6' },
    namespace: 'edge',
    workloadName: 'edge-1',
  });
});

test('traits come from metadata', () => {
  const { traits } = read(agentId, {
    ISTIO_VERSION: '1.32.0',
    INTERCEPTION_MODE: 'NONE',
    DNS_CAPTURE: 'true',
    HTTP10: '1',
    IDLE_TIMEOUT: '90s',
    HTTP_PROXY_PORT: '15007',
    UNPRIVILEGED_POD: 'true',
    ENVOY_STATUS_PORT: 15021,
    ENVOY_PROMETHEUS_PORT: 15020,
    INBOUND_LISTENER_EXACT_BALANCE: 'true',
    TLS_CLIENT_CERT_CHAIN: '/c',
    TLS_CLIENT_KEY: '/k',
    TLS_CLIENT_ROOT_CERT: '/r',
    TLS_SERVER_ROOT_CERT: '/s',
    PROXY_CONFIG: { proxyHeaders: { preserveHttp1HeaderCase: true } },
    credential: 'true',
  });
  expect(traits).toEqual({
    proxyType: 'sidecar',
    family: 'envoy',
    agent: true,
    interception: 'NONE',
    ipFamily: 'v4',
    shortNames: true,
    cluster: '',
    dnsCapture: true,
    http10: true,
    idleTimeout: 90_000,
    httpProxyPort: 15007,
    unprivileged: true,
    reservedPorts: [15020, 15021],
    inboundExactBalance: true,
    outboundExactBalance: false,
    clientCertificate: { chain: '/c', key: '/k', root: '/r' },
    serverCertificate: { chain: '', key: '', root: '/s' },
    preserveHeaderCase: true,
    credentialSocket: true,
  });
});

test('of a gRPC library, only what matters without an Envoy splits it from others', () => {
  const metadata = { GENERATOR: 'grpc', ISTIO_VERSION: '1.32.0' };
  const { traits } = read(agentId, metadata);
  expect(traits).toMatchObject({ family: 'grpc', proxyType: 'sidecar', agent: true, interception: 'REDIRECT' });
  const envoy = { INTERCEPTION_MODE: 'NONE', HTTP_PROXY_PORT: '15007', HTTP10: '1', TLS_CLIENT_CERT_CHAIN: '/c' };
  expect(read(agentId, { ...metadata, ...envoy }).traits).toEqual(traits);
  expect(read(agentId.replace('sidecar', 'router'), metadata).traits.family).toBe('envoy');
});

test('labels and static labels stay apart, because only the latter win over those of the workload', () => {
  expect(read(agentId, { LABELS: { app: 'web' }, STATIC_LABELS: { tier: 'front' } })).toMatchObject({
    labels: { app: 'web' },
    staticLabels: { tier: 'front' },
  });
});

test('pod ports are JSON within a text; only named TCP ports count', () => {
  const ports = [
    { name: 'http', containerPort: 8080, protocol: 'TCP' },
    { name: 'http', containerPort: 9999, protocol: 'TCP' },
    { name: 'dns', containerPort: 53, protocol: 'UDP' },
    { containerPort: 1 },
  ];
  expect(read(agentId, { POD_PORTS: JSON.stringify(ports) }).podPorts).toEqual({ http: 8080 });
});

test('the locality of the request is one text', () => {
  const at = (region: string, zone: string, subZone: string) =>
    readNode({ nodeId: 'x', metadata: {}, locality: { region, zone, subZone }, extensions: [] }, defaults);
  expect(at('r', 'z', '')).toMatchObject({ node: { locality: 'r/z/' } });
  expect(at('', '', '')).toMatchObject({ node: { locality: '' } });
});

test.each<readonly [string, NodeInput['metadata'], RegExp]>([
  ['', {}, /empty/],
  ['sidecar~10.0.0.1~a.b', {}, /missing parts in the service node/],
  ['waypoint~10.0.0.1~a.b~c', {}, /type waypoint/],
  ['sidecar~nonsense~a.b~c', {}, /no valid IP address/],
  ['x', { PROXY_TYPE: 'gateway' }, /PROXY_TYPE/],
  [agentId, { ENVOY_STATUS_PORT: '15021' }, /ENVOY_STATUS_PORT must be a port number/],
  [agentId, { DNS_CAPTURE: 'maybe' }, /DNS_CAPTURE/],
  [agentId, { NAMESPACE: 7 }, /NAMESPACE must be a string/],
  [agentId, { LABELS: { app: 1 } }, /LABELS must hold strings/],
  [agentId, { LABELS: 'app=web' }, /LABELS must be an object/],
  [agentId, { POD_PORTS: '{' }, /POD_PORTS must be a string that holds a JSON list/],
  [agentId, { POD_PORTS: '[{}]' }, /POD_PORTS holds an entry without a valid port/],
  ...['1e300', '1.5', '-5', '0', '65536', '"80"'].map(
    (port) => [agentId, { POD_PORTS: `[{"name":"web","containerPort":${port}}]` }, /without a valid port/] as const,
  ),
  [agentId, { ENVOY_STATUS_PORT: 1.5 }, /ENVOY_STATUS_PORT must be a port number/],
  ...['*', 'a/b', 'a|b', 'Shop', '__proto__', 'x'.repeat(64)].map(
    (namespace) => [agentId, { NAMESPACE: namespace }, /cannot be the name of a namespace/] as const,
  ),
  ['sidecar~10.1.0.1~web-1.shop~a|b.svc.cluster.local', {}, /cannot be the name of a namespace/],
  ['sidecar~fe80::1%eth0~web-1.shop~shop.svc.cluster.local', {}, /no valid IP address/],
  [agentId, { TLS_CLIENT_CERT_CHAIN: 'x'.repeat(4097) }, /TLS_CLIENT_CERT_CHAIN is longer than 4096/],
  [agentId, { INSTANCE_IPS: Array<string>(65).fill('10.1.0.1').join() }, /more than 64 addresses/],
  [agentId, { LABELS: Object.fromEntries(Array.from({ length: 257 }, (_, i) => [`l${i}`, ''])) }, /256 labels/],
])('the node %j with %j is refused', (nodeId, metadata, message) => {
  expect(errorOf(nodeId, metadata)).toMatch(message);
});

test('an id without any metadata has a short key', () => {
  expect(traitsKey(read(agentId).traits)).toBe('sidecar,plain,REDIRECT,v4');
  expect(traitsKey(read('x').traits)).toBe('sidecar,plain,REDIRECT,v4,full-names');
});

test('metadata that nobody reads never splits proxies, traits do', () => {
  const key = (metadata: NodeInput['metadata']) => traitsKey(read(agentId, metadata).traits);
  expect(key({ MESH_ID: 'm', WORKLOAD_NAME: 'w', ANNOTATIONS: { a: 'b' } })).toBe(key({}));
  const different = [
    {},
    { ISTIO_VERSION: '1.30' },
    { INTERCEPTION_MODE: 'TPROXY' },
    { DNS_CAPTURE: 'true' },
    { HTTP10: '1' },
    { IDLE_TIMEOUT: '1s' },
    { HTTP_PROXY_PORT: '8080' },
    { UNPRIVILEGED_POD: 'true' },
    { ENVOY_STATUS_PORT: 1 },
    { TLS_CLIENT_CERT_CHAIN: 'a,b' },
    { TLS_CLIENT_CERT_CHAIN: 'a', TLS_CLIENT_KEY: 'b' },
    { TLS_SERVER_CERT_CHAIN: 'a', TLS_SERVER_KEY: 'b' },
  ];
  expect(new Set(different.map(key)).size).toBe(different.length);
});

test.each([
  ['sidecar~10.1.0.1~web-1.shop~shop.svc.cluster.local', true],
  ['sidecar~10.1.0.1~web-1.shop~', false],
  ['sidecar~10.1.0.1~web-1.shop~shop.svc.other.local', false],
  ['sidecar~10.1.0.1~web-1.shop~cluster.local', false],
  ['my-envoy', false],
])('short names are only for proxies whose id has the domain of the cluster: %s', (id, expected) => {
  expect(read(id).traits.shortNames).toBe(expected);
});

test.each([outboundTraits, gatewayTraits])('routers of all domains share: $name', (traitsFor) => {
  const ids = ['router~10.1.0.1~gw.shop~shop.svc.cluster.local', 'router~10.1.0.1~gw.shop~'];
  expect(new Set(ids.map((id) => traitsKey(traitsFor(read(id).traits)))).size).toBe(1);
});

test('a router says in its PROXY_CONFIG what is in front of it, field by field', () => {
  const topologyOf = (gatewayTopology: unknown, id = 'router~10.1.0.1~gw.shop~shop.svc.cluster.local') =>
    read(id, { PROXY_CONFIG: { concurrency: 2, gatewayTopology } }).gatewayTopology;
  expect(topologyOf(undefined)).toBeUndefined();
  expect(topologyOf({ numTrustedProxies: 2 })).toEqual({ numTrustedProxies: 2 });
  expect(topologyOf({ forwardClientCertDetails: 'UNDEFINED', proxyProtocol: {} })).toEqual({ proxyProtocol: true });
  expect(topologyOf({ forwardClientCertDetails: 'FORWARD_ONLY' }, agentId)).toBeUndefined();
});

test.each([
  [{ numTrustedProxies: -1 }, 'metadata PROXY_CONFIG.gatewayTopology.numTrustedProxies must be a whole number'],
  [{ numTrustedProxies: '2' }, 'metadata PROXY_CONFIG.gatewayTopology.numTrustedProxies must be a number'],
  [
    { forwardClientCertDetails: 'X' },
    'metadata PROXY_CONFIG.gatewayTopology.forwardClientCertDetails "X" is not one of',
  ],
  [7, 'metadata PROXY_CONFIG.gatewayTopology must be an object'],
])('a router with the topology %j is refused', (gatewayTopology, message) => {
  const id = 'router~10.1.0.1~gw.shop~shop.svc.cluster.local';
  expect(errorOf(id, { PROXY_CONFIG: { gatewayTopology } })).toContain(message);
});
