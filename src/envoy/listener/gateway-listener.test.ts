import { expect, test } from 'vitest';
import { createRules } from '../../../test/protos/validate-rules.ts';
import { type ObjectRef, distinctRefs } from '../../api/object.ts';
import type { Problem } from '../../api/problem.ts';
import type { ListenerSettings } from '../../model/mesh-config.ts';
import type { ServerTls } from '../../model/gateway.ts';
import type { Traits } from '../../model/traits.ts';
import { reconcileGateway } from '../../reconcilers/gateway/gateway.ts';
import { mergeServers } from '../../settle/gateway-merge.ts';
import { reconcileVirtualService } from '../../reconcilers/virtual-service/virtual-service.ts';
import { downstreamTls } from '../tls/downstream.ts';
import { settleGatewayListener } from '../../settle/gateway-chains.ts';
import { routesOfServer } from '../../settle/gateway-forward.ts';
import { noSecurity } from '../security/authorization.ts';
import { buildGatewayListener } from './gateway-listener.ts';
import type { Listener } from '../gen/types.gen.ts';
import { types } from '../encode/proto-types.ts';
import { type Lookup, defaultSettings, lookupAll, protos, targetsBy, traitsOf } from '../testing/listeners.ts';

const metadata = (name: string) => ({ name, namespace: 'edge' });
const apiVersion = 'networking.istio.io/v1';
const checkRules = createRules();

const lookup: Lookup = (destination, listenerPort) =>
  destination.host.startsWith('nowhere')
    ? { kind: 'missing', what: 'host', cluster: `outbound|${listenerPort}||${destination.host}` }
    : lookupAll(destination, listenerPort);

interface Built {
  readonly listener: Listener | undefined;
  readonly clusters: readonly string[];
  readonly problems: readonly Problem[];
  readonly origins: readonly ObjectRef[];
}

interface Options {
  readonly traits?: Partial<Traits>;
  readonly settings?: Partial<ListenerSettings>;
}

/** The listener of a Gateway `g` with these servers, and of VirtualServices `v0`, `v1`, ... */
function build(servers: readonly object[], specs: readonly object[] = [], options: Options = {}): Built {
  const traits = traitsOf({ proxyType: 'router', ...options.traits });
  const gateways = reconcileGateway(
    { apiVersion, kind: 'Gateway', metadata: metadata('g'), spec: { servers } },
    { source: 'test' },
  ).models;
  const virtualServices = specs.flatMap((spec, i) => {
    const object = {
      apiVersion,
      kind: 'VirtualService',
      metadata: metadata(`v${i}`),
      spec: { gateways: ['g'], ...spec },
    };
    return reconcileVirtualService(object, {
      source: 'test',
      domainSuffix: 'x',
      rootNamespace: 'istio-system',
      defaultExportTo: ['*'],
    }).models;
  });
  const { listeners } = mergeServers({
    gateways,
    targetPort: (port) => port,
    traits,
    namespace: 'edge',
    rootNamespace: 'istio-system',
    crossNamespaceFiles: false,
    credential: () => ({ problem: 'There is none' }),
  });
  const settings = { ...defaultSettings, ...options.settings };
  const { listener, problems } = settleGatewayListener(listeners[0]!, {
    traits,
    settings,
    forwards: new Map(
      listeners[0]!.servers.map((bound) => {
        const routes = routesOfServer(bound, virtualServices);
        const destinations = routes.flatMap(({ route }) => route.destinations);
        return [bound, { routes, targets: targetsBy(lookup, destinations, bound.server.port.number) }];
      }),
    ),
  });
  if (listener.chains.length === 0) return { listener: undefined, clusters: [], origins: [], problems };
  const built = buildGatewayListener({ listener, traits, settings, security: noSecurity });
  expect(checkRules(types.listener, protos.encode(types.listener, built.listener))).toEqual([]);
  return { ...built, origins: distinctRefs(listener.chains.flatMap((chain) => chain.origins)), problems };
}

interface Json {
  readonly [name: string]: Json;
}

function jsonOf({ listener }: Built): Json {
  return protos.toJson(types.listener, protos.encode(types.listener, listener!)) as unknown as Json;
}

/** Server names and what is behind them, for each chain. */
function chains(built: Built): unknown[] {
  return (jsonOf(built)['filterChains'] as unknown as Json[]).map((chain) => {
    const filter = (chain['filters'] as unknown as Json[])[0]!['typedConfig']!;
    return [
      chain['filterChainMatch']?.['serverNames'] ?? 'any',
      filter['rds']?.['routeConfigName'] ?? filter['cluster'] ?? filter['weightedClusters']?.['clusters'],
    ];
  });
}

const contextOf = (built: Built): Json =>
  (jsonOf(built)['filterChains'] as unknown as Json[])[0]!['transportSocket']!['typedConfig']!;

