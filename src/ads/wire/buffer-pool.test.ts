import { expect, test } from 'vitest';
import { BufferPool } from './buffer-pool.ts';

test('a buffer that was given back is taken again for a message of about that length', () => {
  const pool = new BufferPool(1_000_000);
  const [short, long] = [pool.take(70_000), pool.take(200_000)];
  expect(pool.take(1)).not.toBe(short);
  pool.give(long);
  pool.give(short);
  expect(pool.take(71_000)).toBe(short);
  expect(pool.take(71_000)).not.toBe(long);
  expect(pool.take(131_073)).toBe(long);
  expect(pool.take(131_073).length).toBe(262_144);
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

test('a short message is not received into a long buffer: what is in use is bounded by what was announced', () => {
  const pool = new BufferPool(100_000_000);
  for (let i = 0; i < 5; i++) pool.give(pool.take(16_000_000));
  expect(pool.take(70_000).length).toBeLessThanOrEqual(2 * 131_072);
});

test('buffers of a length that nobody asks for any more make room for others', () => {
  const pool = new BufferPool(400_000);
  pool.give(pool.take(300_000));
  const buffer = pool.take(70_000);
  pool.give(buffer);
  expect(pool.take(70_000) === buffer).toBe(true);
});
