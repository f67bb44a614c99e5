import { describe, expect, test } from 'vitest';
import { encodeEndpoints } from '../envoy/endpoint/assignment-endpoint.ts';
import { endpointOf } from '../envoy/testing/clusters.ts';
import { port, serviceOf } from '../envoy/testing/listeners.ts';
import type { SettledAssignment } from '../model/assignment.ts';
import type { Endpoint } from '../model/endpoint.ts';
import type { NetworkGateway } from '../model/network.ts';
import type { MeshService } from '../model/service.ts';
import type { Topology } from '../model/topology.ts';
import type { TrafficPolicy } from '../model/traffic-policy.ts';
import { type AssignmentInput, settleAssignment } from './assignment.ts';

interface Given {
  readonly endpoints: readonly Endpoint[];
  readonly policy?: TrafficPolicy;
  readonly service?: Partial<MeshService>;
  readonly topology?: Partial<Topology>;
  readonly more?: Partial<AssignmentInput<string>>;
}

/** The forms of an endpoint are its address, and its address with an asterisk. */
function settled({ endpoints, policy = {}, service = {}, topology = {}, more = {} }: Given): SettledAssignment<string> {
  return settleAssignment({
    clusterName: 'c',
    endpoints: encodeEndpoints(endpoints).map((each, i) => {
      const marked = endpoints[i]!.tlsMode === 'istio' ? `${each.address}*` : each.address;
      return { ...each, plain: each.address, mtls: marked };
    }),
    subsetLabels: {},
    policy,
    service: serviceOf('a', [port(80, 'HTTP')], service),
    settings: { localityLb: { distribute: [], failover: [], failoverPriority: [] } },
    mtls: 'never',
    topology: { locality: '', network: '', cluster: 'Kubernetes', nodeName: '', labels: {}, ...topology },
    ...more,
  });
}

/** The forms that are sent, and the addresses of gateways. */
const sent = (given: Given): string[] =>
  settled(given).localities.flatMap(({ endpoints, gateways }) => [
    ...endpoints,
    ...gateways.map(({ addresses, weight }) => `${addresses[0]}=${weight}`),
  ]);

/** `locality*weight@priority: addresses` of each group, the first priority first. */
function places(given: Given): string[] {
  return settled(given)
    .localities.toSorted((a, b) => a.priority - b.priority)
    .map(({ region, zone, subzone, weight, priority, endpoints }) => {
      const name = [region, zone, subzone].filter(Boolean).join('/');
      return `${name}*${weight}@${priority}: ${endpoints.join(' ')}`;
    });
}

test.each<[string, boolean, readonly Partial<Endpoint>[]]>([
  ['has no endpoints', false, []],
  ['has none that are ready', false, [{ health: 'UnHealthy' }]],
  ['has one that is ready', true, [{ health: 'UnHealthy' }, { health: 'Healthy' }]],
  ['has one without health', true, [{}]],
])('requests may go to an assignment or not: it %s', (_, ready, given) => {
  expect(settled({ endpoints: given.map((each) => endpointOf('10.0.0.1', each)) }).ready).toBe(ready);
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
    expect(sent({ ...given, endpoints: all })).toEqual(['10.0.0.1']);
  });
});

test('endpoints that drain are kept for Services with persistent sessions', () => {
  const service = { persistentSession: true };
  const endpoints = [endpointOf('10.0.0.1', { health: 'Draining' })];
  expect(sent({ endpoints, service })).toEqual(['10.0.0.1']);
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

describe('an endpoint has the form for mutual TLS', () => {
  const endpoints = [
    endpointOf('10.0.0.1', { tlsMode: 'istio' }),
    endpointOf('10.0.0.2', { tlsMode: 'istio', disablesMtls: true }),
    endpointOf('10.0.0.3'),
  ];
  test.each([
    ['if no PeerAuthentication has turned it off', 'auto', ['10.0.0.1*', '10.0.0.2', '10.0.0.3']],
    ['wherever its proxy can, if a rule says so', 'always', ['10.0.0.1*', '10.0.0.2*', '10.0.0.3']],
    ['never, if clients have no certificates', 'never', ['10.0.0.1', '10.0.0.2', '10.0.0.3']],
  ] as const)('%s', (_, mtls, expected) => {
    expect(sent({ endpoints, more: { mtls } })).toEqual(expected);
  });

  test('or is left out where connections are forwarded as they are', () => {
    expect(sent({ endpoints, more: { mtls: 'auto', forwards: true } })).toEqual(['10.0.0.1*']);
  });
});

describe('endpoints of another network', () => {
  const gateway = (address: string): NetworkGateway => ({ network: 'n2', cluster: '', address, port: 15_443 });
  const horizon = new Map([['n2', [gateway('1.1.1.1'), gateway('2.2.2.2')]]]);
  const far = { network: 'n2', tlsMode: 'istio', weight: 6 } as const;
  const near = endpointOf('10.0.0.1', { network: 'n1', tlsMode: 'istio' });
  const through = (...others: Endpoint[]): string[] =>
    sent({ endpoints: [near, ...others], topology: { network: 'n1' }, more: { mtls: 'auto', horizon } });

  test('are behind its gateways, which share their weight', () => {
    const more = endpointOf('10.0.0.3', far);
    expect(through(endpointOf('10.0.0.2', far), more)).toEqual(['10.0.0.1*', '1.1.1.1=6', '2.2.2.2=6']);
  });

  test('need no address here', () => {
    expect(through(endpointOf('', far))).toEqual(['10.0.0.1*', '1.1.1.1=3', '2.2.2.2=3']);
  });

  test('are left out without mutual TLS, or if they are not ready', () => {
    const plain = endpointOf('10.0.0.2', { ...far, tlsMode: 'disabled' });
    expect(through(plain, endpointOf('10.0.0.3', { ...far, health: 'UnHealthy' }))).toEqual(['10.0.0.1*']);
  });
});

test.each([
  ['local', [0, 1]],
  ['remote', [1, 0]],
] as const)('affinity (%s) uses the others once no healthy one is left', (affinity, priorities) => {
  const endpoints = [endpointOf('10.0.0.1'), endpointOf('10.0.0.2', { viaClusterMesh: true })];
  const assignment = settled({ endpoints, service: { global: { affinity } as MeshService['global'] & object } });
  const byAddress = Object.fromEntries(
    assignment.localities.map(({ endpoints: [form], priority }) => [form, priority]),
  );
  expect([byAddress['10.0.0.1'], byAddress['10.0.0.2']]).toEqual(priorities);
  expect(assignment.untilTheLastOne).toBe(true);
  expect(settled({ endpoints }).untilTheLastOne).toBe(false);
});
