import { expect, test } from 'vitest';
import { areValidMeshNetworks, reconcileMeshNetworks } from './mesh-networks.ts';

const read = (yaml: string) => {
  const { networks, problems } = reconcileMeshNetworks(yaml);
  return { ...networks, problems: problems.map(({ field, reason }) => `${reason} ${field}`) };
};

test('networks are clusters, ranges and gateways', () => {
  expect(
    read(`
networks:
  one:
    endpoints: [{ fromRegistry: c1 }, { fromCidr: 10.1.2.3/16 }]
    gateways:
      - { address: 192.0.2.1, port: 443 }
      - { address: Gw.Example.com, locality: r/z }
      - { registryServiceName: gw.istio-system.svc.cluster.local, port: 15443 }
`),
  ).toEqual({
    registries: new Map([['c1', 'one']]),
    ranges: new Map([['10.1.0.0/16', 'one']]),
    gateways: [
      { network: 'one', port: 443, at: { kind: 'address', address: '192.0.2.1' } },
      { network: 'one', port: 15_443, at: { kind: 'address', address: 'gw.example.com' } },
      {
        network: 'one',
        port: 15_443,
        at: { kind: 'service', host: 'gw.istio-system.svc.cluster.local', clusters: ['c1'] },
      },
    ],
    problems: ['UnsupportedField networks.one.gateways[1].locality'],
  });
});

test.each([
  ['{', 'Invalid '],
  ['networks: []', 'Invalid networks'],
  ['network: {}', 'Ineffective network'],
  ['networks: { a: { gatways: [] } }', 'Ineffective networks.a.gatways'],
  ['networks: { a: { endpoints: [{}] } }', 'Invalid networks["a"].endpoints[0]'],
  ['networks: { a: { endpoints: [{ fromCidr: 10.0.0.0/33 }] } }', 'Invalid networks["a"].endpoints[0].fromCidr'],
  [
    'networks: { a: { endpoints: [{ fromCidr: 10.0.0.0/8 }, { fromCidr: 10.9.0.0/8 }] } }',
    'Invalid networks["a"].endpoints[1].fromCidr',
  ],
  [
    'networks: { a: { endpoints: [{ fromRegistry: c }] }, b: { endpoints: [{ fromRegistry: c }] } }',
    'Invalid networks["b"].endpoints[0].fromRegistry',
  ],
  ['networks: { a: { gateways: [{ port: 1 }] } }', 'Invalid networks["a"].gateways[0]'],
  ['networks: { a: { gateways: [{ address: "1.2.3.4:5" }] } }', 'Invalid networks["a"].gateways[0].address'],
  ['networks: { a: { gateways: [{ address: 1.2.3.4, port: 70000 }] } }', 'Invalid networks["a"].gateways[0].port'],
  [
    'networks: { a: { gateways: [{ registryServiceName: gw.example.com }] } }',
    'Ineffective networks["a"].gateways[0].registryServiceName',
  ],
  [
    'networks: { a: { endpoints: [{ fromCidr: 10.0.0.0/8 }] }, b: { endpoints: [{ fromCidr: 10.1.0.0/16 }] } }',
    'Ineffective networks',
  ],
])('%s: %s', (yaml, problem) => {
  expect(read(yaml).problems).toEqual([problem]);
  expect(areValidMeshNetworks(yaml)).toBe(problem.startsWith('Ineffective'));
});

test('ranges of one network may overlap', () => {
  expect(
    read('networks: { a: { endpoints: [{ fromCidr: 10.0.0.0/8 }, { fromCidr: 10.1.0.0/16 }] } }').problems,
  ).toEqual([]);
});

test('no text means no networks', () => {
  expect(reconcileMeshNetworks(undefined).networks.ranges.size).toBe(0);
});
