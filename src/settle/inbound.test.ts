import { expect, test } from 'vitest';
import type { MeshService, ServicePort } from '../model/service.ts';
import type { SidecarModel } from '../model/sidecar.ts';
import type { DestinationRuleModel } from '../model/traffic-policy.ts';
import { type InboundInput, inboundTargets } from './inbound.ts';

const service = (name: string, ports: readonly ServicePort[]): MeshService =>
  ({
    host: `${name}.shop.svc`,
    name,
    namespace: 'shop',
    registry: 'Kubernetes',
    ports,
    endpoints: [],
    origins: [],
  }) as unknown as MeshService;

const port = (
  number: number,
  targetPort?: number | string,
  protocol: ServicePort['protocol'] = 'HTTP',
): ServicePort => ({
  name: `p${number}`,
  number,
  protocol,
  ...(targetPort === undefined ? {} : { targetPort }),
});

const targets = (services: readonly MeshService[], input: Partial<InboundInput> = {}) =>
  inboundTargets({ services, interception: 'REDIRECT', ruleOf: () => undefined, ...input }).targets;

/** `8080 HTTP a:80 b:81` */
const print = (services: readonly MeshService[], input: Partial<InboundInput> = {}) =>
  targets(services, input).map((target) =>
    [target.port, target.protocol, ...target.services.map(({ name, port: number }) => `${name}:${number}`)].join(' '),
  );

test.each<[string, MeshService[], InboundInput['ports'], string[]]>([
  [
    'ports by number, in order',
    [service('a', [port(81, 9000, 'TCP'), port(80, 8080)])],
    {},
    ['8080 HTTP a:80', '9000 TCP a:81'],
  ],
  ['without a target port, the port itself', [service('a', [port(80)])], {}, ['80 HTTP a:80']],
  ['ports by name', [service('a', [port(80, 'web')])], { web: 8080 }, ['8080 HTTP a:80']],
  ['a name that the workload lacks', [service('a', [port(80, 'web'), port(81, 1)])], { other: 8080 }, ['1 HTTP a:81']],
  ['a name of a workload that is not known', [service('a', [port(80, 'web')])], undefined, ['0 HTTP a:80']],
  ['UDP is not served', [service('a', [port(53, 53, 'UDP')])], {}, []],
  [
    'the oldest service of a port gives protocol and name',
    [service('old', [port(81, 8080, 'TCP')]), service('new', [port(80, 8080)])],
    {},
    ['8080 TCP old:81 new:80'],
  ],
  ['two ports of one service on one target', [service('a', [port(80, 8080), port(81, 8080)])], {}, ['8080 HTTP a:80']],
])('%s', (_, services, ports, expected) => {
  expect(print(services, { ports })).toEqual(expected);
});

test('where nothing is redirected the services of the workload are not served', () => {
  expect(print([service('a', [port(80)])], { interception: 'NONE' })).toEqual([]);
});

const pool = (maxConnections: number) => ({ tcp: { maxConnections }, http: { useClientProtocol: false } });
const rule = {
  policy: { connectionPool: pool(1) },
  portPolicies: { 81: { connectionPool: pool(2) }, 82: {} },
  origins: [],
} as unknown as DestinationRuleModel;
const sidecar: SidecarModel = {
  key: 'test/istio-system/s',
  ref: { source: 'test', group: '', kind: 'Sidecar', namespace: 'istio-system', name: 's' },
  name: 's',
  namespace: 'istio-system',
  createdAt: '',
  egress: [],
  ingress: [],
};

test('the connection pool is that of the port, of the rule, or of the Sidecar', () => {
  const services = [service('a', [port(80, 1), port(81, 2), port(82, 3)])];
  const pools = (input: Partial<InboundInput>) =>
    targets(services, input).map((target) => target.connectionPool?.tcp.maxConnections);
  expect(pools({})).toEqual([undefined, undefined, undefined]);
  expect(pools({ ruleOf: () => rule })).toEqual([1, 2, undefined]);
  expect(pools({ ruleOf: () => rule, sidecar: { ...sidecar, inboundConnectionPool: pool(9) } })).toEqual([9, 9, 9]);
});

