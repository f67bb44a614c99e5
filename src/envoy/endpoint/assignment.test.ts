import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Endpoint } from '../../model/endpoint.ts';
import type { MeshService } from '../../model/service.ts';
import type { TrafficPolicy } from '../../model/traffic-policy.ts';
import type { Topology } from '../../model/topology.ts';
import {
  type AssignmentInput,
  buildAssignment,
  type BuiltAssignment,
  emptyAssignment,
  encodeEndpoints,
} from './assignment.ts';
import { workloadOf } from './assignment-endpoint.ts';
import type { ClusterLoadAssignment, LbEndpoint } from '../gen/types.gen.ts';
import { types } from '../encode/proto-types.ts';
import { endpointOf } from '../testing/clusters.ts';
import { port, protos, serviceOf } from '../testing/listeners.ts';
import { struct } from '../encode/values.ts';
import { runs } from '../../testing/runs.ts';

interface Given {
  readonly endpoints: readonly Endpoint[];
  readonly policy?: TrafficPolicy;
  readonly service?: Partial<MeshService>;
  readonly topology?: Partial<Topology>;
  readonly more?: Partial<AssignmentInput>;
}

function bytesOf({ endpoints, policy = {}, service = {}, topology = {}, more = {} }: Given): Uint8Array {
  return built({ endpoints, policy, service, topology, more }).bytes;
}

function built({ endpoints, policy = {}, service = {}, topology = {}, more = {} }: Given): BuiltAssignment {
  return buildAssignment({
    clusterName: 'c',
    endpoints: encodeEndpoints(endpoints),
    subsetLabels: {},
    policy,
    service: serviceOf('a', [port(80, 'HTTP')], service),
    settings: { localityLb: { distribute: [], failover: [], failoverPriority: [] } },
    mtls: 'auto',
    topology: { locality: '', network: '', cluster: 'Kubernetes', nodeName: '', labels: {}, ...topology },
    ...more,
  });
}

const decode = (bytes: Uint8Array) => protos.decode(types.endpoint, bytes);
const addressOf = ({ endpoint }: LbEndpoint) =>
  endpoint?.address?.socketAddress?.address ?? endpoint?.address?.pipe?.path ?? '';

/** The addresses that are sent. */
function addresses(given: Given): string[] {
  return (decode(bytesOf(given)).endpoints ?? []).flatMap((group) => (group.lbEndpoints ?? []).map(addressOf));
}

/** `locality*weight@priority: addresses` of each group, the first priority first. */
function places(given: Given): string[] {
  return [...(decode(bytesOf(given)).endpoints ?? [])]
    .sort((a, b) => (a.priority ?? 0) - (b.priority ?? 0))
    .map(({ locality = {}, loadBalancingWeight, priority = 0, lbEndpoints = [] }) => {
      const name = [locality.region, locality.zone, locality.subZone].filter(Boolean).join('/');
      return `${name}*${loadBalancingWeight?.value}@${priority}: ${lbEndpoints.map(addressOf).join(' ')}`;
    });
}

test.each<[string, boolean, readonly Partial<Endpoint>[]]>([
  ['has no endpoints', false, []],
  ['has none that are ready', false, [{ health: 'UnHealthy' }]],
  ['has one that is ready', true, [{ health: 'UnHealthy' }, { health: 'Healthy' }]],
  ['has one without health', true, [{}]],
])('requests may go to an assignment or not: it %s', (_, ready, given) => {
  expect(built({ endpoints: given.map((each) => endpointOf('10.0.0.1', each)) }).ready).toBe(ready);
});

