import { expect, test } from 'vitest';
import { BufferPool } from './buffer-pool.ts';

test('a buffer that was given back is taken again, the shortest that is long enough', () => {
  const pool = new BufferPool(1_000_000);
  const [short, long] = [pool.take(70_000), pool.take(200_000)];
  expect(pool.take(1)).not.toBe(short);
  pool.give(long);
  pool.give(short);
  expect(pool.take(71_000)).toBe(short);
  expect(pool.take(71_000)).toBe(long);
  expect(pool.take(200_001).length).toBeGreaterThan(200_000);
});

test('no more is kept than was said', () => {
  const pool = new BufferPool(300_000);
  const buffers = [1, 2, 3].map(() => pool.take(131_072));
  for (const buffer of buffers) pool.give(buffer);
  expect([1, 2, 3].map(() => buffers.includes(pool.take(131_072)))).toEqual([true, true, false]);
  pool.give(buffers[0]!);
  pool.clear();
  expect(buffers).not.toContain(pool.take(131_072));
});
