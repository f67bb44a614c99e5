import { expect, test } from 'vitest';
import type { ConnectionRoutes } from '../model/l4-routes.ts';
import type { Endpoint } from '../model/endpoint.ts';
import type { Client } from '../model/client.ts';
import type { L4Chain } from '../model/listener.ts';
import type { MeshService } from '../model/service.ts';
import { reconcileDestinationRule } from '../reconcilers/destination-rule/destination-rule.ts';
import { reconcileVirtualService } from '../reconcilers/virtual-service/virtual-service.ts';
import { type ChainInput, l4Chains, l4Destinations } from './outbound-chains.ts';
import {
  clientOf,
  defaultSettings,
  entryOf,
  type Lookup,
  lookupAll,
  port,
  serviceOf,
  someEndpoints,
  targetsBy,
} from '../envoy/testing/listeners.ts';

const tcp = serviceOf('a', [port(9000, 'TCP')]);
const tls = entryOf('x.com', [port(443, 'TLS')]);

function virtualService(spec: object, metadata: object = {}): ConnectionRoutes {
  const { models, problems } = reconcileVirtualService(
    {
      apiVersion: 'networking.istio.io/v1',
      kind: 'VirtualService',
      metadata: { name: 'v', namespace: 'shop', ...metadata },
      spec: { hosts: ['a', 'x.com'], ...spec },
    },
    { source: 'test', domainSuffix: 'cluster.local', rootNamespace: 'istio-system', defaultExportTo: ['*'] },
  );
  // Routes behind one that takes everything are remarked on, and are what some of these tests are about.
  expect(problems.filter(({ reason }) => reason !== 'Ineffective')).toEqual([]);
  return models[0]!;
}

const to = (host: string, more: object = {}) => ({ destination: { host, ...more } });

function chains(
  service: MeshService,
  routes: readonly ConnectionRoutes[],
  { lookup = lookupAll, ...input }: Partial<ChainInput> & { readonly lookup?: Lookup } = {},
): readonly L4Chain[] {
  const { port: heard = service.ports[0]! } = input;
  return l4Chains({
    service,
    port: heard,
    client: clientOf(),
    summary: someEndpoints,
    routes,
    targets: targetsBy(lookup, l4Destinations(heard, routes), heard.number),
    settings: defaultSettings,
    subnets: [],
    shared: false,
    ...input,
  });
}

/** `names subnets -> cluster weight, ...` */
const print = ({ serverNames, subnets, target }: L4Chain): string =>
  `${[...serverNames, ...subnets].join(' ')} -> ${target.clusters
    .map(({ name, weight }) => (target.weighted ? `${name} ${weight}` : name))
    .join(', ')}`.trim();

const own = '-> outbound|9000||a.shop.svc.cluster.local';

test.each<[string, object[], string[]]>([
  ['without routes', [], [own]],
  [
    'a route without match takes everything',
    [{ route: [to('b.com')] }, { route: [to('c.com')] }],
    ['-> outbound|9000||b.com'],
  ],
  [
    'destination subnets go before what is left',
    [{ match: [{ destinationSubnets: ['10.0.0.0/8'] }], route: [to('b.com')] }],
    ['10.0.0.0/8 -> outbound|9000||b.com', own],
  ],
  [
    'another port, namespace or gateway does not match',
    [
      { match: [{ port: 1 }], route: [to('b.com')] },
      { match: [{ sourceNamespace: 'other' }], route: [to('b.com')] },
      { match: [{ gateways: ['g'] }], route: [to('b.com')] },
      { match: [{ sourceLabels: { app: 'other' } }], route: [to('b.com')] },
    ],
    [own],
  ],
  [
    'what is known to match takes everything',
    [{ match: [{ port: 9000, sourceNamespace: 'shop', sourceLabels: { app: 'client' } }], route: [to('b.com')] }],
    ['-> outbound|9000||b.com'],
  ],
  [
    'weights, without those of 0',
    [
      {
        route: [
          { ...to('b.com'), weight: 80 },
          { ...to('c.com'), weight: 20 },
          { ...to('d.com'), weight: 0 },
        ],
      },
    ],
    ['-> outbound|9000||b.com 80, outbound|9000||c.com 20'],
  ],
  [
    'the weight of a single destination is ignored',
    [{ route: [{ ...to('b.com', { subset: 'v1', port: { number: 7 } }), weight: 0 }] }],
    ['-> outbound|7|v1|b.com'],
  ],
])('tcp routes: %s', (_, routes, expected) => {
  const client: Client = clientOf({}, { matched: ['app=client'] });
  expect(chains(tcp, routes.length === 0 ? [] : [virtualService({ tcp: routes })], { client }).map(print)).toEqual(
    expected,
  );
});

