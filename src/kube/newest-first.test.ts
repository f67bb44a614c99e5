import { expect, test } from 'vitest';
import { NewestFirst } from './newest-first.ts';

/** Takes so many. */
function take(queue: NewestFirst, count: number): (string | undefined)[] {
  return Array.from({ length: count }, () => {
    const key = queue.next();
    if (key !== undefined) queue.delete(key);
    return key;
  });
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

test('a key that is not taken stays', () => {
  const queue = new NewestFirst();
  queue.add('a');
  expect([queue.next(), queue.next(), queue.size]).toEqual(['a', 'a', 1]);
  queue.clear();
  expect([queue.next(), queue.size]).toEqual([undefined, 0]);
});