describe('the bytes', () => {
  /** The same by Envoy's types: what the encoder for everything else would write. */
  function message(endpoint: Endpoint, mtls: boolean): LbEndpoint {
    const [first = '', ...others] = endpoint.addresses;
    const address = (text: string) =>
      endpoint.port === 0 ? { pipe: { path: text } } : { socketAddress: { address: text, portValue: endpoint.port } };
    const marked = mtls && endpoint.tlsMode === 'istio';
    return {
      endpoint: {
        address: address(first),
        additionalAddresses: others.map((other) => ({ address: address(other) })),
      },
      healthStatus: { Healthy: 1, UnHealthy: 2, Draining: 3, Terminating: 2 }[endpoint.health ?? 'Healthy'],
      metadata: {
        filterMetadata: {
          ...(marked ? { 'envoy.transport_socket_match': struct({ tlsMode: 'istio' }) } : {}),
          istio: struct({ workload: workloadOf(endpoint) }),
        },
      },
      loadBalancingWeight: { value: endpoint.weight ?? 1 },
    };
  }

  const endpoints = fc.record({
    addresses: fc.uniqueArray(fc.ipV4(), { minLength: 1, maxLength: 3 }),
    port: fc.integer({ min: 1, max: 65_535 }),
    health: fc.constantFrom('Healthy' as const, 'UnHealthy' as const),
    labels: fc.dictionary(fc.constantFrom('app', 'version', 'x'), fc.string({ unit: 'grapheme', maxLength: 200 })),
    tlsMode: fc.constantFrom('istio' as const, 'disabled' as const),
    weight: fc.integer({ min: 1, max: 2 ** 32 - 1 }),
    workload: fc.string({ unit: 'grapheme', maxLength: 300 }),
  });

  test('are those of the encoder that knows the types', () => {
    fc.assert(
      fc.property(fc.array(endpoints, { minLength: 1, maxLength: 4 }), fc.boolean(), (drawn, mtls) => {
        const all = drawn.map((given) => endpointOf('', given));
        const weight = all.reduce((sum, endpoint) => sum + (endpoint.weight ?? 1), 0);
        const expected: ClusterLoadAssignment = {
          clusterName: 'c',
          endpoints: [
            {
              locality: {},
              lbEndpoints: all.map((endpoint) => message(endpoint, mtls)),
              loadBalancingWeight: { value: Math.min(weight, 2 ** 32 - 1) },
            },
          ],
        };
        const bytes = bytesOf({ endpoints: all, more: { mtls: mtls ? 'auto' : 'never' } });
        expect(Buffer.compare(bytes, protos.encode(types.endpoint, expected))).toBe(0);
      }),
      { numRuns: runs(200) },
    );
  });

  test('of an assignment without endpoints are its name alone', () => {
    const expected = protos.encode(types.endpoint, { clusterName: 'outbound|80||ä' });
    expect(Buffer.compare(emptyAssignment('outbound|80||ä'), expected)).toBe(0);
    expect(Buffer.compare(bytesOf({ endpoints: [] }), protos.encode(types.endpoint, { clusterName: 'c' }))).toBe(0);
  });

  test('of a unix socket have its path', () => {
    expect(addresses({ endpoints: [endpointOf('/tmp/s', { port: 0 })] })).toEqual(['/tmp/s']);
  });
});

describe('an endpoint is left out', () => {
  const good = endpointOf('10.0.0.1');
  test.each<[string, Partial<Endpoint>, Omit<Given, 'endpoints'>]>([
    ['when it terminates', { health: 'Terminating' }, {}],
    ['when it drains', { health: 'Draining' }, {}],
    ['when its label says that it drains', { labels: { 'istio.io/draining': 'true' } }, {}],
    ['when it is a name', { addresses: ['x.example.com'] }, {}],
    ['when Envoy could not parse its address', { addresses: ['999.1.1.1'] }, {}],
    ['when Envoy could not parse its scope', { addresses: ['fe80::1%eth0'] }, {}],
    ['when its port is none', { port: 70_000 }, {}],
    ['when it has no port', { port: 0 }, {}],
    [
      'when it is not ready and a rule wants the panic mode',
      { health: 'UnHealthy' },
      { policy: { outlierDetection: { minHealthPercent: 20, splitExternalLocalOriginErrors: false } } },
    ],
    ['when it is of another subset', {}, { more: { subsetLabels: { version: 'v1' } } }],
    [
      'when it is on another node and the Service is for its node',
      { nodeName: 'n2' },
      { service: { nodeLocal: true } },
    ],
    ['when it is in another cluster and the Service is for its cluster', { cluster: 'c2' }, { more: { sharedBy: [] } }],
  ])('%s', (_, endpoint, given) => {
    const same = { nodeName: '', labels: { version: 'v1' }, tlsMode: 'istio' as const };
    const all = [{ ...good, ...same }, endpointOf('10.0.0.2', endpoint)];
    expect(addresses({ ...given, endpoints: all })).toEqual(['10.0.0.1']);
  });
});

