import { expect, test } from 'vitest';
import { isBefore } from './resource-version.ts';

test.each([
  ['1', '2', true],
  ['2', '1', false],
  ['2', '2', false],
  ['9', '10', true],
  ['10', '9', false],
  ['009', '10', true],
  ['0', '00', false],
  ['', '1', false],
  ['1', '', false],
  ['-1', '1', false],
  ['1', 'a', false],
  ['8'.repeat(4_000_000), '9'.repeat(4_000_000), true],
])('%.20s is before %.20s: %s', (a, b, expected) => {
  expect(isBefore(a, b)).toBe(expected);
});
