import { expect, test } from 'vitest';
import { type OwnedGateway, chooseGateways, mostGateways } from './network.ts';

const gateways = (count: number, cluster: string, namespace: string, from: number): OwnedGateway[] =>
  Array.from({ length: count }, (_, i) => ({
    network: 'b',
    cluster,
    namespace,
    address: `10.${from}.0.${i}`,
    port: 15_443,
  }));

test('neither a cluster nor a namespace with many gateways takes the place of others', () => {
  const own = gateways(2, 'b', 'istio-system', 200);
  const tenant = gateways(200, 'b', 'tenant', 2);
  const hostile = Array.from({ length: 200 }, (_, i) => gateways(2, 'hostile', `n${i}`, i)).flat();
  const kept = chooseGateways([...hostile, ...tenant, ...own]);
  expect(kept).toHaveLength(mostGateways);
  expect(kept).toEqual(expect.arrayContaining(own.map(({ namespace: _, ...gateway }) => gateway)));
  expect(new Set(kept.map((gateway) => JSON.stringify(gateway))).size).toBe(mostGateways);
});

test('what fits is used, each once, by address', () => {
  const some = [...gateways(3, 'c', 'x', 3), ...gateways(2, 'b', 'y', 1), ...gateways(2, 'b', 'z', 1)];
  expect(chooseGateways(some).map(({ address }) => address)).toEqual([
    '10.1.0.0',
    '10.1.0.1',
    '10.3.0.0',
    '10.3.0.1',
    '10.3.0.2',
  ]);
});
