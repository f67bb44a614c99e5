import { expect, test } from 'vitest';
import { fill, placeholdersIn } from './placeholders.ts';

const values = { number: 5, list: ['a', 'b'], map: { x: 1 }, text: 'hi: [', empty: '', none: undefined };

test.each([
  ['a whole text takes the value as it is', { a: '${number}', b: '${map}' }, { a: 5, b: { x: 1 } }],
  ['within text, values are printed', { a: 'n${number}-${text}-${none}-${map}' }, { a: 'n5-hi: [--{"x":1}' }],
  ['a value never becomes structure', { a: '${text}' }, { a: 'hi: [' }],
  ['a field without a value is left out', { a: '${none}', b: 1 }, { b: 1 }],
  ['an empty value is a value', { a: '${empty}' }, { a: '' }],
  ['the items of a list take its place', { a: ['x', '${list}', 'y', '${none}'] }, { a: ['x', 'a', 'b', 'y'] }],
  ['a list that is written in a list stays one', { a: [['x']] }, { a: [['x']] }],
  ['a list in a map stays a list', { a: '${list}' }, { a: ['a', 'b'] }],
  [
    'a variable without a value is left out',
    {
      env: [
        { name: 'A', value: '${none}' },
        { name: 'B', value: '' },
      ],
    },
    { env: [{ name: 'B', value: '' }] },
  ],
  ['what looks like one may be written', { a: '$${text} $(POD) $x' }, { a: '${text} $(POD) $x' }],
  ['values are not looked through again', { a: '${loop}' }, { a: '${text}' }],
])('%s', (_, content, filled) => {
  expect(fill(content, { ...values, loop: '${text}' })).toEqual(filled);
});

test('placeholders are found with their place', () => {
  expect(placeholdersIn('a ${b} $${c} ${d}')).toEqual([
    { name: 'b', offset: 2 },
    { name: 'd', offset: 13 },
  ]);
});
