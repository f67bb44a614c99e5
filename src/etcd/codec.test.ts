import fc from 'fast-check';
import { expect, test } from 'vitest';
import { bool, bytes, choice, int64, key, many, message, one, text, uint64 } from './codec.ts';

const inner = message({ name: text(1), size: int64(2) });
const outer = message({
  id: uint64(1),
  revision: int64(2),
  at: key(3),
  value: bytes(4),
  isThere: bool(5),
  kind: choice(6),
  inner: one(7, inner),
  all: many(11, inner),
});

const innerValue = fc.record({ name: fc.string(), size: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }) });

test('what is written is read, all 64 bits of it', () => {
  const value = fc.record({
    id: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
    revision: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
    at: fc.string({ unit: fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)) }),
    value: fc.uint8Array().map((array) => Buffer.from(array)),
    isThere: fc.boolean(),
    kind: fc.nat(10),
    inner: innerValue,
    all: fc.array(innerValue),
  });
  fc.assert(fc.property(value, (given) => void expect(outer.decode(outer.encode(given))).toEqual(given)));
});

test('fields that are absent have their defaults, and fields that are not known are skipped', () => {
  expect(inner.decode(Buffer.alloc(0))).toEqual({ name: '', size: 0n });
  const newer = message({ name: text(1), later: one(9, inner), more: int64(200) });
  const written = newer.encode({ name: 'a', later: { name: 'b' }, more: 7n });
  expect(inner.decode(written)).toEqual({ name: 'a', size: 0n });
});

test('two messages share nothing', () => {
  const first = outer.decode(outer.encode({ all: [{ name: 'a' }] }));
  expect(outer.decode(Buffer.alloc(0)).all).toEqual([]);
  expect(first.all).toHaveLength(1);
});

test('a message of more values than any has is refused before it fills the memory', () => {
  expect(() => outer.decode(Buffer.alloc(4 << 20, Buffer.from([(11 << 3) | 2, 0])))).toThrow('more than 100000 values');
});

test.each([
  ['message', [(7 << 3) | 2, 0], 'inner twice'],
  ['number', [2 << 3, 1], 'revision twice'],
])('a %s that is there millions of times is decoded once', (_, bytes, problem) => {
  expect(() => outer.decode(Buffer.alloc(4 << 20, Buffer.from(bytes)))).toThrow(problem);
});

test('bytes that are not a message throw, and do nothing else', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (garbage) => {
      try {
        outer.decode(garbage);
      } catch (error) {
        expect(error).toBeInstanceOf(Error);
      }
    }),
  );
  expect(() => outer.decode(Buffer.from([0x3a, 0x7f]))).toThrow();
});
