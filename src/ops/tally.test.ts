import { expect, test } from 'vitest';
import { Tally } from './tally.ts';

test('a value counts for every bound that is not below it', () => {
  const tally = new Tally([1, 10]);
  for (const value of [0, 1, 1.5, 10, 11, Infinity]) tally.observe(value);
  expect(tally.cumulative).toEqual([2, 4, 6]);
});

test('values are added up', () => {
  const tally = new Tally([1]);
  for (const value of [0.25, 2]) tally.observe(value);
  expect(tally.sum).toBe(2.25);
});
