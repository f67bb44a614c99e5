import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { createRules } from '../../../test/protos/validate-rules.ts';
import { type Tree, normalise, recorded } from '../../../test/truth/normalise.ts';
import type { MeshService } from '../../model/service.ts';
import { type Traits, wildcardAddress } from '../../model/traits.ts';
import { resolveClaims } from '../../settle/outbound-conflicts.ts';
import { type OutboundListenerInput, buildOutboundListener } from './outbound-listener.ts';
import { types } from '../encode/proto-types.ts';
import {
  agedClaimsOf,
  clientOf,
  defaultSettings,
  entryOf,
  port,
  printListener,
  protos,
  serviceOf,
} from '../testing/listeners.ts';
import { httpProxyListener, virtualOutbound } from './virtual-outbound.ts';

const violations = createRules();

function inputOf(traits: Partial<Traits> = {}, input: Partial<OutboundListenerInput> = {}): OutboundListenerInput {
  return { client: clientOf(traits), outboundPolicy: 'ALLOW_ANY', settings: defaultSettings, ...input };
}

function build(services: readonly MeshService[], input: OutboundListenerInput = inputOf()) {
  const client = clientOf(input.client.traits);
  const claims = agedClaimsOf(services, { client, settings: input.settings });
  const resolved = resolveClaims(claims, wildcardAddress(client.traits));
  if (resolved === undefined) throw new Error('no listener');
  const built = buildOutboundListener(resolved, input);
  expect(violations(types.listener, protos.encode(types.listener, built.listener))).toEqual([]);
  return built;
}

/** The listener of a recorded answer. */
function truth(name: string, proxy: string, listener: string): Tree {
  const path = `${import.meta.dirname}/../../../test/truth/cases/${name}/expected/${proxy}.json`;
  const document = recorded(JSON.parse(readFileSync(path, 'utf8')) as { [key: string]: Tree });
  return (document.primary['lds'] as { [name: string]: Tree })[listener]!;
}

function normal(listener: object): Tree {
  const { primary } = normalise({ lds: [listener as Tree] });
  return Object.values(primary['lds'] as { [name: string]: Tree })[0]!;
}

const oneHttp = entryOf('one.example.com', [port(9000, 'HTTP')], { createdAt: '1' });
const oneTcp = entryOf('one.example.com', [port(9000, 'TCP')], { createdAt: '1' });

test.each<[string, string, MeshService[], Partial<Traits>]>([
  [
    'conflicts/http-then-tcp',
    '0.0.0.0_9000',
    [oneHttp, entryOf('two.example.com', [port(9000, 'TCP')], { createdAt: '2' })],
    {},
  ],
  [
    'conflicts/tcp-and-auto-wildcard',
    '0.0.0.0_9000',
    [oneTcp, entryOf('two.example.com', [port(9000, 'Unsupported')], { createdAt: '2' })],
    {},
  ],
  [
    'conflicts/http-and-tls-wildcard',
    '0.0.0.0_9000',
    [oneHttp, entryOf('two.example.com', [port(9000, 'TLS')], { createdAt: '2' })],
    {},
  ],
  [
    'serviceentry/none-cidr',
    '0.0.0.0_9000',
    [entryOf('ext.example.com', [port(9000, 'TCP')], { addresses: ['192.0.2.0/24'], resolution: 'Passthrough' })],
    {},
  ],
  [
    'services/port-names-known',
    '10.96.1.1_87',
    [serviceOf('a', [port(87, 'Mongo')], { host: 'a.port-names-known.svc.cluster.local', addresses: ['10.96.1.1'] })],
    {},
  ],
  ['services/port-names-known', '0.0.0.0_83', [serviceOf('a', [port(83, 'GRPCWeb')])], {}],
  ['interception/none', '127.0.0.1_80', [serviceOf('a', [port(80, 'HTTP')])], { interception: 'NONE' }],
  [
    'interception/none',
    '127.0.0.1_9100',
    [serviceOf('a', [port(9100, 'Unsupported')], { host: 'a.none.svc.cluster.local' })],
    { interception: 'NONE' },
  ],
])('%s: %s is what was recorded', (name, listener, services, traits) => {
  expect(normal(printListener(build(services, inputOf(traits)).listener))).toEqual(truth(name, 'client', listener));
});

test('dual-stack proxies listen at both wildcards, as recorded', () => {
  const { listener } = build([serviceOf('a', [port(80, 'HTTP')])], inputOf({ ipFamily: 'dual' }));
  expect(normal(printListener(listener))).toEqual(truth('endpoints/dual-stack', 'client46', '0.0.0.0_80'));
});

test('a listener says which clusters it names', () => {
  const shared = build([oneHttp, entryOf('two.example.com', [port(9000, 'TLS')], { createdAt: '2' })]);
  expect(shared.clusters).toEqual(['PassthroughCluster', 'outbound|9000||two.example.com']);
  expect(build([oneTcp]).clusters).toEqual(['outbound|9000||one.example.com']);
});

