import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { createRules } from '../../../test/protos/validate-rules.ts';
import { type Tree, normalise, recorded } from '../../../test/truth/normalise.ts';
import type { InboundTarget, SidecarIngress } from '../../model/inbound.ts';
import type { Protocol } from '../../model/service.ts';
import type { Traits } from '../../model/traits.ts';
import { type InboundInput, buildInbound } from './inbound-listeners.ts';
import { types } from '../encode/proto-types.ts';
import { noSecurity } from '../security/authorization.ts';
import { defaultSettings, printListener, protos, traitsOf } from '../testing/listeners.ts';

const violations = createRules();

function build(targets: readonly InboundTarget[], traits: Partial<Traits> = {}, input: Partial<InboundInput> = {}) {
  const built = buildInbound({
    targets,
    traits: traitsOf(traits),
    addresses: ['10.1.1.1'],
    settings: defaultSettings,
    mtls: { mode: 'PERMISSIVE', ports: {} },
    security: noSecurity,
    ...input,
  });
  for (const { listener } of built)
    expect(violations(types.listener, protos.encode(types.listener, listener))).toEqual([]);
  return built;
}

function targetOf(
  port: number,
  protocol: Protocol,
  host: string,
  servicePort: number,
  ingress?: SidecarIngress,
): InboundTarget {
  const [name = '', namespace = ''] = host.split('.');
  return {
    port,
    protocol,
    services: [{ host, name, namespace, registry: 'Kubernetes', port: servicePort, portName: 'p' }],
    ...(ingress === undefined ? {} : { ingress }),
    origins: [],
  };
}

function truth(name: string, proxy: string): { [name: string]: Tree } {
  const path = `${import.meta.dirname}/../../../test/truth/cases/${name}/expected/${proxy}.json`;
  const { primary } = recorded(JSON.parse(readFileSync(path, 'utf8')) as { [key: string]: Tree });
  const lds = primary['lds'] as { [name: string]: { traffic_direction: string } & { [key: string]: Tree } };
  return Object.fromEntries(Object.entries(lds).filter(([, listener]) => listener.traffic_direction === 'INBOUND'));
}

function normal(built: ReturnType<typeof build>): Tree {
  return normalise({ lds: built.map(({ listener }) => printListener(listener) as Tree) }).primary['lds']!;
}

const ingressOf = (bind: string, bindToPort: boolean): SidecarIngress => ({
  bind,
  bindToPort,
  endpoint: { kind: 'originalDestination' },
});

test.each<[string, string, InboundTarget[], Partial<InboundInput>]>([
  ['inbound/http', 'a-1', [targetOf(8080, 'HTTP', 'a.http.svc.cluster.local', 80)], {}],
  ['inbound/tcp', 'a-1', [targetOf(8080, 'TCP', 'a.tcp.svc.cluster.local', 80)], {}],
  [
    'inbound/grpc',
    'a-1',
    [
      targetOf(8080, 'GRPC', 'a.grpc.svc.cluster.local', 80),
      targetOf(8081, 'GRPCWeb', 'a.grpc.svc.cluster.local', 81),
      targetOf(8082, 'HTTP2', 'a.grpc.svc.cluster.local', 82),
    ],
    {},
  ],
  [
    'mtls/namespace-permissive',
    'a-1',
    [
      targetOf(8080, 'HTTP', 'a.namespace-permissive.svc.cluster.local', 80),
      targetOf(8081, 'TCP', 'a.namespace-permissive.svc.cluster.local', 81),
      targetOf(8082, 'Unsupported', 'a.namespace-permissive.svc.cluster.local', 82),
    ],
    {},
  ],
  [
    'mtls/namespace-disable',
    'a-1',
    [
      targetOf(8080, 'HTTP', 'a.namespace-disable.svc.cluster.local', 80),
      targetOf(8081, 'TCP', 'a.namespace-disable.svc.cluster.local', 81),
      targetOf(8082, 'Unsupported', 'a.namespace-disable.svc.cluster.local', 82),
    ],
    // A proxy without certificates gets what one gets for which mutual TLS is off.
    { traits: traitsOf({ agent: false }) },
  ],
  [
    'mtls/port-level',
    'a-1',
    [
      targetOf(8080, 'HTTP', 'a.port-level.svc.cluster.local', 80),
      targetOf(8081, 'TCP', 'a.port-level.svc.cluster.local', 81),
    ],
    { mtls: { mode: 'PERMISSIVE', ports: { 8080: 'DISABLE', 9999: 'STRICT' } } },
  ],
  ['mtls/port-level', 'client', [], { mtls: { mode: 'STRICT', ports: {} } }],
  [
    'sidecar/ingress-unix-and-bind',
    'a-1',
    [
      targetOf(8080, 'HTTP', 's.ingress-unix-and-bind', 8080, ingressOf('', false)),
      targetOf(8081, 'HTTP', 's.ingress-unix-and-bind', 8081, ingressOf('10.1.1.1', true)),
    ],
    {},
  ],
  [
    'ipv6/sidecar-ingress',
    'a-1',
    [
      targetOf(8080, 'HTTP', 's.sidecar-ingress', 8080, ingressOf('', false)),
      targetOf(8081, 'HTTP', 's.sidecar-ingress', 8081, ingressOf('', false)),
    ],
    { traits: traitsOf({ ipFamily: 'v6' }), addresses: ['fd00:1::1'] },
  ],
])('%s: the inbound listeners of %s are what was recorded', (name, proxy, targets, input) => {
  expect(normal(build(targets, {}, input))).toEqual(truth(name, proxy));
});