test('endpoints that drain are kept for Services with persistent sessions', () => {
  const service = { persistentSession: true };
  const endpoints = [endpointOf('10.0.0.1', { health: 'Draining' })];
  expect(addresses({ endpoints, service })).toEqual(['10.0.0.1']);
});

test('endpoints that are not ready are sent as such', () => {
  const bytes = bytesOf({ endpoints: [endpointOf('10.0.0.1', { health: 'UnHealthy' })] });
  expect(decode(bytes).endpoints?.[0]?.lbEndpoints?.[0]?.healthStatus).toBe('UNHEALTHY');
});

test('what telemetry reads prefers canonical names', () => {
  const workload = (labels: Record<string, string>) => workloadOf(endpointOf('', { labels }));
  expect(workload({})).toBe('a;shop;a;;Kubernetes');
  expect(workload({ app: 'b', version: 'latest' })).toBe('a;shop;b;;Kubernetes');
  expect(workload({ app: 'b', 'app.kubernetes.io/name': 'c', version: 'v1' })).toBe('a;shop;c;v1;Kubernetes');
  expect(
    workload({ 'service.istio.io/canonical-name': 'd', 'service.istio.io/canonical-revision': 'r', version: 'v1' }),
  ).toBe('a;shop;d;r;Kubernetes');
});

