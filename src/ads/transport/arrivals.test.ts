import { expect, test } from 'vitest';
import { Arrivals } from './arrivals.ts';

test('one address has half of the places, all together have all, and a place that is left is free', () => {
  const arrivals = new Arrivals(4);
  const begun: string[] = [];
  const enter = (name: string, address: string) => arrivals.enter(address, () => begun.push(name));
  const first = enter('1', 'a');
  expect(enter('2', 'a')).toBeTypeOf('function');
  expect(enter('3', 'a')).toBe('address full');
  expect(enter('4', 'b')).toBeTypeOf('function');
  expect(enter('5', 'c')).toBeTypeOf('function');
  expect(enter('6', 'd')).toBe('full');
  expect(begun).toEqual(['1', '2', '4', '5']);
  for (let i = 0; i < 2; i++) (first as () => void)();
  expect(enter('7', 'a')).toBeTypeOf('function');
  expect(enter('8', 'd')).toBe('full');
});

test('two thousand streams of one address begin at once, and those after them second by second', () => {
  const arrivals = new Arrivals(100_000);
  let begun = 0;
  const enter = (address: string): void => void arrivals.enter(address, () => begun++);
  arrivals.tick(0);
  for (let i = 0; i < 3_200; i++) enter('a');
  expect([begun, arrivals.waiting]).toEqual([2_000, 1_200]);
  enter('b');
  expect([begun, arrivals.waiting]).toEqual([2_001, 1_200]);
  for (const [now, more] of [
    [1_000, 500],
    [2_000, 1_000],
    [3_000, 1_200],
  ] as const) {
    arrivals.tick(now);
    expect([begun, arrivals.waiting]).toEqual([2_001 + more, 1_200 - more]);
  }
});

test('who gives up waiting does not begin', () => {
  const arrivals = new Arrivals(100_000);
  let late = false;
  arrivals.tick(0);
  for (let i = 0; i < 2_000; i++) arrivals.enter('a', () => {});
  const leave = arrivals.enter('a', () => (late = true));
  (leave as () => void)();
  arrivals.tick(10_000);
  expect([late, arrivals.waiting]).toEqual([false, 0]);
});

test('addresses are forgotten when they may begin as much as any', () => {
  const arrivals = new Arrivals(1_000_000);
  arrivals.tick(0);
  for (let i = 0; i < 20_000; i++) (arrivals.enter(`${i}`, () => {}) as () => void)();
  expect(arrivals.addresses).toBe(10_000);
  arrivals.tick(1_000);
  expect(arrivals.addresses).toBe(0);
});
