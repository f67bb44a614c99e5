import { expect, test, vi } from 'vitest';
import { IdentityMemo } from './identity-memo.ts';

test('is worked out once for the same objects in the same order', () => {
  const alike = new IdentityMemo<string | undefined>();
  const work = vi.fn(() => undefined);
  const [a, b] = [{}, {}];
  for (let i = 0; i < 3; i++) alike.of([a, b], work);
  expect(work).toHaveBeenCalledTimes(1);
  expect(alike.of([b, a], () => 'other')).toBe('other');
  expect(alike.of([a, b, a], () => 'with more')).toBe('with more');
  expect(alike.of([a], () => 'with less')).toBe('with less');
  expect(alike.of([a, {}], () => 'equal only')).toBe('equal only');
});

test('keeps no more results than it was told', () => {
  const alike = new IdentityMemo<object>(2);
  const [a, b, c] = [{}, {}, {}];
  const [first, second] = [alike.of([a], () => ({})), alike.of([b], () => ({}))];
  expect(alike.of([c], () => ({}))).toBeDefined();
  expect(alike.of([a], () => ({}))).not.toBe(first);
  expect(alike.of([b], () => ({}))).not.toBe(second);
});
