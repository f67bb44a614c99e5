import { expect, test } from 'vitest';
import { logSlowKinds } from './slow-kinds.ts';
import { FakeClock } from '../../testing/fake-clock.ts';
import { RecordingLog } from '../testing/recording-log.ts';

test('kinds that are late are named after half a minute, and then ever more rarely', async () => {
  const clock = new FakeClock();
  const log = new RecordingLog();
  let kinds = ['Pod (403 Forbidden)', 'Gateway'];
  logSlowKinds({ waitingFor: () => kinds, clock, log, signal: new AbortController().signal });
  await clock.advance(29_000);
  expect(log.lines).toEqual([]);
  await clock.advance(100_000);
  const line = { level: 'warn', message: 'Not ready: waiting for kinds' };
  expect(log.lines).toEqual([30, 90].map((seconds) => ({ ...line, fields: { kinds, seconds } })));
  await clock.advance(3_600_000);
  expect(log.lines.map(({ fields }) => (fields as { seconds: number }).seconds)).toEqual([
    30, 90, 210, 450, 930, 1530, 2130, 2730, 3330,
  ]);
  kinds = [];
  await clock.advance(3_600_000);
  expect(log.lines).toHaveLength(9);
});

test('nothing is said of kinds that came in time, and nothing after the end', async () => {
  const clock = new FakeClock();
  const log = new RecordingLog();
  const ending = new AbortController();
  logSlowKinds({ waitingFor: () => [], clock, log, signal: ending.signal });
  logSlowKinds({ waitingFor: () => ['Pod'], clock, log, signal: ending.signal });
  ending.abort();
  logSlowKinds({ waitingFor: () => ['Pod'], clock, log, signal: ending.signal });
  await clock.advance(60_000);
  expect(log.lines).toEqual([]);
});
