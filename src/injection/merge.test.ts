import { expect, test } from 'vitest';
import { merge } from './merge.ts';

test.each([
  ['maps are merged', { a: { b: 1, c: 1 } }, { a: { b: 2 } }, { a: { b: 2, c: 1 } }],
  ['null removes', { a: 1, b: 1 }, { a: null }, { b: 1 }],
  ['lists without a key are replaced', { args: ['a'] }, { args: ['b'] }, { args: ['b'] }],
  [
    'items are merged by name, in place',
    { containers: [{ name: 'a', image: 'x' }, { name: 'b' }] },
    { containers: [{ name: 'c' }, { name: 'a', args: ['y'] }] },
    { containers: [{ name: 'a', image: 'x', args: ['y'] }, { name: 'b' }, { name: 'c' }] },
  ],
  [
    'a variable is replaced as a whole',
    { env: [{ name: 'A', value: 'x' }] },
    { env: [{ name: 'A', valueFrom: { fieldRef: { fieldPath: 'p' } } }] },
    { env: [{ name: 'A', valueFrom: { fieldRef: { fieldPath: 'p' } } }] },
  ],
  [
    'ports are told apart by protocol',
    { ports: [{ containerPort: 53, protocol: 'UDP' }] },
    { ports: [{ containerPort: 53 }] },
    { ports: [{ containerPort: 53, protocol: 'UDP' }, { containerPort: 53 }] },
  ],
  [
    'an item is removed by a directive',
    { volumes: [{ name: 'a' }, { name: 'b' }] },
    { volumes: [{ name: 'a', $patch: 'delete' }] },
    { volumes: [{ name: 'b' }] },
  ],
  ['a map is replaced by a directive', { a: { b: 1 } }, { a: { $patch: 'replace', c: 1 } }, { a: { c: 1 } }],
])('%s', (_, base, patch, merged) => {
  const before = JSON.stringify(base);
  expect(merge(base, patch)).toEqual(merged);
  expect(JSON.stringify(base)).toBe(before);
});
