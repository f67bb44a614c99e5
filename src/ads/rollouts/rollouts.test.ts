import { expect, test } from 'vitest';
import { FakeClock } from '../../testing/fake-clock.ts';
import type { Recipient } from './recipient.ts';
import { Concern } from './rollout.ts';
import { Rollouts } from './rollouts.ts';

const client: Recipient = { stream: 'a', nodeId: 'a', build: '', tenant: '' };

/** Does something every 40 ms, and returns how long after the last time the rollout was settled, at each time that it was. */
async function settledAfter(start: (rollouts: Rollouts) => () => void): Promise<readonly number[]> {
  const clock = new FakeClock();
  const settled: number[] = [];
  const again = start(
    new Rollouts({
      after: (ms, work) => void clock.after(ms, work),
      settled: () => settled.push(clock.now()),
      changed: () => undefined,
    }),
  );
  for (let turn = 0; turn < 5; turn++) {
    again();
    await clock.advance(40);
  }
  const last = clock.now() - 40;
  await clock.advance(1_000);
  return settled.map((at) => at - last);
}

test('a rollout is settled 50 ms or more after the last acknowledgement, however many there were before', async () => {
  const settled = await settledAfter((rollouts) => {
    const concern = new Concern('rds', new Map([['table', [rollouts.begin('object')]]]));
    return () => {
      concern.begin(client);
      concern.end(client);
    };
  });
  expect(settled).toHaveLength(1);
  expect(settled[0]).toBeGreaterThanOrEqual(50);
});

test('an object that changes again and again is settled 50 ms or more after its last change', async () => {
  const settled = await settledAfter((rollouts) => () => void rollouts.begin('object'));
  expect(settled).toHaveLength(1);
  expect(settled[0]).toBeGreaterThanOrEqual(50);
});
