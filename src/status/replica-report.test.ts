import { expect, test } from 'vitest';
import type { Progress } from './programmed.ts';
import { joinProgress, printReport, readReport, type ReplicaReport, type ReportedObject } from './replica-report.ts';

const rejection = { nodeId: 'n', build: 'b', typeUrl: 't', name: 'r', message: 'no' };

const report = (...objects: readonly ReportedObject[]): ReplicaReport => ({
  servingSince: '2026-01-01T00:00:00.000Z',
  seen: { VirtualService: '7' },
  objects,
  cut: ['many'],
});
const reported = (progress: ReportedObject['progress']): ReportedObject => ({
  key: 'g/VirtualService/c/shop/reviews',
  uid: 'u',
  generation: 2,
  progress,
});

test('what one replica writes, the others read', () => {
  const all = report(
    reported({ state: 'acknowledged', proxies: 3 }),
    reported({ state: 'underway', proxies: 2, waiting: [{ nodeId: 'a' }, { nodeId: 'b' }] }),
    { ...reported({ state: 'rejected', proxies: 1, rejections: [rejection], isRecalled: true }), isRejected: true },
  );
  expect(readReport(JSON.parse(JSON.stringify(printReport(all))))).toEqual(all);
});

test('of many proxies some are named, and all are counted', () => {
  const waiting = Array.from({ length: 12 }, (_, i) => ({ nodeId: `${i}` }));
  const progress = { state: 'underway', proxies: 12, waiting } as const;
  const [read] = readReport(printReport(report(reported(progress))))!.objects;
  expect(read?.progress).toEqual({ ...progress, waiting: waiting.slice(0, 5) });
});

// The API server checks only the outer form.
test('what is not a text does no harm, wherever a text should be', () => {
  const odd = { toString: 1, valueOf: 1 };
  const spec = printReport(
    report(
      reported({ state: 'underway', proxies: 1, waiting: [{ nodeId: 'a' }] }),
      reported({ state: 'rejected', proxies: 1, rejections: [rejection] }),
    ),
  );
  const [waiting, rejected] = spec['objects'] as [object, object];
  const read = readReport({
    ...spec,
    seen: { VirtualService: odd, Gateway: '3' },
    objects: [
      { ...waiting, named: [odd] },
      { ...rejected, rejections: [{ ...rejection, message: odd }, odd, 'no', null] },
    ],
  })!;
  expect(read.seen).toEqual({ Gateway: '3' });
  expect(read.objects.map(({ progress }) => progress)).toMatchObject([
    { state: 'underway', proxies: 1, waiting: [] },
    {
      state: 'rejected',
      rejections: [
        { ...rejection, message: '' },
        { nodeId: '', message: '' },
      ],
    },
  ]);
});

test('an object is where the replica has it that has come least far with it; numbers of proxies add up', () => {
  const rejected: Progress = { state: 'rejected', proxies: 2, rejections: [rejection] };
  const underway: Progress = { state: 'underway', proxies: 1, waiting: [{ nodeId: 'a' }] };
  const silent: Progress = { state: 'silent', replicas: ['r'] };
  const acknowledged: Progress = { state: 'acknowledged', proxies: 3 };
  const worstFirst: readonly Progress[] = [rejected, underway, silent, acknowledged, { state: 'concernsNobody' }];
  worstFirst.forEach((worst, i) => {
    const others = worstFirst.slice(i + 1);
    for (const all of [
      [worst, ...others],
      [...others, worst],
    ])
      expect(joinProgress(all)).toEqual(worst);
  });
  expect(joinProgress([rejected, underway, rejected])).toEqual({
    ...rejected,
    proxies: 4,
    rejections: [rejection, rejection],
  });
  expect(joinProgress([underway, silent, underway])).toEqual({
    ...underway,
    proxies: 2,
    waiting: [{ nodeId: 'a' }, { nodeId: 'a' }],
  });
  expect(joinProgress([acknowledged, acknowledged])).toEqual({ ...acknowledged, proxies: 6 });
});

test('who repeats that others have rejected an object is not counted beside them', () => {
  const first: Progress = { state: 'rejected', proxies: 1, rejections: [rejection] };
  const repeated: Progress = { ...first, proxies: 5, isRecalled: true };
  expect(joinProgress([repeated, first, repeated])).toEqual(first);
  const { isRecalled: _, ...most } = repeated;
  expect(joinProgress([{ ...repeated, proxies: 2 }, repeated])).toEqual(most);
});
