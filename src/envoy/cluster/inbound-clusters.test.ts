import { expect, test } from 'vitest';
import type { InboundTarget, IngressEndpoint } from '../../model/inbound.ts';
import type { Traits } from '../../model/traits.ts';
import { settleInboundClusters } from '../../settle/inbound-clusters.ts';
import { buildInboundCluster } from './inbound-clusters.ts';
import { httpOptionsOf, jsonOf, settingsOf } from '../testing/clusters.ts';
import { traitsOf } from '../testing/listeners.ts';

const service = (name: string, port: number) => ({
  host: `${name}.shop.svc.cluster.local`,
  name,
  namespace: 'shop',
  registry: 'Kubernetes' as const,
  port,
  portName: 'http',
});

function targetOf(target: Partial<InboundTarget> = {}): InboundTarget {
  return { port: 8080, protocol: 'HTTP', services: [service('a', 80)], origins: [], ...target };
}

function build(target: Partial<InboundTarget> = {}, mesh = '', traits: Partial<Traits> = {}, addresses = ['10.1.1.1']) {
  const proxy = traitsOf(traits);
  const settings = settingsOf(mesh);
  return settleInboundClusters({ targets: [targetOf(target)], traits: proxy, addresses, settings }).map((settled) =>
    jsonOf(buildInboundCluster(settled, proxy, settings)),
  );
}

const toEndpoint = (endpoint: IngressEndpoint) => ({ ingress: { bind: '', bindToPort: false, endpoint } });
const addressOf = (cluster: unknown) => JSON.stringify((cluster as { loadAssignment?: object }).loadAssignment);

test('a port is reached at the address that the client asked for', () => {
  expect(build()).toMatchObject([
    {
      name: 'inbound|8080||',
      altStatName: 'inbound|8080||;',
      type: 'ORIGINAL_DST',
      lbPolicy: 'CLUSTER_PROVIDED',
      cleanupInterval: '9223372035s',
      commonLbConfig: {},
      upstreamBindConfig: { sourceAddress: { address: '127.0.0.6', portValue: 0 } },
    },
  ]);
});

test.each<[IngressEndpoint, Partial<Traits>, string, boolean]>([
  [{ kind: 'loopback', family: 'v4', port: 9 }, {}, '"127.0.0.1","portValue":9', false],
  [{ kind: 'loopback', family: 'v4', port: 9 }, { ipFamily: 'v6' }, '"::1"', false],
  [{ kind: 'loopback', family: 'v6', port: 9 }, { ipFamily: 'dual' }, '"::1"', false],
  [{ kind: 'workload', family: 'v4', port: 9 }, {}, '"10.1.1.1","portValue":9', true],
  [{ kind: 'workload', family: 'v6', port: 9 }, { ipFamily: 'dual' }, '"fd00::1"', true],
  [{ kind: 'unix', path: '/tmp/a.sock' }, {}, '"pipe":{"path":"/tmp/a.sock"}', true],
])('an ingress listener leads to %j (%j)', (endpoint, traits, address, bound) => {
  const [cluster] = build(toEndpoint(endpoint), '', traits, ['10.1.1.1', 'fd00::1']);
  expect(cluster).toMatchObject({ type: 'STATIC' });
  expect(addressOf(cluster)).toContain(address);
  expect(Object.hasOwn(cluster!, 'upstreamBindConfig')).toBe(bound);
});

test('LOCALHOST leads to the loopback address', () => {
  const [cluster] = build({}, 'inboundTrafficPolicy: {mode: LOCALHOST}');
  expect(addressOf(cluster)).toContain('"127.0.0.1","portValue":8080');
  expect(cluster).not.toHaveProperty('upstreamBindConfig');
});

test('without interception only the ports of ingress listeners are reached', () => {
  expect(build({}, '', { interception: 'NONE' })).toEqual([]);
  const endpoint = { kind: 'loopback', family: 'v4', port: 9 } as const;
  expect(build(toEndpoint(endpoint), '', { interception: 'NONE' })).toHaveLength(1);
});

test('a connection pool limits it; nothing else of a rule does', () => {
  const connectionPool = { tcp: { maxConnections: 7 }, http: { idleTimeout: 60_000, useClientProtocol: false } };
  const [cluster] = build({ connectionPool });
  expect(cluster).toMatchObject({ circuitBreakers: { thresholds: [{ maxConnections: 7, maxRetries: 4294967295 }] } });
  expect(httpOptionsOf(cluster!)).toMatchObject({ commonHttpProtocolOptions: { idleTimeout: '60s' } });
  const [byMesh] = build({}, 'defaultTrafficPolicy: {connectionPool: {tcp: {maxConnections: 9}}}');
  expect(byMesh).toMatchObject({ circuitBreakers: { thresholds: [{ maxConnections: 9 }] } });
});

test('metadata names the services that share the port of the first one', () => {
  const services = [service('a', 80), service('b', 81), service('c', 80)];
  const text = JSON.stringify(build({ services })[0]);
  expect(text).toContain('a.shop.svc.cluster.local');
  expect(text).not.toContain('b.shop.svc.cluster.local');
  expect(text).toContain('c.shop.svc.cluster.local');
});

test('statistics have the name that the mesh wants', () => {
  const [cluster] = build({}, 'inboundClusterStatName: "%SERVICE%_%SERVICE_PORT_NAME%_%TARGET_PORT%"');
  expect(cluster).toMatchObject({ altStatName: 'a.shop_http_8080;' });
});
