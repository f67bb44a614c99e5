import { expect, test } from 'vitest';
import { printReport, readReport, type ReplicaReport, type ReportedObject } from './replica-report.ts';

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