const server = (protocol: string, tls?: object, hosts = ['*'], name = 'p') => ({
  port: { number: 443, name, protocol },
  hosts,
  ...(tls === undefined ? {} : { tls }),
});
const files = { mode: 'SIMPLE', serverCertificate: '/c', privateKey: '/k' };
const tcp = (host: string) => ({ hosts: ['*'], tcp: [{ route: [{ destination: { host } }] }] });

test('one connection manager serves all HTTP servers of a port', () => {
  const built = build([server('HTTP'), server('HTTP', undefined, ['a.com'], 'q')]);
  expect(chains(built)).toEqual([['any', 'http.443']]);
  expect(jsonOf(built)).toMatchObject({
    name: '0.0.0.0_443',
    trafficDirection: 'OUTBOUND',
    maxConnectionsToAcceptPerSocketEvent: 1,
  });
  expect(jsonOf(built)['listenerFilters']).toBeUndefined();
});

test('HTTPS servers are told apart by server name, in lower case', () => {
  const built = build([server('HTTPS', files, ['B.com', 'ns/*.a.com']), server('HTTPS', files, ['*', 'c.com'], 'q')]);
  expect(chains(built)).toEqual([
    [['*.a.com', 'b.com'], 'https.443.p.g.edge'],
    ['any', 'https.443.q.g.edge'],
  ]);
  expect(jsonOf(built)['listenerFilters']).toHaveLength(1);
});

test('the name of an HTTPS server is the prefix of its statistics', () => {
  const statPrefix = (servers: readonly object[]): unknown => {
    const [chain] = jsonOf(build(servers))['filterChains'] as unknown as Json[];
    return (chain!['filters'] as unknown as Json[])[0]!['typedConfig']!['statPrefix'];
  };
  expect(statPrefix([{ ...server('HTTPS', files), name: 'front' }])).toBe('front');
  expect(statPrefix([{ ...server('HTTP'), name: 'front' }])).toBe('outbound_0.0.0.0_443;');
});

test('a TCP server goes where the first route says that holds', () => {
  const other = {
    hosts: ['*'],
    tcp: [{ match: [{ port: 444 }, { gateways: ['other'] }], route: tcp('a').tcp[0]!.route }],
  };
  const built = build([server('TCP')], [other, tcp('b.x'), tcp('c.x')]);
  expect(chains(built)).toEqual([['any', 'outbound|443||b.x']]);
  expect(built.clusters).toEqual(['outbound|443||b.x']);
  expect(built.origins.map(({ kind, name }) => `${kind}/${name}`)).toEqual(['Gateway/g', 'VirtualService/v1']);
});

test('a TCP server is only for VirtualServices with a host that it accepts', () => {
  const servers = [server('TCP', undefined, ['other/*', 'a.com'])];
  expect(build(servers, [tcp('b.x')]).listener).toBeDefined();
  expect(build(servers, [{ ...tcp('b.x'), hosts: ['b.com'] }]).listener).toBeUndefined();
});

test('a destination that does not exist goes nowhere, and its owner hears of it', () => {
  const built = build([server('TCP')], [tcp('nowhere.x')]);
  expect(chains(built)).toEqual([['any', 'BlackHoleCluster']]);
  expect(built.problems).toMatchObject([{ field: 'spec.tcp[0].route[0].destination.host', reason: 'RefNotFound' }]);
});

test('TLS that ends here carries connections too', () => {
  const built = build([server('TLS', files, ['a.com'])], [tcp('b.x')]);
  expect(chains(built)).toEqual([[['a.com'], 'outbound|443||b.x']]);
});

const tls = (...matches: string[][]) => ({
  hosts: ['*'],
  tls: matches.map((sniHosts, i) => ({ match: [{ sniHosts }], route: [{ destination: { host: `t${i}.x` } }] })),
});

test('TLS that passes through is forwarded by server name', () => {
  const built = build([server('TLS', { mode: 'PASSTHROUGH' })], [tls(['b.com', '*.a.com'], ['*'])]);
  expect(chains(built)).toEqual([
    [['*.a.com', 'b.com'], 'outbound|443||t0.x'],
    ['any', 'outbound|443||t1.x'],
  ]);
});

test('a server name has one chain, whichever server it belongs to', () => {
  const built = build(
    [server('HTTPS', files, ['a.com']), server('TLS', { mode: 'PASSTHROUGH' }, ['*.com'], 'q')],
    [{ ...tls(['b.com'], ['c.com', 'A.com'], ['d.com']), hosts: ['*.com'] }],
  );
  expect(chains(built)).toEqual([
    [['a.com'], 'https.443.p.g.edge'],
    [['b.com'], 'outbound|443||t0.x'],
    [['d.com'], 'outbound|443||t2.x'],
  ]);
  expect(built.problems).toMatchObject([
    { object: { name: 'v0' }, field: 'spec.tls[1].match[0].sniHosts', reason: 'Conflicted' },
  ]);
});

