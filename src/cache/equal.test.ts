import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../testing/runs.ts';
import { deepEqual } from './equal.ts';

const key = fc.constantFrom('a', 'b');

/** Small enough that two of them are often equal, or nearly. */
const { data } = fc.letrec<{ data: unknown }>((tie) => ({
  data: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    fc.constantFrom<unknown>(undefined, null, true, 0, 1, NaN, '', '1'),
    fc.uint8Array({ maxLength: 2, max: 1 }),
    fc.array(tie('data'), { maxLength: 2 }),
    fc.array(fc.tuple(key, tie('data')), { maxLength: 2 }).map((entries) => new Map(entries)),
    fc.array(fc.tuple(key, tie('data')), { maxLength: 2 }).map((entries) => Object.fromEntries(entries)),
  ),
}));

/** A value, and a copy of it in which at most one part is another one. */
const pair = fc
  .tuple(data, fc.nat(5), data)
  .map(([value, at, other]): [unknown, unknown] => [value, changed(structuredClone(value), { at }, other)]);

function changed(value: unknown, left: { at: number }, other: unknown): unknown {
  if (left.at-- === 0) return other;
  if (Array.isArray(value)) return value.map((each) => changed(each, left, other));
  if (value instanceof Map) return new Map([...value].map(([name, each]) => [name, changed(each, left, other)]));
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, changed(each, left, other)]));
}

test('values are equal if all their parts are, whatever they are made of', () => {
  fc.assert(
    fc.property(fc.oneof(pair, fc.tuple(data, data)), ([a, b]) => {
      expect(deepEqual(a, b)).toBe(isDeepStrictEqual(a, b));
      expect(deepEqual(b, a)).toBe(isDeepStrictEqual(a, b));
    }),
    {
      numRuns: runs(2_000),
      examples: [[[{ a: undefined }, { b: undefined }]], [[new Map([['a', undefined]]), new Map([['b', undefined]])]]],
    },
  );
});

test('Sets are equal if they have the same elements', () => {
  expect(deepEqual({ hosts: new Set(['a', 'b']) }, { hosts: new Set(['b', 'a']) })).toBe(true);
  expect(deepEqual({ hosts: new Set(['a']) }, { hosts: new Set(['*a']) })).toBe(false);
  expect(deepEqual(new Set(), {})).toBe(false);
});
