import { expect, test } from 'vitest';
import { own } from './own.ts';

test('names that every object knows are members only where they were written', () => {
  const written = JSON.parse('{"__proto__": "a", "constructor": "b"}') as Record<string, string>;
  expect(['__proto__', 'constructor', 'toString', 'c'].map((name) => own(written, name))).toEqual([
    'a',
    'b',
    undefined,
    undefined,
  ]);
});
