import { expect, test } from 'vitest';
import { NewestFirst } from './newest-first.ts';

function take(queue: NewestFirst, count: number): (string | undefined)[] {
  return Array.from({ length: count }, () => queue.take());
}

test('the newest change goes first, and every fifth time the oldest', () => {
  const queue = new NewestFirst();
  for (const key of ['a', 'b', 'c', 'd', 'e', 'f', 'g']) queue.add(key);
  expect(take(queue, 8)).toEqual(['g', 'f', 'e', 'd', 'a', 'c', 'b', undefined]);
});

test('a key that changes again has the place of its last change, once', () => {
  const queue = new NewestFirst();
  for (const key of ['a', 'b', 'c', 'a']) queue.add(key);
  expect(queue.size).toBe(3);
  expect(take(queue, 4)).toEqual(['a', 'c', 'b', undefined]);
});

test('a key that is taken away is not taken', () => {
  const queue = new NewestFirst();
  for (const key of ['a', 'b']) queue.add(key);
  queue.delete('b');
  expect([queue.size, ...take(queue, 2), queue.size]).toEqual([1, 'a', undefined, 0]);
});
