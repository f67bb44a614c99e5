import { expect, test } from 'vitest';
import { FakeClock } from '../testing/fake-clock.ts';
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
