import { describe, expect, test } from 'vitest';
import type { MeshService } from '../model/service.ts';
import type { LoadBalancer, TrafficPolicy } from '../model/traffic-policy.ts';
import { narrowTopology } from '../model/locality.ts';
import { dnsTopologyNeeds, topologyNeeds } from './locality-plan.ts';
import { ruleOf } from '../envoy/testing/clusters.ts';
import { entryOf, port } from '../envoy/testing/listeners.ts';

const settings = { localityLb: { distribute: [], failover: [], failoverPriority: [] } };
type Preference = Pick<MeshService, 'nodeLocal' | 'trafficDistribution'>;
const plain: Preference = { nodeLocal: false };
const outlierDetection = { splitExternalLocalOriginErrors: false };
const balancer = (setting: object): LoadBalancer => ({
  localityLb: { enabled: true, distribute: [], failover: [], failoverPriority: [], ...setting },
});

describe('an assignment', () => {
  test.each<[string, TrafficPolicy, Preference, boolean]>([
    ['is the same everywhere without outlier detection', {}, plain, false],
    ['depends on the place with it', { outlierDetection }, plain, true],
    [
      'depends on the place by shares',
      { loadBalancer: balancer({ distribute: [{ from: 'a', to: {} }] }) },
      plain,
      true,
    ],
    ['does not by failover alone', { loadBalancer: balancer({ failover: [{ from: 'a', to: 'b' }] }) }, plain, false],
    ['depends on it where a Service prefers its zone', {}, { ...plain, trafficDistribution: 'same-zone' }, true],
    ['depends on the node where a Service is for its node', {}, { nodeLocal: true }, true],
  ])('%s', (_, policy, service, expected) => {
    const { locality, nodeName, cluster, labels } = topologyNeeds(policy, service, settings);
    expect(locality || nodeName || cluster || labels.length > 0).toBe(expected);
  });

  test('by labels looks at nothing else of the proxy, and not at labels with a value', () => {
    const policy = { outlierDetection, loadBalancer: balancer({ failoverPriority: ['v', 't=gold'] }) };
    const needs = topologyNeeds(policy, plain, settings);
    expect(needs).toEqual({ locality: false, nodeName: false, cluster: false, labels: ['v'] });
    const topology = { locality: 'r/z/s', network: 'n', cluster: 'c', nodeName: 'x', labels: { v: '1', w: '2' } };
    expect(narrowTopology(topology, needs)).toEqual({
      locality: '',
      network: '',
      cluster: '',
      nodeName: '',
      labels: { v: '1' },
    });
  });

  test('of a service that is local to its cluster looks at the cluster', () => {
    expect(topologyNeeds({}, plain, settings, true)).toMatchObject({ cluster: true });
  });
});

test('a DNS service looks at locality where any of its policies does', () => {
  const service = entryOf('x.example.com', [port(80, 'HTTP')], { resolution: 'DNSLB' });
  const needs = (trafficPolicy: object) =>
    dnsTopologyNeeds(service, service.ports[0]!, ruleOf({ host: 'x.example.com', trafficPolicy }), settings).locality;
  expect(dnsTopologyNeeds(service, service.ports[0]!, undefined, settings).locality).toBe(false);
  expect(needs({ loadBalancer: { simple: 'RANDOM' } })).toBe(false);
  expect(needs({ outlierDetection: {} })).toBe(true);
  expect(needs({ portLevelSettings: [{ port: { number: 80 }, outlierDetection: {} }] })).toBe(true);
});
