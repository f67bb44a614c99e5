import { expect, test } from 'vitest';
import { FakeClock } from '../../testing/fake-clock.ts';
import { DueWrites } from './due-writes.ts';

test('one namespace in which more changes than can be written does not hold up another one', async () => {
  const clock = new FakeClock();
  const written: string[] = [];
  const write = async (key: string) => void written.push(await Promise.resolve(key));
  const due = new DueWrites({ next: (key) => () => write(key), ended: () => undefined, clock });
  for (let i = 0; i < 1_000; i++) due.add('tenant', `${i}`);
  await clock.advance(10_000);
  // 40 a second: twice as many as are written.
  for (let i = 0; i < 40; i++) {
    due.add('tenant', `${i}`);
    if (i === 20) due.add('shop', 'reviews');
    await clock.advance(25);
  }
  expect(written).toContain('reviews');
  expect(written.length).toBeLessThan(300);
});

test('what needs no write takes nobody else the time', async () => {
  const clock = new FakeClock();
  const asked: string[] = [];
  const next = (key: string): undefined => void asked.push(key);
  const due = new DueWrites({ next, ended: () => undefined, clock, rate: 1, burst: 1 });
  for (let i = 0; i < 1_000; i++) due.add('tenant', `${i}`);
  await clock.advance(100);
  expect([asked.length, due.pending]).toEqual([1_000, 0]);
});
