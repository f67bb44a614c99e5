import { expect, test } from 'vitest';
import { type LabelRequirement, type NamespaceSelector, selectsNamespace } from './namespace-selector.ts';

const by = (...matchExpressions: readonly LabelRequirement[]): NamespaceSelector => ({
  matchLabels: {},
  matchExpressions,
});
const is = (operator: LabelRequirement['operator'], ...values: string[]): NamespaceSelector =>
  by({ key: 'env', operator, values });

test.each<[string, NamespaceSelector, boolean, boolean, boolean]>([
  ['nothing', by(), true, true, true],
  ['In', is('In', 'a', 'c'), true, false, false],
  ['NotIn', is('NotIn', 'a', 'c'), false, true, true],
  ['Exists', is('Exists'), true, true, false],
  ['DoesNotExist', is('DoesNotExist'), false, false, true],
  ['labels', { matchLabels: { env: 'a' }, matchExpressions: [] }, true, false, false],
  ['both', { matchLabels: { env: 'a' }, matchExpressions: is('In', 'b').matchExpressions }, false, false, false],
])('by %s', (_, selector, a, b, none) => {
  expect([{ env: 'a' }, { env: 'b' }, {}].map((labels) => selectsNamespace(selector, labels))).toEqual([a, b, none]);
});

test('names of every object are not labels', () => {
  expect(selectsNamespace(by({ key: 'constructor', operator: 'Exists', values: [] }), {})).toBe(false);
});
