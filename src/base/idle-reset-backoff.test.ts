import { expect, test } from 'vitest';
import { IdleResetBackoff } from './idle-reset-backoff.ts';
import { FakeClock } from '../testing/fake-clock.ts';

test('the first is not delayed, the others are, longer each time, until there was rest', async () => {
  const clock = new FakeClock();
  const spacing = new IdleResetBackoff({ base: 1_000, cap: 4_000, clock, random: () => 1 });
  const next = async (): Promise<number> => {
    const delay = spacing.next();
    await clock.advance(delay);
    return delay;
  };
  expect([await next(), await next(), await next(), await next(), await next()]).toEqual([
    0, 1_000, 2_000, 4_000, 4_000,
  ]);
  await clock.advance(3_999);
  expect(await next()).toBe(4_000);
  await clock.advance(4_000);
  expect([await next(), await next()]).toEqual([0, 1_000]);
});
