import { expect, test } from 'vitest';
import { StateAge } from './state-age.ts';

test('it is counted from the first look at the same thing', () => {
  const lasting = new StateAge();
  expect([0, 1, 2, 3].map((now) => lasting.of('a', now))).toEqual([0, 0, 2, 3]);
  expect([4, 5, 6].map((now) => lasting.of('b', now))).toEqual([0, 0, 2]);
});

test('nothing lasts that is not there', () => {
  const lasting = new StateAge();
  expect([0, 1, 2, 3].map((now) => lasting.of(undefined, now))).toEqual([0, 0, 0, 0]);
});

test('a long time between two looks is not held against anybody', () => {
  const lasting = new StateAge();
  lasting.of('a', 0);
  expect(lasting.of('a', 60_000)).toBe(0);
});
