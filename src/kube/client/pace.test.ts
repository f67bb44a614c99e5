import { expect, test } from 'vitest';
import { FakeClock } from '../../testing/fake-clock.ts';
import { Pace } from './pace.ts';

const { signal } = new AbortController();

/** Milliseconds until each of these was had, one after the other. */
async function times(clock: FakeClock, pace: Pace, amounts: readonly number[], until: number): Promise<number[]> {
  const began = clock.now();
  const had: number[] = [];
  void (async () => {
    for (const amount of amounts) {
      await pace.take(amount, { signal });
      had.push(clock.now() - began);
    }
  })();
  await clock.advance(until);
  return had;
}

test('as much as is there is had at once; then as fast as it comes', async () => {
  const clock = new FakeClock();
  const pace = new Pace({ rate: 100, burst: 1_000, clock });
  expect(await times(clock, pace, [600, 400, 50, 100], 5_000)).toEqual([0, 0, 500, 1_500]);
});

test('more than is ever there is had, and paid later', async () => {
  const clock = new FakeClock();
  const pace = new Pace({ rate: 100, burst: 100, clock });
  expect(await times(clock, pace, [1_100, 100], 20_000)).toEqual([10_000, 11_000]);
});

test('nobody waits longer than the signal says', async () => {
  const clock = new FakeClock();
  const pace = new Pace({ rate: 1, burst: 0, clock });
  const ending = new AbortController();
  const taken = pace.take(1_000, { signal: ending.signal });
  ending.abort();
  await taken;
  expect(clock.pending).toBe(0);
});

test('work takes a tenth of the time in the long run', async () => {
  const clock = new FakeClock();
  const pace = new Pace({ rate: 1_000, burst: 20_000, clock });
  const done = pace.work();
  await clock.advance(3_000);
  done();
  // Of 20 seconds' worth, 30 were taken, and 3 have come back.
  expect(await times(clock, pace, [0], 60_000)).toEqual([7_000]);
});