describe('places', () => {
  const endpoints = [
    endpointOf('10.0.0.1', { locality: 'r1/z1/s1', labels: { v: '1', t: 'gold' } }),
    endpointOf('10.0.0.2', { locality: 'r1/z1/s2', labels: { v: '2', t: 'tin' } }),
    endpointOf('10.0.0.3', { locality: 'r1/z2/', labels: { v: '1', t: 'gold' } }),
    endpointOf('10.0.0.4', { locality: 'r2/z3/', labels: { v: '2', t: 'tin' } }),
    endpointOf('10.0.0.5', { locality: 'r3/z4/', labels: { v: '1', t: 'tin' } }),
  ];
  const here = { locality: 'r1/z1/s1' };
  const outlierDetection = { splitExternalLocalOriginErrors: false };
  const by = (setting: object, failover = true): TrafficPolicy => ({
    loadBalancer: {
      localityLb: { enabled: true, distribute: [], failover: [], failoverPriority: [], ...setting },
    },
    ...(failover ? { outlierDetection } : {}),
  });

  test('count the same without outlier detection', () => {
    expect(places({ endpoints, topology: here }).map((place) => place.split('@')[1]?.[0])).toEqual([
      '0',
      '0',
      '0',
      '0',
      '0',
    ]);
  });

  test('are used from near to far with it', () => {
    expect(places({ endpoints, topology: here, policy: { outlierDetection } })).toEqual([
      'r1/z1/s1*1@0: 10.0.0.1',
      'r1/z1/s2*1@1: 10.0.0.2',
      'r1/z2*1@2: 10.0.0.3',
      'r2/z3*1@3: 10.0.0.4',
      'r3/z4*1@3: 10.0.0.5',
    ]);
  });

  test('have priorities without gaps', () => {
    expect(places({ endpoints: endpoints.slice(2), topology: here, policy: { outlierDetection } })).toEqual([
      'r1/z2*1@0: 10.0.0.3',
      'r2/z3*1@1: 10.0.0.4',
      'r3/z4*1@1: 10.0.0.5',
    ]);
  });

  test('do not count where the rule or the mesh switches them off', () => {
    const off = by({ enabled: false });
    for (const given of [{ policy: off }, { policy: { outlierDetection }, more: { settings: {} } }] as const)
      expect(places({ endpoints, topology: here, ...given }).every((place) => place.includes('@0'))).toBe(true);
  });

  test('the region that failover names is used before others', () => {
    expect(
      places({ endpoints, topology: here, policy: by({ failover: [{ from: 'r1', to: 'r3' }] }) }).slice(3),
    ).toEqual(['r3/z4*1@3: 10.0.0.5', 'r2/z3*1@4: 10.0.0.4']);
  });

  test('labels decide before localities: the longer the run of equal ones, the sooner', () => {
    const policy = by({ failoverPriority: ['v', 't=gold'] });
    expect(places({ endpoints, topology: { ...here, labels: { v: '1' } }, policy })).toEqual([
      'r1/z1/s1*1@0: 10.0.0.1',
      'r1/z2*1@0: 10.0.0.3',
      'r3/z4*1@1: 10.0.0.5',
      'r1/z1/s2*1@2: 10.0.0.2',
      'r2/z3*1@2: 10.0.0.4',
    ]);
  });

  test('labels and failover count together, labels first', () => {
    const policy = by({ failoverPriority: ['v'], failover: [{ from: 'r1', to: 'r3' }] });
    expect(places({ endpoints, topology: { ...here, labels: { v: '1' } }, policy })).toEqual([
      'r1/z1/s1*1@0: 10.0.0.1',
      'r1/z2*1@1: 10.0.0.3',
      'r3/z4*1@2: 10.0.0.5',
      'r1/z1/s2*1@3: 10.0.0.2',
      'r2/z3*1@4: 10.0.0.4',
    ]);
  });

  test('one locality is split by labels, with the weight of each part', () => {
    const together = endpoints.map((endpoint) => ({ ...endpoint, locality: 'r/z/', weight: 2 }));
    const policy = by({ failoverPriority: ['v=1'] });
    expect(places({ endpoints: together, policy })).toEqual([
      'r/z*6@0: 10.0.0.1 10.0.0.3 10.0.0.5',
      'r/z*4@1: 10.0.0.2 10.0.0.4',
    ]);
  });

  test('another network is farther than any other difference', () => {
    const network = 'topology.istio.io/network';
    const networked = ['n1', 'n1', 'n2', 'n2'].map((name, index) =>
      endpointOf(`10.0.0.${index}`, { labels: { [network]: name, v: index % 2 === 0 ? '1' : '2' } }),
    );
    const policy = by({ failoverPriority: [network, 'v'] });
    expect(places({ endpoints: networked, topology: { labels: { [network]: 'n1', v: '1' } }, policy })).toEqual([
      '*1@0: 10.0.0.0',
      '*1@1: 10.0.0.1',
      '*1@2: 10.0.0.2',
      '*1@3: 10.0.0.3',
    ]);
  });

  test('shares are divided by weight among the localities that a pattern covers; others get nothing', () => {
    const policy = by(
      {
        distribute: [
          { from: 'r9/*', to: { 'r9/*': 100 } },
          { from: 'r1/z1/*', to: { 'r1/z1/*': 70, 'r1/z2/*': 20, 'r2/*': 10 } },
        ],
      },
      false,
    );
    expect(places({ endpoints, topology: here, policy })).toEqual([
      'r1/z1/s1*35@0: 10.0.0.1',
      'r1/z1/s2*35@0: 10.0.0.2',
      'r1/z2*20@0: 10.0.0.3',
      'r2/z3*10@0: 10.0.0.4',
      'r3/z4*1@0: ',
    ]);
    expect(places({ endpoints, topology: { locality: 'r4' }, policy })).toHaveLength(5);
  });

  test('a Service that prefers its zone fails over without a rule', () => {
    const zone = (name: string) => ({ 'topology.kubernetes.io/region': 'r', 'topology.kubernetes.io/zone': name });
    const zoned = ['z1', 'z2'].map((name, index) =>
      endpointOf(`10.0.0.${index}`, { locality: `r/${name}/`, labels: zone(name) }),
    );
    const service = { trafficDistribution: 'same-zone' } as const;
    expect(places({ endpoints: zoned, service, topology: { labels: zone('z2') } })).toEqual([
      'r/z2*1@0: 10.0.0.1',
      'r/z1*1@1: 10.0.0.0',
    ]);
  });
});
