import { expect, test } from 'vitest';
import { type LabelRequirement, type LabelSelector, matchesLabels } from './label-selector.ts';

const by = (...matchExpressions: readonly LabelRequirement[]): LabelSelector => ({ matchExpressions });
const is = (operator: LabelRequirement['operator'], ...values: string[]): LabelSelector =>
  by({ key: 'env', operator, values });

test.each<[string, LabelSelector, boolean, boolean, boolean]>([
  ['nothing', by(), true, true, true],
  ['In', is('In', 'a', 'c'), true, false, false],
  ['NotIn', is('NotIn', 'a', 'c'), false, true, true],
  ['Exists', is('Exists'), true, true, false],
  ['DoesNotExist', is('DoesNotExist'), false, false, true],
  ['labels', { matchLabels: { env: 'a' } }, true, false, false],
  ['both', { matchLabels: { env: 'a' }, ...is('In', 'b') }, false, false, false],
])('by %s', (_, selector, a, b, none) => {
  expect([{ env: 'a' }, { env: 'b' }, {}].map((labels) => matchesLabels(selector, labels))).toEqual([a, b, none]);
});

test('names of every object are not labels', () => {
  expect(matchesLabels(by({ key: 'constructor', operator: 'Exists', values: [] }), {})).toBe(false);
});
