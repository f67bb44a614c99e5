import { expect, test } from 'vitest';
import { type Aged, printWinner } from './age.ts';

const object = (createdAt: string, name: string, namespace = 'shop'): Aged => ({ createdAt, name, namespace });

test.each([
  ['the older', object('2026-01-01T00:00:00Z', 'b'), object('2026-01-02T00:00:00Z', 'a'), 'the older Gateway/x'],
  [
    'the one that its name puts first, where files have no age',
    object('', 'a'),
    object('', 'b'),
    'Gateway/x (its name comes first, and their ages are equal or not known)',
  ],
  [
    'the one that its namespace puts first',
    object('2026-01-01T00:00:00Z', 'a', 'bar'),
    object('2026-01-01T00:00:00Z', 'a', 'foo'),
    'Gateway/x (its namespace comes first, and their ages are equal or not known)',
  ],
])('the winner of two claims is %s', (_, winner, loser, text) => {
  expect(printWinner('Gateway/x', winner, loser)).toBe(text);
});