test('the oldest VirtualService counts, private ones before public ones', () => {
  const young = virtualService({ tcp: [{ route: [to('young.com')] }] }, { creationTimestamp: '2026-01-02T00:00:00Z' });
  const old = virtualService({ tcp: [{ route: [to('old.com')] }] }, { creationTimestamp: '2026-01-01T00:00:00Z' });
  const mine = virtualService(
    { tcp: [{ route: [to('mine.com')] }], exportTo: ['.'] },
    { creationTimestamp: '2026-01-03T00:00:00Z' },
  );
  expect(chains(tcp, [young, old]).map(print)).toEqual(['-> outbound|9000||old.com']);
  expect(chains(tcp, [young, old, mine]).map(print)).toEqual(['-> outbound|9000||mine.com']);
});

test('a missing destination is a black hole that keeps its weight', () => {
  const lookup: Lookup = (destination, listenerPort) =>
    destination.host === 'no.com'
      ? { kind: 'missing', what: 'host', cluster: 'x' }
      : lookupAll(destination, listenerPort);
  const one = virtualService({ tcp: [{ route: [to('no.com')] }] });
  const two = virtualService({
    tcp: [
      {
        route: [
          { ...to('no.com'), weight: 90 },
          { ...to('b.com'), weight: 10 },
        ],
      },
    ],
  });
  expect(chains(tcp, [one], { lookup }).map(print)).toEqual(['-> BlackHoleCluster']);
  expect(chains(tcp, [two], { lookup }).map(print)).toEqual(['-> BlackHoleCluster 90, outbound|9000||b.com 10']);
});

test.each<[string, object[], Partial<ChainInput>, string[]]>([
  ['the server name tells services without address apart', [], { shared: true }, ['x.com -> outbound|443||x.com']],
  ['an address of its own is enough', [], {}, ['-> outbound|443||x.com']],
  [
    'ranges are matched beside the name',
    [],
    { shared: true, subnets: ['10.0.0.0/8'] },
    ['x.com 10.0.0.0/8 -> outbound|443||x.com'],
  ],
  [
    'routes by server name replace the service',
    [
      { match: [{ sniHosts: ['x.com'], destinationSubnets: ['10.0.0.0/8'] }], route: [to('b.com')] },
      { match: [{ sniHosts: ['x.com'] }, { port: 1, sniHosts: ['a.shop.svc.cluster.local'] }], route: [to('c.com')] },
      { match: [{ sniHosts: ['x.com'] }], route: [to('never.com')] },
    ],
    { shared: true },
    // The ranges of a match count for those behind it, as in Istio.
    ['x.com 10.0.0.0/8 -> outbound|443||b.com', 'x.com 10.0.0.0/8 -> outbound|443||c.com'],
  ],
])('tls routes: %s', (_, routes, input, expected) => {
  const candidates = routes.length === 0 ? [] : [virtualService({ tls: routes })];
  expect(chains(tls, candidates, input).map(print)).toEqual(expected);
});

