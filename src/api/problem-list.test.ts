import { expect, test } from 'vitest';
import type { Problem, ProblemReason } from './problem.ts';
import { boundProblems } from './problem-list.ts';

const object = { source: 's', group: 'g', kind: 'K', namespace: 'n', name: 'o', uid: '', generation: 1 };
const problem = (field: string, reason: ProblemReason = 'RefNotFound', name = 'o'): Problem => ({
  object: { ...object, name },
  field,
  reason,
  message: 'wrong',
});
const many = (count: number, reason?: ProblemReason, name?: string): Problem[] =>
  Array.from({ length: count }, (_, i) => problem(`${i}`, reason, name));

test('as many as an owner reads are kept as they are', () => {
  expect(boundProblems(many(100))).toEqual(many(100));
});

test('one stands for those that are over the limit', () => {
  expect(boundProblems(many(5_000))).toEqual([
    ...many(100),
    { ...problem('100'), message: 'is one of 4900 more findings like these.', standsFor: 4900 },
  ]);
});

test('no reason and no object hides another', () => {
  const found = boundProblems([...many(500), ...many(2, 'Invalid'), ...many(101, 'RefNotFound', 'p')]);
  expect(found.filter(({ reason }) => reason === 'Invalid')).toEqual(many(2, 'Invalid'));
  expect(found.map(({ standsFor = 1 }) => standsFor).reduce((a, b) => a + b)).toBe(500 + 2 + 101);
  expect(found).toHaveLength(101 + 2 + 101);
});

test('bounded once more, they stand for as many', () => {
  const twice = boundProblems([...boundProblems(many(300)), ...many(50)]);
  expect(twice).toHaveLength(101);
  expect(twice.at(-1)).toMatchObject({ standsFor: 250 });
});
