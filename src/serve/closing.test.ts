import { expect, test } from 'vitest';
import { CLOSING_MS, closed } from './closing.ts';
import { RecordingLog } from '../kube/testing/recording-log.ts';
import { FakeClock } from '../testing/fake-clock.ts';

test('parts that never close, or fail to, are named, and waited for no longer than the others may take', async () => {
  const clock = new FakeClock();
  const log = new RecordingLog();
  const never = new Promise<void>(() => undefined);
  const parts = { source: never, ports: Promise.resolve(), pages: Promise.reject(new Error('no')) };
  const done = closed(parts, { clock, log });
  await clock.advance(CLOSING_MS);
  await done;
  expect(log.lines.map(({ message, fields }) => [message, fields])).toEqual([
    ['Failed to close', { part: 'pages', err: new Error('no') }],
    ['Not closed in time, ending anyway', { parts: ['source'] }],
  ]);
  await closed({ ports: Promise.resolve() }, { clock, log });
  expect(log.lines).toHaveLength(2);
});
