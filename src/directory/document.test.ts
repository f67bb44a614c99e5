import { describe, expect, test } from 'vitest';
import { readDocument } from './document.ts';

const value = (text: string): unknown => {
  const content = readDocument(text);
  return 'value' in content ? content.value : content;
};

const bomb = ['a0: &a0 [x,x,x,x,x,x,x,x,x]']
  .concat(Array.from({ length: 12 }, (_, i) => `a${i + 1}: &a${i + 1} [${Array(9).fill(`*a${i}`).join(',')}]`))
  .join('\n');

describe('a document is refused with the line and the field', () => {
  const refused: Record<string, [string, { line: number; path: unknown[]; message: string }]> = {
    'where a key is there twice': ['a:\n  b: 1\n  b: 2', { line: 3, path: ['a', 'b'], message: 'is there twice' }],
    'where a key of JSON is there twice': ['{"a":\n1, "a": 2}', { line: 2, path: ['a'], message: 'is there twice' }],
    'where a tab indents': [
      'a:\n\tb: 1',
      { line: 2, path: [], message: 'is indented with a tab; YAML allows spaces only' },
    ],
    'where half of a surrogate pair is escaped': [
      'a: 1\nb: "\\ud800"',
      { line: 2, path: ['b'], message: 'has half of a UTF-16 surrogate pair; write valid Unicode' },
    ],
    'where half of a surrogate pair is a key': [
      '{"\\udc00": 1}',
      { line: 1, path: [], message: 'has half of a UTF-16 surrogate pair; write valid Unicode' },
    ],
    'where a number is infinite': [
      '{"a": 1e999}',
      { line: 1, path: ['a'], message: 'is a number that JSON cannot hold' },
    ],
    'where aliases multiply': [bomb, { line: 7, path: ['a6', 0], message: 'is repeated by too many aliases' }],
    'where an alias contains itself': [
      'a: &a [*a]',
      { line: 1, path: ['a', 0], message: 'is an alias that contains itself, or nests too deeply' },
    ],
    'where a template is not filled in': [
      'a: 1\nb: {{ .Values.b }}',
      { line: 2, path: ['b'], message: 'has a key that is not a string' },
    ],
    'where a quote is not closed': [
      'a: 1\nb: "x\nc: 1',
      { line: 3, path: [], message: 'is no valid YAML: Missing closing "quote' },
    ],
    'where YAML nests without end': ['['.repeat(50_000), { line: 1, path: [], message: 'is nested too deeply' }],
    'where JSON nests without end': [
      `${'{"a":'.repeat(101)}1${'}'.repeat(101)}`,
      { line: 1, path: Array(101).fill('a'), message: 'is nested more than 100 levels deep' },
    ],
  };
  test.each(Object.entries(refused))('%s', (_, [text, broken]) => {
    expect(readDocument(text)).toEqual({ broken });
  });
});

describe('a document is read as kubectl reads it', () => {
  test.each<[string, string, unknown]>([
    ['with booleans of YAML 1.1', 'a: yes\nb: Off\nc: "no"', { a: true, b: false, c: 'no' }],
    ['with dates as text', 'a: 2026-01-31', { a: '2026-01-31' }],
    ['with merged maps', 'a: &a {k: 1, l: 1}\nb:\n  <<: *a\n  l: 2', { a: { k: 1, l: 1 }, b: { k: 1, l: 2 } }],
    ['with carriage returns', 'a: 1\r\nb: |\r\n  x\r\n  y\r\n', { a: 1, b: 'x\ny\n' }],
    ['with JSON indented by tabs', '{\n\t"a": [\n\t\t1\n\t]\n}', { a: [1] }],
    ['with a surrogate pair in an escape', '{"a": "\\ud83d\\ude00"}', { a: '😀' }],
    ['with keys that are numbers', '80: a', { '80': 'a' }],
  ])('%s', (_, text, expected) => {
    expect(value(text)).toEqual(expected);
  });

  test.each(['__proto__: {polluted: 1}', '{"__proto__": {"polluted": 1}}', 'a: &a {__proto__: {polluted: 1}}\n<<: *a'])(
    'and __proto__ is a key like any other: %s',
    (text) => {
      const read = value(text) as object;
      expect(({} as { polluted?: number }).polluted).toBeUndefined();
      expect(Object.getPrototypeOf(read)).toBe(Object.prototype);
      expect(JSON.stringify(read)).toContain('"__proto__":{"polluted":1}');
    },
  );
});

test('a map of a hundred thousand keys is read without comparing each with each', () => {
  const keys = Array.from({ length: 100_000 }, (_, i) => `k${i}: ${i}`).join('\n');
  expect(Object.keys(value(keys) as object)).toHaveLength(100_000);
});
