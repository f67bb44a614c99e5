import { expect, test } from 'vitest';
import { MeshLab, proxy, rule, service } from './testing/lab.ts';

const preferring = (...failoverPriority: string[]) =>
  rule('shop/r', 'a', {
    trafficPolicy: { loadBalancer: { localityLbSetting: { failoverPriority } }, outlierDetection: {} },
  });

test('proxies look from different places where a priority compares their labels, not where it names the value', () => {
  const lab = new MeshLab(
    [service('shop/a'), preferring('tier=gold')],
    [proxy('x.c', { tier: 'gold' }), proxy('y.c', { tier: 'tin' }), proxy('z.c', { tier: 'tin', other: 'z' })],
  );
  expect(lab.size('vantages')).toBe(1);
  lab.apply([preferring('tier')]);
  expect(lab.size('vantages')).toBe(2);
});