test('where nothing is redirected only ingress listeners are there, and they bind', () => {
  const targets = [targetOf(8080, 'HTTP', 's.ns', 8080, ingressOf('', false))];
  const built = build(targets, { interception: 'NONE' });
  expect(built.map(({ listener, clusters }) => [listener.name, clusters])).toEqual([
    ['10.1.1.1_8080', ['inbound|8080||']],
  ]);
  expect(build([], { interception: 'NONE' })).toEqual([]);
});

test('with TPROXY the listener is transparent and keeps the address of the client', () => {
  const [built] = build([], { interception: 'TPROXY', inboundExactBalance: true });
  expect(built!.listener).toMatchObject({
    transparent: { value: true },
    connectionBalanceConfig: { exactBalance: {} },
  });
  expect(built!.listener.listenerFilters!.map(({ name }) => name)).toEqual([
    'envoy.filters.listener.original_dst',
    'envoy.filters.listener.original_src',
    'envoy.filters.listener.tls_inspector',
    'envoy.filters.listener.http_inspector',
  ]);
});

test("a port that is not known, or is the proxy's own, has no chains", () => {
  const names = (traits: Partial<Traits>, ...ports: number[]) =>
    build(
      ports.map((port) => targetOf(port, 'TCP', 'a.ns.svc.cluster.local', port)),
      traits,
    )[0]!.clusters.slice(2);
  expect(names({}, 0, 8080, 15001, 15006)).toEqual(['inbound|8080||']);
  expect(names({ reservedPorts: [15021] }, 15021, 8080)).toEqual(['inbound|8080||']);
});

test('the mesh config may turn all listeners off', () => {
  expect(build([], {}, { settings: { ...defaultSettings, proxyListenPort: 0 } })).toEqual([]);
});

test('ciphers, TLS version and trust domains come from the mesh config', () => {
  const settings = {
    ...defaultSettings,
    trustDomain: 'td',
    trustDomainAliases: ['old'],
    minTlsVersion: 'TLSV1_3' as const,
    meshCipherSuites: ['C'],
  };
  const json = JSON.stringify(printListener(build([], {}, { settings })[0]!.listener));
  expect(json).toContain('"matchSubjectAltNames":[{"prefix":"spiffe://td/"},{"prefix":"spiffe://old/"}]');
  expect(json).toContain('"tlsMinimumProtocolVersion":"TLSv1_3"');
  expect(json).toContain('"cipherSuites":["C"]');
});

test('certificates of the proxy may come from its files', () => {
  const files = { chain: '/c', key: '/k', root: '/r' };
  const json = JSON.stringify(printListener(build([], { serverCertificate: files })[0]!.listener));
  expect(json).toContain('"tlsCertificateSdsSecretConfigs":[{"name":"file-cert:/c~/k"');
  expect(json).toContain('"validationContextSdsSecretConfig":{"name":"file-root:/r"');
});
