import fc from 'fast-check';
import { expect, test } from 'vitest';
import { PairIndex } from './pair-index.ts';

const lane = fc.oneof(fc.integer({ min: -2, max: 2 }), fc.integer());

test('what was added can be taken, and the rest is left', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(lane, lane), { maxLength: 60 }), fc.array(fc.tuple(lane, lane)), (added, taken) => {
      const index = new PairIndex(added.length);
      const places = new Map<string, number>();
      added.forEach(([a, b], place) => {
        index.add(a, b, place);
        if (!places.has(`${a} ${b}`)) places.set(`${a} ${b}`, place);
      });
      const wanted = [...taken, ...added.slice(0, 10)];
      for (const [a, b] of wanted) expect(index.take(a, b)).toBe(places.has(`${a} ${b}`));
      for (const [a, b] of wanted) places.delete(`${a} ${b}`);
      expect([...index.untaken()]).toEqual([...places.values()]);
    }),
  );
});

test('a pair that is repeated over and over takes one place', () => {
  const index = new PairIndex(200_000);
  for (let i = 0; i < 200_000; i++) index.add(5, 7, i);
  expect([...index.untaken()]).toEqual([0]);
});
