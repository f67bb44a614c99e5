import { expect, test } from 'vitest';
import { printRef } from '../api/object.ts';
import { mergeServers, type MergeInput } from './gateway-merge.ts';
import { reconcileGateway } from '../reconcilers/gateway/gateway.ts';

const plain = { ipFamily: 'v4', unprivileged: false, reservedPorts: [] } as const;

/** Gateways `g0`, `g1`, ... with these servers, oldest first. */
function merge(
  gateways: readonly (readonly object[])[],
  options: Partial<MergeInput> & { readonly namespaces?: readonly string[] } = {},
) {
  const models = gateways.map((servers, i) => {
    const metadata = {
      name: `g${i}`,
      namespace: options.namespaces?.[i] ?? 'shop',
      creationTimestamp: `2026-01-01T00:00:0${i}Z`,
    };
    const object = { apiVersion: 'networking.istio.io/v1', kind: 'Gateway', metadata, spec: { servers } };
    const { models, problems } = reconcileGateway(object, { source: 'test' });
    expect(problems.filter(({ reason }) => reason === 'Invalid')).toEqual([]);
    return models[0]!;
  });
  const { listeners, problems } = mergeServers({
    gateways: models,
    targetPort: (port) => port,
    traits: plain,
    namespace: 'shop',
    rootNamespace: 'istio-system',
    crossNamespaceFiles: true,
    credential: () => ({}),
    ...options,
  });
  return {
    listeners: listeners.map(({ name, kind, servers }) => ({
      name,
      kind,
      servers: servers.map(({ gateway, server, routes }) => `${gateway} ${server.field} ${routes}`.trimEnd()),
    })),
    problems: problems.map(
      ({ object, reason, field, message }) => `${reason} ${printRef(object)} ${field}: ${message}`,
    ),
  };
}

let count = 0;
const server = (number: number, protocol: string, hosts: readonly string[] = ['*'], more: object = {}) => ({
  port: { number, protocol, name: `p${count++}` },
  hosts,
  ...more,
});
const named = (name: string, number: number, hosts: readonly string[], more: object = {}) => ({
  ...server(number, 'HTTPS', hosts, { tls: { mode: 'SIMPLE', serverCertificate: '/c', privateKey: '/k' }, ...more }),
  port: { number, protocol: 'HTTPS', name },
});
const passthrough = (number: number, hosts: readonly string[]) =>
  server(number, 'TLS', hosts, { tls: { mode: 'PASSTHROUGH' } });

test('HTTP servers of several Gateways share a port and a route table', () => {
  expect(merge([[server(80, 'HTTP')], [server(80, 'GRPC'), server(81, 'HTTP')]])).toEqual({
    listeners: [
      {
        name: '0.0.0.0_80',
        kind: 'http',
        servers: ['shop/g0 spec.servers[0] http.80', 'shop/g1 spec.servers[0] http.80'],
      },
      { name: '0.0.0.0_81', kind: 'http', servers: ['shop/g1 spec.servers[1] http.81'] },
    ],
    problems: [],
  });
});

test('ports that lead to one target port are one listener', () => {
  const targetPort = (port: number) => (port === 80 || port === 8080 ? 8080 : port);
  expect(merge([[server(80, 'HTTP'), server(8080, 'HTTP')], [named('https', 443, ['*'])]], { targetPort })).toEqual({
    listeners: [
      {
        name: '0.0.0.0_8080',
        kind: 'http',
        servers: ['shop/g0 spec.servers[0] http.8080', 'shop/g0 spec.servers[1] http.8080'],
      },
      { name: '0.0.0.0_443', kind: 'tls', servers: ['shop/g1 spec.servers[0] https.443.https.g1.shop'] },
    ],
    problems: [],
  });
});

test('TLS servers share a port by their server names', () => {
  const { listeners, problems } = merge([
    [named('a', 443, ['a.b'])],
    [passthrough(443, ['*.b']), named('c', 443, ['*'])],
  ]);
  expect(listeners).toEqual([
    {
      name: '0.0.0.0_443',
      kind: 'tls',
      servers: [
        'shop/g0 spec.servers[0] https.443.a.g0.shop',
        'shop/g1 spec.servers[0]',
        'shop/g1 spec.servers[1] https.443.c.g1.shop',
      ],
    },
  ]);
  expect(problems).toEqual([]);
});

test('a server name that an older server has leaves the younger server without a place', () => {
  const { listeners, problems } = merge([
    [named('a', 443, ['x/a.b'])],
    [named('b', 443, ['c.d', 'A.b']), named('c', 443, ['c.d'])],
  ]);
  expect(listeners[0]?.servers).toEqual([
    'shop/g0 spec.servers[0] https.443.a.g0.shop',
    'shop/g1 spec.servers[1] https.443.c.g1.shop',
  ]);
  expect(problems).toEqual([
    'Conflicted Gateway/shop/g1 spec.servers[0].hosts: Host "a.b" on port 443 belongs to the older Gateway/shop/g0, so this server is left out; remove the host from one of them.',
  ]);
});

test.each([
  ['HTTP', 'TCP'],
  ['TCP', 'HTTP'],
  ['TCP', 'TCP'],
])('%s keeps its port from %s', (first, second) => {
  const { listeners, problems } = merge([[server(90, first), server(90, second)]], { targetPort: () => 9090 });
  expect(listeners).toHaveLength(1);
  expect(listeners[0]?.servers).toHaveLength(1);
  expect(problems).toEqual([
    `Conflicted Gateway/shop/g0 spec.servers[1].port: port 9090 (the target of port 90) is used by spec.servers[0] of this Gateway, and ${second} cannot share it; use another port or bind.`,
  ]);
});

