import { expect, test } from 'vitest';
import type { Progress } from './programmed.ts';
import { joinProgress, printReport, readReport, type ReplicaReport, type ReportedObject } from './replica-report.ts';

const refusal = { nodeId: 'n', build: 'b', typeUrl: 't', name: 'r', message: 'no' };

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
    { ...reported({ state: 'refused', proxies: 1, refusals: [refusal], isRecalled: true }), isRejected: true },
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
      reported({ state: 'refused', proxies: 1, refusals: [refusal] }),
    ),
  );
  const [waiting, refused] = spec['objects'] as [object, object];
  const read = readReport({
    ...spec,
    seen: { VirtualService: odd, Gateway: '3' },
    objects: [
      { ...waiting, named: [odd] },
      { ...refused, refusals: [{ ...refusal, message: odd }, odd, 'no', null] },
    ],
  })!;
  expect(read.seen).toEqual({ Gateway: '3' });
  expect(read.objects.map(({ progress }) => progress)).toMatchObject([
    { state: 'underway', proxies: 1, waiting: [] },
    {
      state: 'refused',
      refusals: [
        { ...refusal, message: '' },
        { nodeId: '', message: '' },
      ],
    },
  ]);
});

test('an object is where the replica has it that has come least far with it; numbers of proxies add up', () => {
  const refused: Progress = { state: 'refused', proxies: 2, refusals: [refusal] };
  const underway: Progress = { state: 'underway', proxies: 1, waiting: [{ nodeId: 'a' }] };
  const silent: Progress = { state: 'silent', replicas: ['r'] };
  const acknowledged: Progress = { state: 'acknowledged', proxies: 3 };
  const worstFirst: readonly Progress[] = [refused, underway, silent, acknowledged, { state: 'concernsNobody' }];
  worstFirst.forEach((worst, i) => {
    const others = worstFirst.slice(i + 1);
    for (const all of [
      [worst, ...others],
      [...others, worst],
    ])
      expect(joinProgress(all)).toEqual(worst);
  });
  expect(joinProgress([refused, underway, refused])).toEqual({ ...refused, proxies: 4, refusals: [refusal, refusal] });
  expect(joinProgress([underway, silent, underway])).toEqual({
    ...underway,
    proxies: 2,
    waiting: [{ nodeId: 'a' }, { nodeId: 'a' }],
  });
  expect(joinProgress([acknowledged, acknowledged])).toEqual({ ...acknowledged, proxies: 6 });
});

test('who repeats that others have rejected an object is not counted beside them', () => {
  const first: Progress = { state: 'refused', proxies: 1, refusals: [refusal] };
  const repeated: Progress = { ...first, proxies: 5, isRecalled: true };
  expect(joinProgress([repeated, first, repeated])).toEqual(first);
  const { isRecalled: _, ...most } = repeated;
  expect(joinProgress([{ ...repeated, proxies: 2 }, repeated])).toEqual(most);
});