test('files are secrets of their own where there is no agent', () => {
  const mutual = { ...files, mode: 'MUTUAL', caCertificates: '/ca', subjectAltNames: ['x'] };
  expect(contextOf(build([server('HTTPS', mutual)], [], { traits: { agent: false } }))).toMatchObject({
    requireClientCertificate: true,
    commonTlsContext: {
      alpnProtocols: ['h2', 'http/1.1'],
      tlsCertificateSdsSecretConfigs: [{ name: 'file-cert:/c~/k', sdsConfig: { ads: {} } }],
      combinedValidationContext: {
        defaultValidationContext: { matchSubjectAltNames: [{ exact: 'x' }] },
        validationContextSdsSecretConfig: { name: 'file-root:/ca', sdsConfig: { ads: {} } },
      },
    },
  });
});

test('clients of an optional certificate are checked when they show one', () => {
  const tls: ServerTls = {
    mode: 'OPTIONAL_MUTUAL',
    certificates: { kind: 'credentials', names: ['one', 'sds://two'], roots: 'roots' },
    subjectAltNames: [],
    verifyCertificateSpki: [],
    verifyCertificateHash: ['0a'.repeat(32)],
    caCrl: '',
    insecureSkipVerify: true,
    cipherSuites: [],
    ecdhCurves: [],
    alpnProtocols: [],
  };
  const socket = downstreamTls({ tls, traits: traitsOf({}), settings: defaultSettings })!;
  expect(
    protos.toJson(types.downstreamTls, protos.encode(types.downstreamTls, socket.typedConfig!.value!)),
  ).toMatchObject({
    requireClientCertificate: false,
    commonTlsContext: {
      tlsCertificateSdsSecretConfigs: [{ name: 'kubernetes://one' }, { name: 'kubernetes://two' }],
      combinedValidationContext: {
        defaultValidationContext: { trustChainVerification: 'ACCEPT_UNTRUSTED' },
        validationContextSdsSecretConfig: { name: 'kubernetes://roots-cacert' },
      },
    },
  });
});

test('a server whose certificate is a Secret is left out, and leaves its port to others', () => {
  const secret = server('HTTPS', { mode: 'SIMPLE', credentialName: 'one' }, ['a.com']);
  const { listener } = build([secret, server('HTTPS', files, ['b.com'], 'q')]);
  expect(listener?.filterChains?.map(({ filterChainMatch }) => filterChainMatch?.serverNames)).toEqual([['b.com']]);
});

test('the settings of a server win over those of the mesh', () => {
  const settings = {
    tlsDefaults: { cipherSuites: ['AES128-SHA'], ecdhCurves: ['P-256'], minProtocolVersion: 'TLSV1_3' },
  } as const;
  const tls = { ...files, minProtocolVersion: 'TLSV1_2', cipherSuites: ['AES256-SHA'] };
  const contextWith = (own: object) =>
    contextOf(build([server('HTTPS', { ...tls, ...own })], [], { settings }))['commonTlsContext'];
  expect(contextWith({})).toMatchObject({
    alpnProtocols: ['h2', 'http/1.1'],
    tlsParams: { tlsMinimumProtocolVersion: 'TLSv1_2', cipherSuites: ['AES256-SHA'], ecdhCurves: ['P-256'] },
  });
  expect(contextWith({ ecdhCurves: ['X25519'], alpnProtocols: ['http/1.1'] })).toMatchObject({
    alpnProtocols: ['http/1.1'],
    tlsParams: { ecdhCurves: ['X25519'] },
  });
});

test('without certificates of the mesh a server that needs them is left out, and its owner hears of it', () => {
  const servers = [server('HTTPS', { mode: 'ISTIO_MUTUAL' }, ['a.com'])];
  expect(build(servers).listener).toBeDefined();
  const { listener, problems } = build(servers, [], { traits: { agent: false } });
  expect(listener).toBeUndefined();
  expect(problems).toMatchObject([{ field: 'spec.servers[0].tls.mode', reason: 'Ineffective' }]);
});

test('a unix socket is a pipe', () => {
  const built = build([{ ...server('HTTP'), bind: 'unix:///tmp/x', port: { number: 0, name: 'p', protocol: 'HTTP' } }]);
  expect(jsonOf(built)).toMatchObject({ name: 'unix:///tmp/x_0', address: { pipe: { path: '/tmp/x' } } });
});

test('a listener logs connections that no chain takes', () => {
  const built = build([server('HTTP')], [], { settings: { accessLogFile: '/dev/stdout', listenerAccessLog: true } });
  expect(jsonOf(built)['accessLog']).toMatchObject([{ filter: { responseFlagFilter: { flags: ['NR'] } } }]);
});