test('TLS and plaintext conflict, unless they bind different addresses', () => {
  const tls = named('a', 443, ['*']);
  expect(merge([[tls], [server(443, 'HTTP')]]).problems).toHaveLength(1);
  expect(merge([[tls], [server(443, 'HTTP', ['*'], { bind: '10.0.0.1' })]])).toMatchObject({
    listeners: [
      { name: '0.0.0.0_443' },
      { name: '10.0.0.1_443', servers: ['shop/g1 spec.servers[0] http.443.10.0.0.1'] },
    ],
    problems: [],
  });
});

test.each(['10.9.0.1', '127.0.0.1', '::ffff:10.9.0.1'])(
  'the address %s takes no connections away from a port that another namespace has at all addresses',
  (bind) => {
    const gateways = [[server(80, 'HTTP')], [server(80, 'HTTP', ['*'], { bind })]];
    const { listeners, problems } = merge(gateways, { namespaces: ['shop', 'other'] });
    expect(listeners.map(({ name }) => name)).toEqual(['0.0.0.0_80']);
    expect(problems).toEqual([
      expect.stringMatching(
        /^Conflicted Gateway\/other\/g1 spec.servers\[0\].bind: port 80 is open on all addresses for the older Gateway\/shop\/g0, /,
      ),
    ]);
    expect(merge(gateways)).toMatchObject({ listeners: [{ name: '0.0.0.0_80' }, { kind: 'http' }], problems: [] });
  },
);

test('a unix socket is for routers of the own namespace, or of the root namespace', () => {
  const unix = server(0, 'HTTP', ['*'], { bind: 'unix:///var/run/secrets/workload-spiffe-uds/socket' });
  const { listeners, problems } = merge([[unix]], { namespace: 'edge' });
  expect(listeners).toEqual([]);
  expect(problems).toEqual([expect.stringMatching(/^Ineffective Gateway\/shop\/g0 spec.servers\[0\].bind: /)]);
  expect(merge([[unix]])).toMatchObject({ listeners: [{ kind: 'http' }], problems: [] });
  expect(merge([[unix]], { namespace: 'edge', rootNamespace: 'shop' }).listeners).toHaveLength(1);
});

test('an address that is written out is the same listener as the wildcard', () => {
  expect(merge([[server(80, 'HTTP'), server(80, 'HTTP', ['*'], { bind: '0.0.0.0' })]])).toMatchObject({
    listeners: [
      { name: '0.0.0.0_80', servers: [expect.stringContaining('http.80'), expect.stringMatching(/http\.80$/)] },
    ],
  });
});

test('of servers that redirect a host the first one does', () => {
  const redirect = { tls: { httpsRedirect: true } };
  const { problems } = merge([
    [server(80, 'HTTP', ['x/a.b'], redirect)],
    [server(80, 'HTTP', ['y/a.b', 'x/a.b'], redirect)],
  ]);
  expect(problems).toEqual([expect.stringContaining('Host "x/a.b" on port 80 belongs to the older Gateway/shop/g0')]);
});

test('ports that the router cannot open are left out', () => {
  const traits = { ipFamily: 'v6', unprivileged: true, reservedPorts: [15021] } as const;
  const { listeners, problems } = merge([[server(80, 'HTTP'), server(15021, 'HTTP'), server(8080, 'HTTP')]], {
    traits,
  });
  expect(listeners.map(({ name }) => name)).toEqual(['::_8080']);
  expect(problems).toEqual([
    expect.stringMatching(/^Ineffective Gateway\/shop\/g0 spec.servers\[0\].port.number: .* leaves out port 80;/),
    expect.stringMatching(/^Ineffective Gateway\/shop\/g0 spec.servers\[1\].port.number: .* port 15021 itself/),
  ]);
});

const files = (name: string, tls: object) =>
  server(443, 'HTTPS', [`${name}.example.com`], { tls: { privateKey: '/k', ...tls } });

test.each([
  ['a certificate', { mode: 'SIMPLE', serverCertificate: '/c' }],
  ['authorities', { mode: 'MUTUAL', serverCertificate: '/c', caCertificates: '/ca' }],
  ['a revocation list', { mode: 'ISTIO_MUTUAL', privateKey: '', caCrl: '/crl' }],
])('a Gateway of another namespace than the router’s and the root namespace cannot name the file of %s', (_, tls) => {
  const servers = (name: string) => [files(name, tls)];
  const { listeners, problems } = merge([servers('a'), servers('b'), servers('c')], {
    namespaces: ['evil', 'shop', 'istio-system'],
    crossNamespaceFiles: false,
  });
  expect(listeners[0]?.servers.map((text) => text.split(' ')[0])).toEqual(['shop/g1', 'istio-system/g2']);
  expect(problems).toEqual([
    'RefNotFound Gateway/evil/g0 spec.servers[0].tls: names files that a router in namespace shop does not read for Gateways of other namespaces; this server is left out. Use credentialName, move the Gateway to shop, or set --cross-namespace-files=on.',
  ]);
});

test('Gateways of another namespace name at most 20 certificates on a router, the oldest first', () => {
  const servers = (namespace: string) =>
    Array.from({ length: 25 }, (_, i) =>
      files(`h${i}.${namespace}`, { mode: 'SIMPLE', serverCertificate: `/${i % 21}` }),
    );
  const { listeners, problems } = merge([servers('evil'), servers('shop')], { namespaces: ['evil', 'shop'] });
  const count = (gateway: string) => listeners[0]!.servers.filter((text) => text.startsWith(gateway)).length;
  expect([count('evil/'), count('shop/')]).toEqual([24, 25]);
  expect(problems).toEqual([
    'RefNotFound Gateway/evil/g0 spec.servers[20].tls: names files beyond the 20 that Gateways in namespace evil may name on a router in namespace shop; this server is left out. Name fewer, or use credentialName.',
  ]);
});
