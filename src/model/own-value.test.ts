import { expect, test } from 'vitest';
import { ownValue } from './own-value.ts';

test('names that every object knows are members only where they were written', () => {
  const written = JSON.parse('{"__proto__": "a", "constructor": "b"}') as Record<string, string>;
  expect(['__proto__', 'constructor', 'toString', 'c'].map((name) => ownValue(written, name))).toEqual([
    'a',
    'b',
    undefined,
    undefined,
  ]);
});
