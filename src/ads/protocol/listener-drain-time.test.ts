import { expect, test } from 'vitest';
import { drainTimeOf } from './listener-drain-time.ts';

test.each<[unknown, number | undefined]>([
  ['45s', 45_000],
  ['1m30s', 90_000],
  ['0s', 0],
  ['1.5s', 1_500],
  ['99999h', 3_600_000],
  ['', undefined],
  ['soon', undefined],
  ['-5s', undefined],
  [45, undefined],
  ['1s'.repeat(100), undefined],
])('drainDuration %j', (drainDuration, expected) => {
  expect(drainTimeOf({ PROXY_CONFIG: { drainDuration } })).toBe(expected);
});

test('a node that says nothing of it', () => {
  expect(drainTimeOf({})).toBeUndefined();
  expect(drainTimeOf({ PROXY_CONFIG: null })).toBeUndefined();
});
