import { expect, test } from 'vitest';
import { printReport, type ReportedObject } from './replica-report.ts';
import { roomFor } from './room-in-report.ts';

const some = (namespace: string, count: number, message?: string): [string, ReportedObject[]] => [
  namespace,
  Array.from({ length: count }, (_, i): ReportedObject => {
    const object = { key: `g/VirtualService/c/${namespace}/${i}`, uid: 'u', generation: 1 };
    const rejections = [{ nodeId: 'n', build: 'b', typeUrl: 't', name: 'r', message: message ?? '' }];
    if (message !== undefined) return { ...object, progress: { state: 'rejected', proxies: 1, rejections } };
    return { ...object, progress: { state: 'acknowledged', proxies: 1 } };
  }),
];

/** Which namespaces are cut, and how many objects of each are reported. */
function report(...namespaces: readonly [string, ReportedObject[]][]) {
  const { objects, cut } = roomFor(new Map(namespaces));
  const bytes = JSON.stringify(printReport({ servingSince: '', seen: {}, objects, cut })).length;
  expect(bytes).toBeLessThan(1_400_000);
  const counts = Map.groupBy(objects, ({ key }) => key.split('/')[3]!);
  return { cut, counts: Object.fromEntries([...counts].map(([namespace, all]) => [namespace, all.length])) };
}

test('everything is reported where there is room', () => {
  expect(report(some('a', 1_500), some('b', 500))).toEqual({ cut: [], counts: { a: 1_500, b: 500 } });
});

test('a namespace with more objects than there is room for is cut, and no other', () => {
  expect(report(some('many', 10_000), some('shop', 500), some('small', 3))).toEqual({
    cut: ['many'],
    counts: { many: 1_497, shop: 500, small: 3 },
  });
});

test('one whose proxies have much to say has no more room than others', () => {
  const { cut, counts } = report(some('talkative', 1_900, 'x'.repeat(3_000)), some('b', 2_000));
  expect(cut).toEqual(['talkative', 'b']);
  expect(counts['b']).toBeGreaterThan(1_000);
});

test('if too many are cut to name them, all are', () => {
  const all = Array.from({ length: 3_000 }, (_, i) => some(`n${i}`, 2));
  expect(report(...all).cut).toEqual(['*']);
});
