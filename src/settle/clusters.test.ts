import { describe, expect, test } from 'vitest';
import { endpointOf, ruleOf, settingsOf, summaryOf } from '../envoy/testing/clusters.ts';
import { entryOf, port, serviceOf, traitsOf } from '../envoy/testing/listeners.ts';
import type { OutboundCluster, SettledCluster } from '../model/cluster.ts';
import { type ClustersInput, settleClusters } from './clusters.ts';

function settle(given: Partial<ClustersInput> = {}): readonly SettledCluster[] {
  const service = given.service ?? serviceOf('a', [port(80, 'HTTP')]);
  return settleClusters({
    service,
    port: service.ports[0]!,
    traits: traitsOf({ agent: true }),
    settings: settingsOf(),
    summary: summaryOf({ identities: ['spiffe://cluster.local/ns/shop/sa/a'] }),
    peersAcceptMtls: true,
    ...given,
  });
}

function outbound(given: Partial<ClustersInput> = {}): OutboundCluster {
  const [cluster] = settle(given);
  if (cluster?.family !== 'envoy') throw new Error('there is no such cluster');
  return cluster;
}

const tls = (mode: string) => ruleOf({ trafficPolicy: { tls: { mode } } });
const passthrough = ruleOf({ trafficPolicy: { loadBalancer: { simple: 'PASSTHROUGH' } } });

describe('connections use mutual TLS', () => {
  const mesh = { kind: 'mesh', sni: 'outbound_.80_._.a.shop.svc.cluster.local' };
  test.each<[string, Partial<ClustersInput>, object]>([
    ['to endpoints that are marked for it', {}, { ...mesh, toMarked: true }],
    ['to all of them, if the rule says so', { rule: tls('ISTIO_MUTUAL') }, { ...mesh, toMarked: false }],
    ['to all of them, if the client chooses one', { rule: passthrough }, { ...mesh, toMarked: false }],
  ])('%s', (_, given, expected) => {
    expect(outbound(given).sockets).toMatchObject(expected);
  });

  test.each<[string, Partial<ClustersInput>]>([
    ['the rule turns it off', { rule: tls('DISABLE') }],
    ['the mesh has none', { settings: settingsOf('enableAutoMtls: false') }],
    ['clients have no certificates', { traits: traitsOf({ agent: false }) }],
    ['no workload accepts it', { peersAcceptMtls: false }],
    [
      'the service is outside the mesh',
      { service: entryOf('x.example.com', [port(80, 'HTTP')], { meshExternal: true }) },
    ],
    ['the client may choose an endpoint that cannot', { rule: passthrough, summary: summaryOf({ plaintext: true }) }],
    ['connections are forwarded as they come', { forwards: true, rule: tls('SIMPLE') }],
  ])('unless %s', (_, given) => {
    expect(outbound(given)).toMatchObject({ sockets: { kind: 'plaintext' } });
  });
});

describe('endpoints come from', () => {
  const dns = entryOf('x.example.com', [port(80, 'HTTP')], { resolution: 'DNSLB' });
  const headless = serviceOf('a', [port(80, 'HTTP')], { resolution: 'Passthrough' });
  const dnsEndpoints = [endpointOf('x.example.com', { tlsMode: 'istio' })];
  test.each<[string, Partial<ClustersInput>, object]>([
    ['an assignment', {}, { kind: 'assignment' }],
    ['what the client chooses', { service: headless }, { kind: 'originalDestination' }],
    [
      'an assignment, for routers',
      { service: headless, traits: traitsOf({ proxyType: 'router' }) },
      { kind: 'assignment' },
    ],
    ['what the client chooses, if the rule says so', { rule: passthrough }, { kind: 'originalDestination' }],
    ['an assignment, where connections are forwarded', { rule: passthrough, forwards: true }, { kind: 'assignment' }],
    [
      'DNS',
      { service: dns, summary: summaryOf({ dnsEndpoints }) },
      { kind: 'dns', oneName: false, localities: [{ endpoints: [{ endpoint: dnsEndpoints[0], mtls: true }] }] },
    ],
  ])('%s', (_, given, expected) => {
    expect(outbound(given).discovery).toMatchObject(expected);
  });

  test('nowhere: then there is no cluster', () => {
    expect(settle({ service: dns })).toEqual([]);
  });
});

describe("for gRPC's own clients", () => {
  const traits = traitsOf({ family: 'grpc' });
  test('a cluster is in plaintext, unless the rule wants mutual TLS', () => {
    expect(settle({ traits })).toMatchObject([{ family: 'grpc', endpoints: 'assignment' }]);
    expect(settle({ traits })[0]).not.toHaveProperty('mtls');
    expect(settle({ traits, rule: tls('ISTIO_MUTUAL') })).toMatchObject([
      { endpoints: 'assignment', mtls: { names: ['spiffe://cluster.local/ns/shop/sa/a'] } },
    ]);
  });

  test('a cluster has no endpoints where they would have to speak TLS of another kind', () => {
    const [cluster] = settle({ traits, rule: tls('SIMPLE') });
    expect(cluster).toMatchObject({ endpoints: 'none' });
    expect(cluster).not.toHaveProperty('mtls');
  });
});
