import { expect, test } from 'vitest';
import { parseDuration } from './durations.ts';

test.each([
  ['10s', 10_000],
  ['2.5s', 2500],
  ['.5s', 500],
  ['1.s', 1000],
  ['2ms', 2],
  ['90m', 5_400_000],
  ['1h2m3.5s', 3_723_500],
  ['500us', 0.5],
  ['500µs', 0.5],
  ['1ns', 0.000001],
  ['0', 0],
  ['0s', 0],
  ['+1s', 1000],
  ['2562047h', 9_223_369_200_000],
])('%s is a duration', (text, ms) => {
  expect(parseDuration(text)).toBe(ms);
});

test.each([
  '',
  '10',
  's',
  '-1s',
  '1d',
  '1 s',
  ' 1s',
  '1s+1s',
  '1e3s',
  'Infinitys',
  '9999999h',
  '1s\n',
  '🕐',
  '0'.repeat(200) + 's',
])('%j is not a duration', (text) => {
  expect(parseDuration(text)).toBeUndefined();
});
