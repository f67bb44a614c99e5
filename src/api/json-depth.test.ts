import { expect, test } from 'vitest';
import { isDeeperThan } from './json-depth.ts';

test.each<[value: unknown, levels: number]>([
  [{}, 1],
  [[], 1],
  [{ a: [1, 'b'] }, 2],
  [{ a: 1, b: { c: [{}] } }, 4],
])('%j has exactly %i levels', (value, levels) => {
  expect(isDeeperThan(value, levels)).toBe(false);
  expect(isDeeperThan(value, levels - 1)).toBe(true);
});

test.each([1, null, 'a'])('%j has none', (value) => expect(isDeeperThan(value, 0)).toBe(false));

test('a value nested deeper than the stack does not overflow it', () => {
  const depth = 400_000;
  expect(isDeeperThan(JSON.parse('['.repeat(depth) + ']'.repeat(depth)), 200)).toBe(true);
});
