import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Batch, type Served } from './served.ts';
import { ServedIndex } from './served-index.ts';

const lane = fc.oneof(fc.integer({ min: -2, max: 2 }), fc.integer());
const item = ([a, b]: readonly [number, number]): Served => ({ a, b }) as Served;

test('items are found by their hash, the first of those that have the same', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(lane, lane), { maxLength: 60 }), fc.array(fc.tuple(lane, lane)), (held, others) => {
      const items = held.map(item);
      const half = Math.ceil(items.length / 2);
      const index = new ServedIndex([new Batch(items.slice(0, half)), new Batch(items.slice(half))]);
      for (const [a, b] of [...held, ...others]) {
        expect(index.find(a, b)).toBe(held.findIndex((other) => other[0] === a && other[1] === b));
      }
    }),
  );
});
