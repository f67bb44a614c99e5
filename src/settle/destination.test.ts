import { expect, test } from 'vitest';
import type { Client } from '../model/client.ts';
import { someEndpoints } from '../envoy/testing/listeners.ts';
import { resolveDestination, resolveForConnections } from './destination.ts';
import type { MeshService } from '../model/service.ts';
import type { DestinationRuleModel } from '../model/traffic-policy.ts';

function service(host: string, settings: Partial<MeshService> = {}): MeshService {
  const ports = [{ name: 'http', number: 80, protocol: 'HTTP' as const }];
  return { host, resolution: 'ClientSideLB', ports, ...settings } as MeshService;
}
const port = (number: number, protocol: 'HTTP' | 'UDP' = 'HTTP') => ({ name: 'p', number, protocol });

const services = [
  service('a'),
  service('two', { ports: [port(80), port(81)] }),
  service('other', { ports: [port(8000)] }),
  service('asleep', { resolution: 'DNSRoundRobinLB' }),
  service('udp', { ports: [port(80, 'UDP')] }),
  service('alias', { resolution: 'Alias', externalName: 'a' }),
  service('outside', { resolution: 'Alias', externalName: 'www.example.com' }),
  service('dynamic', { resolution: 'DynamicDNS' }),
];
const leadsTo = new Map([['alias', services[0]!]]);
const hash = (name: string) => ({ loadBalancer: { consistentHash: { key: { kind: 'header' as const, name } } } });
const rule = {
  policy: hash('top'),
  portPolicies: { 80: hash('port') },
  subsets: [{ name: 'v1', labels: {}, policy: {}, portPolicies: {} }],
} as unknown as DestinationRuleModel;

function resolve(
  host: string,
  options: { subset?: string; port?: number; listener?: number; router?: boolean } = {},
  by = resolveDestination,
) {
  const client = { namespace: 'n', traits: { proxyType: options.router ? 'router' : 'sidecar' } } as Client;
  const named = services.find((s) => s.host === host);
  const service = named?.resolution === 'Alias' ? leadsTo.get(host) : named;
  return by(
    { host, subset: options.subset ?? '', ...(options.port === undefined ? {} : { port: options.port }) },
    options.listener ?? 80,
    client,
    { named, service, rule, endpoints: someEndpoints },
  );
}

test.each([
  ['the port of the listener', 'a', {}, 'outbound|80||a'],
  ['a port of its own', 'two', { port: 81 }, 'outbound|81||two'],
  ['a subset', 'a', { subset: 'v1' }, 'outbound|80|v1|a'],
  ['the only port, for routers', 'other', { router: true }, 'outbound|8000||other'],
  ['the only port, at a listener for all ports', 'other', { listener: 0 }, 'outbound|8000||other'],
  ['the target of an alias', 'alias', {}, 'outbound|80||a'],
])('a destination is found by %s', (_, host, options, cluster) => {
  expect(resolve(host, options)).toMatchObject({ kind: 'cluster', cluster });
});

test.each([
  ['an unknown host', 'nowhere', {}, 'host', 'outbound|80||nowhere'],
  ['a port that the service does not have', 'a', { port: 81 }, 'port', 'outbound|81||a'],
  ['another port than the listener, for sidecars', 'other', {}, 'port', 'outbound|80||other'],
  ['a UDP port', 'udp', {}, 'port', 'outbound|80||udp'],
  ['one of several ports at a listener for all', 'two', { listener: 0 }, 'port', 'outbound|0||two'],
  ['an unknown subset', 'a', { subset: 'v2' }, 'subset', 'outbound|80|v2|a'],
  ['a subset of a dynamic host', 'dynamic', { subset: 'v1' }, 'subset', 'outbound|80|v1|dynamic'],
  ['a cluster that is left out', 'asleep', {}, 'endpoints', 'outbound|80||asleep'],
  ['an alias of a host outside', 'outside', {}, 'host', 'outbound|80||www.example.com'],
])('%s is missing', (_, host, options, what, cluster) => {
  expect(resolve(host, options)).toEqual({ kind: 'missing', what, cluster });
});

test('for connections, the only port of a destination counts, whatever port the listener has', () => {
  expect(resolve('other', { listener: 90 }, resolveForConnections)).toMatchObject({ cluster: 'outbound|8000||other' });
  expect(resolve('two', { listener: 81 }, resolveForConnections)).toMatchObject({ cluster: 'outbound|81||two' });
  expect(resolve('two', { listener: 90 }, resolveForConnections)).toMatchObject({ what: 'port' });
  expect(resolve('two', { port: 80, listener: 90 }, resolveForConnections)).toMatchObject({ port: 80 });
});

test('the hash of a port counts only for destinations that name the port', () => {
  expect(resolve('a')).toMatchObject({ hash: { name: 'top' } });
  expect(resolve('a', { port: 80 })).toMatchObject({ hash: { name: 'port' } });
});
