import { describe, expect, onTestFinished, test, vi } from 'vitest';
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
    'where a key is there twice': ['a:\n  b: 1\n  b: 2', { line: 3, path: ['a', 'b'], message: 'appears twice' }],
    'where a key of JSON is there twice': ['{"a":\n1, "a": 2}', { line: 2, path: ['a'], message: 'appears twice' }],
    'where a tab indents': [
      'a:\n\tb: 1',
      { line: 2, path: [], message: 'is indented with a tab; YAML allows spaces only' },
    ],
    'where half of a surrogate pair is escaped': [
      'a: 1\nb: "\\ud800"',
      { line: 2, path: [], message: 'is not valid YAML: \\ud800 is not a Unicode character' },
    ],
    'where half of a surrogate pair is a key': [
      '{"\\udc00": 1}',
      { line: 1, path: [], message: 'is not valid YAML: \\udc00 is not a Unicode character' },
    ],
    'where a number is infinite': ['{"a": 1e999}', { line: 1, path: [], message: 'is a number that JSON cannot hold' }],
    'where aliases multiply': [bomb, { line: 7, path: ['a6', 0], message: 'is repeated by too many aliases' }],
    'where an alias contains itself': [
      'a: &a [*a]',
      { line: 1, path: ['a', 0], message: 'is an alias that contains itself, or nests too deeply' },
    ],
    'where a directive has a document of its own': [
      '# for others\n%YAML 1.1\n# and then',
      {
        line: 2,
        path: [],
        message: 'is not valid YAML: kubectl takes no directives before ---; remove the line',
      },
    ],
    'where a template is not filled in': [
      'a: 1\nb: {{ .Values.b }}',
      {
        line: 2,
        path: [],
        message: 'looks like a template with {{ ... }}; render it first, for example with "helm template"',
      },
    ],
    'where a template stands among the entries of a flow map': [
      'a: 1\nb: {c: 1, d: {{ .Values.d }}}',
      {
        line: 2,
        path: [],
        message: 'looks like a template with {{ ... }}; render it first, for example with "helm template"',
      },
    ],
    'where lines of a template stand among the others': [
      'a:\n  b: 1\n{{- if .Values.c }}\n  c: 1\n{{- end }}',
      {
        line: 3,
        path: [],
        message: 'looks like a template with {{ ... }}; render it first, for example with "helm template"',
      },
    ],
    'where a key is not a string': [
      'a: 1\nb: {[c]: 1}',
      { line: 2, path: ['b'], message: 'has a key that is not a string' },
    ],
    'where a quote is not closed': [
      'a: 1\nb: "x\nc: 1',
      { line: 2, path: [], message: 'is not valid YAML: quoted text is never closed' },
    ],
    'where a bracket is not closed': [
      'a:\n- b: [1,\n  2\n',
      { line: 2, path: [], message: 'is not valid YAML: [ is never closed' },
    ],
    'where a bracket that may begin a key is not closed': [
      'a: 1\nb:\n- {c: 1',
      { line: 3, path: [], message: 'is not valid YAML: { is never closed' },
    ],
    'where YAML nests without end': [
      '['.repeat(50_000),
      { line: 1, path: [], message: 'is nested more than 100 levels deep' },
    ],
    'where JSON nests without end': [
      `${'{"a":'.repeat(101)}1${'}'.repeat(101)}`,
      { line: 1, path: [], message: 'is nested more than 100 levels deep' },
    ],
  };
  test.each(Object.entries(refused))('%s', (_, [text, broken]) => {
    expect(readDocument(text)).toEqual({ broken });
  });
});

// What kubectl makes of some two thousand texts is compared in test/yaml.
describe('a document is read as kubectl reads it', () => {
  test.each<[string, string, unknown]>([
    [
      'with booleans of YAML 1.1',
      'a: yes\nb: Off\nc: y\nd: N\ne: "no"',
      { a: true, b: false, c: true, d: false, e: 'no' },
    ],
    [
      'with integers as Go has them',
      'a: 0777\nb: 0o17\nc: 0b11\nd: 1_000\ne: 08',
      { a: 511, b: 15, c: 3, d: 1000, e: 8 },
    ],
    ['with dates and times as text', 'a: 2026-01-31\nb: 1:30', { a: '2026-01-31', b: '1:30' }],
    ['with merged maps', 'a: &a {k: 1, l: 1}\nb:\n  <<: *a\n  l: 2', { a: { k: 1, l: 1 }, b: { k: 1, l: 2 } }],
    ['with maps merged over what stands above', 'a: &a {k: 1}\nb:\n  k: 2\n  <<: *a', { a: { k: 1 }, b: { k: 1 } }],
    [
      'with anchors that are defined again',
      'a: &a 1\nb: &b [&a 2]\nc: &a 3\nd: *b\ne: *a',
      { a: 1, b: [2], c: 3, d: [2], e: 3 },
    ],
    ['with carriage returns', 'a: 1\r\nb: |\r\n  x\r\n  y\r\n', { a: 1, b: 'x\ny\n' }],
    ['with JSON indented by tabs', '{\n\t"a": [\n\t\t1\n\t]\n}', { a: [1] }],
    ['with a surrogate pair in an escape', '{"a": "\\ud83d\\ude00"}', { a: '😀' }],
    ['with keys that are numbers', '80: a\n0x1F: b', { '80': 'a', '31': 'b' }],
    [
      'with quotes that go on left of their key',
      'a:\n  b: "c\nd"\n  e: {f: "g\n"}',
      { a: { b: 'c d', e: { f: 'g ' } } },
    ],
    ['with colons at the end of what stands in a list', 'a: [1.2.3.4, 2001:db8::]', { a: ['1.2.3.4', '2001:db8::'] }],
    [
      'with brackets that close left of their key',
      'a:\n  b: [\n  c\n]\n  d: {\ne: f}',
      { a: { b: ['c'], d: { e: 'f' } } },
    ],
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

test('a text that is cut off anywhere is read or refused', () => {
  const text = '{? [a, {b: "c"}] : &d [*d, !e f]}\n---\n- [x: y,\n  {}]\n- - {k: |\n  {"z": [1, \'2\'';
  for (let length = 0; length <= text.length; length++)
    for (const start of [0, text.indexOf('- [')])
      expect(readDocument(text.slice(start, length))).toEqual(
        expect.toSatisfy((content: object) => 'value' in content || 'broken' in content),
      );
});

test('a map of a hundred thousand keys is read without comparing each with each', () => {
  const keys = Array.from({ length: 100_000 }, (_, i) => `k${i}: ${i}`).join('\n');
  expect(Object.keys(value(keys) as object)).toHaveLength(100_000);
});

test('a line of dashes that is not YAML is refused at once', () => {
  expect(readDocument(`a: [\n${'-  '.repeat(1_000)}x`)).toMatchObject({ broken: { line: 2 } });
});

test('JSON is read as such, behind a marker too', () => {
  const parse = vi.spyOn(JSON, 'parse');
  onTestFinished(() => parse.mockRestore());
  for (const marker of ['', '---\n', '--- ']) {
    parse.mockClear();
    expect(value(`${marker}{"a": [1, {"b": 2}]}\n`)).toEqual({ a: [1, { b: 2 }] });
    expect(parse.mock.results[0]?.value).toEqual({ a: [1, { b: 2 }] });
  }
});