test('the names of an alias are server names too', () => {
  const service = {
    ...tls,
    aliases: [{ host: 'short.shop.svc.cluster.local', exportTo: ['*'], namespace: 'shop', origins: [] }],
  };
  expect(chains(service, [], { shared: true })[0]!.serverNames).toEqual([
    'x.com',
    'short.shop.svc.cluster.local',
    'short',
    'short.shop.svc',
    'short.shop',
  ]);
});

test('a DNS service without anything to look up has no cluster to lead to', () => {
  const dns = entryOf('x.com', [port(9000, 'TCP')], { resolution: 'DNSLB' });
  const dnsEndpoints = [{ portName: 'p', labels: {} } as Endpoint];
  expect(chains(dns, [], { summary: { ...someEndpoints, dnsEndpoints } }).map(print)).toEqual([
    '-> outbound|9000||x.com',
  ]);
  expect(chains(dns, []).map(print)).toEqual(['-> BlackHoleCluster']);
});

function rule(spec: object) {
  const { rules } = reconcileDestinationRule(
    {
      apiVersion: 'networking.istio.io/v1',
      kind: 'DestinationRule',
      metadata: { name: 'd', namespace: 'shop' },
      spec: { host: 'a', ...spec },
    },
    { source: 'test', domainSuffix: 'cluster.local', defaultExportTo: ['*'] },
  );
  return rules[0]!;
}

test('a rule sets times, hashing and a tunnel; settings of ports do not count', () => {
  const { target } = chains(tcp, [], {
    rule: rule({
      trafficPolicy: {
        connectionPool: { tcp: { idleTimeout: '11s', maxConnectionDuration: '22s' } },
        loadBalancer: { consistentHash: { useSourceIp: true } },
        tunnel: { protocol: 'POST', targetHost: 'far.com', targetPort: 443 },
        portLevelSettings: [{ port: { number: 9000 }, connectionPool: { tcp: { idleTimeout: '99s' } } }],
      },
    }),
  })[0]!;
  expect(target).toMatchObject({
    idleTimeout: 11_000,
    maxConnectionDuration: 22_000,
    hashSourceIp: true,
    tunnel: { hostname: 'far.com:443', usePost: true },
  });
});

test('a subset has its own hashing and tunnel, and the times of the rule', () => {
  const d = rule({
    trafficPolicy: {
      connectionPool: { tcp: { idleTimeout: '11s' } },
      loadBalancer: { consistentHash: { useSourceIp: true } },
      tunnel: { protocol: 'CONNECT', targetHost: 'far.com', targetPort: 443 },
    },
    subsets: [{ name: 'v1', labels: { v: '1' }, trafficPolicy: { loadBalancer: { simple: 'RANDOM' } } }],
  });
  const lookup: Lookup = (destination, listenerPort) => ({
    ...lookupAll(destination, listenerPort),
    rule: d,
  });
  const route = virtualService({ tcp: [{ route: [to('b.com', { subset: 'v1' })] }] });
  const { target } = chains(tcp, [route], { lookup })[0]!;
  expect(target).toMatchObject({ idleTimeout: 11_000, hashSourceIp: false });
  expect(target.tunnel).toBeUndefined();
});

test('statistics are named by the cluster, the VirtualService, or the pattern of the mesh', () => {
  const weighted = virtualService({
    tcp: [
      {
        route: [
          { ...to('b.com'), weight: 1 },
          { ...to('c.com'), weight: 1 },
        ],
      },
    ],
  });
  expect(chains(tcp, [])[0]!.target.statPrefix).toBe('outbound|9000||a.shop.svc.cluster.local');
  expect(chains(tcp, [weighted])[0]!.target.statPrefix).toBe('v.shop');
  const settings = { ...defaultSettings, outboundClusterStatName: '%SERVICE%_%SERVICE_PORT%_%SERVICE_PORT_NAME%' };
  expect(chains(tcp, [], { settings })[0]!.target.statPrefix).toBe('a.shop_9000_');
});
