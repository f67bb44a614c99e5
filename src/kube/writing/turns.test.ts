import { expect, test } from 'vitest';
import { Turns } from './turns.ts';

const take = (turns: Turns, count: number) => Array.from({ length: count }, () => turns.take());

test('namespaces take turns, however many keys one of them has, and whenever these have changed', () => {
  const turns = new Turns();
  for (const key of ['a1', 'a2', 'a3', 'a4']) turns.add('a', key);
  turns.add('b', 'b1');
  turns.add('b', 'b2');
  turns.add('c', 'c1');
  expect(take(turns, 3)).toEqual(['a4', 'b2', 'c1']);
  // It has had its turn.
  turns.add('a', 'a5');
  expect([turns.size, take(turns, 6), turns.size]).toEqual([5, ['a5', 'b1', 'a3', 'a2', 'a1', undefined], 0]);
});

test('what is deleted, or changes again, is not taken twice', () => {
  const turns = new Turns();
  for (const key of ['a', 'b', 'a']) turns.add('n', key);
  turns.add('m', 'c');
  turns.delete('m', 'c');
  turns.delete('m', 'c');
  turns.delete('n', 'other');
  expect([turns.size, take(turns, 3), turns.size]).toEqual([2, ['a', 'b', undefined], 0]);
  turns.add('n', 'a');
  turns.clear();
  expect([turns.size, turns.take()]).toEqual([0, undefined]);
});
