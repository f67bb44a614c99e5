import { expect, test } from 'vitest';
import { settleExportTo } from './export-to.ts';

test.each([
  ['nothing is the default', undefined, ['*'], ['*']],
  ['an empty list is the default', [], ['.', 'b'], ['b', 'own']],
  ['a dot is the own namespace', ['.'], ['*'], ['own']],
  ['namespaces are sorted and distinct', ['z', '.', 'a', 'own', 'z'], ['*'], ['a', 'own', 'z']],
  ['everybody includes everybody else', ['a', '*'], ['.'], ['*']],
  ['nobody stays nobody', ['~'], ['*'], ['~']],
])('%s', (_, values, fallback, settled) => {
  expect(settleExportTo(values, 'own', fallback)).toEqual(settled);
});
