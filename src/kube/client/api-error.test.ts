import { expect, test } from 'vitest';
import { errorOfAnswer, errorOfStatus } from './api-error.ts';

test.each([
  ['Expired', 'Expired'],
  ['x'.repeat(65), 'Unknown'],
  ['Bearer of-a-token', 'Unknown'],
  ['two\nlines', 'Unknown'],
  [{ toString: 1 }, 'Unknown'],
  [undefined, 'Unknown'],
])('a reason is a word: %.20j', (said, reason) => {
  const status = { kind: 'Status', code: 410, reason: said, message: 'm' };
  expect(errorOfStatus(status)).toMatchObject({ code: 410, reason });
  expect(errorOfAnswer(410, JSON.stringify(status))).toMatchObject({ code: 410, reason });
});

test('a message has a bound, and so has the time to wait', () => {
  const status = { kind: 'Status', code: 429, reason: 'TooManyRequests', message: 'x'.repeat(1_000_000) };
  const error = errorOfAnswer(429, JSON.stringify(status), 365 * 24 * 3_600);
  expect(error.message.length).toBeLessThan(1_100);
  expect(error.retryAfter).toBe(60_000);
});