test('ingress listeners of a Sidecar replace the ports of services, also where nothing is redirected', () => {
  const listener = {
    field: '',
    name: 'h',
    bind: '',
    bindToPort: false,
    endpoint: { kind: 'originalDestination' },
  } as const;
  const own: SidecarModel = {
    ...sidecar,
    inboundConnectionPool: pool(9),
    ingress: [
      { ...listener, port: 9000, protocol: 'TCP' },
      { ...listener, port: 8080, protocol: 'HTTP', connectionPool: pool(1) },
    ],
  };
  for (const interception of ['REDIRECT', 'NONE'] as const)
    expect(targets([service('a', [port(80)])], { sidecar: own, interception, namespace: 'shop' })).toMatchObject([
      {
        port: 8080,
        services: [{ host: 's.shop', port: 8080, portName: 'h' }],
        connectionPool: pool(1),
        ingress: { bindToPort: false },
        origins: [{ kind: 'Sidecar', name: 's' }],
      },
      { port: 9000, protocol: 'TCP', connectionPool: pool(9) },
    ]);
});

test('of very many ports those of the oldest services are served, and the others are told', () => {
  const ref = (name: string) => ({ group: '', kind: 'Service', namespace: 'shop', name });
  const withPorts = (name: string, from: number, count: number): MeshService =>
    ({
      ...service(
        name,
        Array.from({ length: count }, (_, i) => port(from + i)),
      ),
      origins: [ref(name)],
    }) as unknown as MeshService;
  const services = [
    withPorts('old', 2_000, 600),
    withPorts('middle', 1, 600),
    withPorts('new', 5_000, 600),
    withPorts('beside', 5_599, 1),
  ];
  const found = inboundTargets({ services, interception: 'REDIRECT', ruleOf: () => undefined });
  expect(found.targets).toHaveLength(1_000);
  expect(found.targets.filter(({ origins }) => origins[0]!.name === 'old')).toHaveLength(600);
  expect(found.problems).toEqual(
    ['middle', 'new', 'beside'].map((name) => ({
      object: ref(name),
      field: 'spec',
      reason: 'Ineffective',
      message: expect.stringContaining('more than 1000 ports, or 10000') as string,
    })),
  );
});

test('of very many Services on one port the oldest are named, and the others are told', () => {
  const ref = (name: string) => ({ group: '', kind: 'Service', namespace: 'shop', name });
  const services = Array.from(
    { length: 10_002 },
    (_, i) => ({ ...service(`s${i}`, [port(80)]), origins: [ref(`s${i}`)] }) as unknown as MeshService,
  );
  const found = inboundTargets({ services, interception: 'REDIRECT', ruleOf: () => undefined });
  expect(found.targets.map((target) => target.services.length)).toEqual([10_000]);
  expect(found.problems.map(({ object }) => object.name)).toEqual(['s10000', 's10001']);
});

test('of a Sidecar with very many ingress listeners the first ones are used, and its owner is told', () => {
  const ref = { group: 'networking.istio.io', kind: 'Sidecar', namespace: 'shop', name: 'many' };
  const ingress = Array.from({ length: 1_001 }, (_, i) => ({ port: i + 1, protocol: 'HTTP', name: 'http' }));
  const sidecar = { name: 'many', namespace: 'shop', ref, ingress } as unknown as SidecarModel;
  const found = inboundTargets({ services: [], sidecar, interception: 'REDIRECT', ruleOf: () => undefined });
  expect(found.targets).toHaveLength(1_000);
  const message = 'has 1001 listeners; at most 1000 are allowed, and only the first ones are used.';
  expect(found.problems).toEqual([{ object: ref, field: 'spec.ingress', reason: 'Ineffective', message }]);
});