const unknown = (input: OutboundListenerInput): string => {
  const { listener } = build([oneHttp], input);
  return JSON.stringify(printListener(listener)['defaultFilterChain']);
};

test('unknown traffic goes where the policy says', () => {
  expect(unknown(inputOf())).toContain('"cluster":"PassthroughCluster"');
  expect(unknown(inputOf({}, { egressProxy: 'outbound|1||x' }))).toContain('"cluster":"outbound|1||x"');
  expect(unknown(inputOf({}, { outboundPolicy: 'REGISTRY_ONLY' }))).toContain('"cluster":"BlackHoleCluster"');
});

test('the idle timeout of the proxy counts for requests and connections', () => {
  const http = JSON.stringify(printListener(build([oneHttp], inputOf({ idleTimeout: 1500 })).listener));
  expect(http).toContain('"commonHttpProtocolOptions":{"idleTimeout":"1.500s"}');
  expect(JSON.stringify(printListener(build([oneTcp], inputOf({ idleTimeout: 1500 })).listener))).toContain(
    '"idleTimeout":"1.500s"',
  );
});

test('HTTP/1.0 and exact balance are as the proxy wants them', () => {
  const { listener } = build([oneHttp], inputOf({ http10: true, outboundExactBalance: true }));
  expect(listener.connectionBalanceConfig).toEqual({ exactBalance: {} });
  expect(JSON.stringify(printListener(listener))).toContain('"httpProtocolOptions":{"acceptHttp10":true}');
});

test('protocol detection may have a time limit', () => {
  const settings = { ...defaultSettings, protocolDetectionTimeout: 200 };
  expect(build([oneHttp], inputOf({}, { settings })).listener.listenerFiltersTimeout).toEqual({
    seconds: 0,
    nanos: 2e8,
  });
  expect(build([oneTcp], inputOf({}, { settings })).listener.listenerFiltersTimeout).toEqual({ seconds: 0 });
});

test('access logs are written where the mesh config says', () => {
  const settings = { ...defaultSettings, accessLogFile: '/log', accessLogEncoding: 'JSON' as const };
  const json = JSON.stringify(printListener(build([oneHttp], inputOf({}, { settings })).listener));
  expect(json).toContain('"path":"/log"');
  expect(json).toContain('"response_code":"%RESPONSE_CODE%"');
  const own = { ...settings, accessLogFormat: '{"q":"%REQ_WITHOUT_QUERY(:PATH)%"}' };
  expect(JSON.stringify(printListener(build([oneHttp], inputOf({}, { settings: own })).listener))).toContain(
    '"name":"envoy.formatter.req_without_query"',
  );
});

const checked = (built: ReturnType<typeof virtualOutbound>) => {
  if (built === undefined) return undefined;
  expect(violations(types.listener, protos.encode(types.listener, built.listener))).toEqual([]);
  return built;
};

test('virtualOutbound is what was recorded', () => {
  const built = checked(virtualOutbound(inputOf()))!;
  expect(normal(printListener(built.listener))).toEqual(
    truth('services/session-affinity', 'client', 'virtualOutbound'),
  );
  expect(built.clusters).toEqual(['BlackHoleCluster', 'PassthroughCluster']);
});

test('virtualOutbound follows interception, family, ports and policy', () => {
  expect(virtualOutbound(inputOf({ interception: 'NONE' }))).toBeUndefined();
  expect(checked(virtualOutbound(inputOf({ interception: 'TPROXY' })))!.listener.transparent).toEqual({ value: true });
  const settings = { ...defaultSettings, proxyListenPort: 16001, accessLogFile: '/log' };
  const { listener } = checked(virtualOutbound(inputOf({ ipFamily: 'v6' }, { settings })))!;
  expect(listener.address).toEqual({ socketAddress: { address: '::', portValue: 16001 } });
  expect(listener.accessLog).toMatchObject([{ filter: { responseFlagFilter: { flags: ['NR'] } } }]);
  expect(virtualOutbound(inputOf({}, { settings: { ...settings, proxyListenPort: -1 } }))).toBeUndefined();
  expect(checked(virtualOutbound(inputOf({}, { outboundPolicy: 'REGISTRY_ONLY' })))!.clusters).toEqual([
    'BlackHoleCluster',
  ]);
});

test('the HTTP proxy listener is what was recorded, and its port may come from the proxy', () => {
  expect(httpProxyListener(inputOf())).toBeUndefined();
  const settings = { ...defaultSettings, proxyHttpPort: 15002 };
  const built = checked(httpProxyListener(inputOf({}, { settings })))!;
  expect(normal(printListener(built.listener))).toEqual(truth('mesh/http-proxy-port', 'client', '127.0.0.1_15002'));
  expect(httpProxyListener(inputOf({ httpProxyPort: 15007, interception: 'NONE' }, { settings }))!.listener.name).toBe(
    '127.0.0.1_15007',
  );
});
