import { expect, onTestFinished, test } from 'vitest';
import { parseTree, type Node } from '../yaml/tree.ts';
import { Lines } from './lines.ts';

test.each([
  ['a value', ['spec', 'host'], 6],
  ['an item of a list', ['spec', 'ports', 1, 'name'], 10],
  ['a key with dots, taken for several steps', ['metadata', 'labels', 'app', 'kubernetes', 'io/name'], 4],
  ['the first of two with one key', ['twice'], 12],
  ['a value behind an alias', ['again', 'host'], 6],
  ['what there is on the way to a value that is missing', ['spec', 'ports', 7, 'name'], 7],
  ['nothing of it', ['status'], 1],
])('finds the line of %s', (_, path, line) => {
  const text = `kind: A
metadata:
  labels:
    app.kubernetes.io/name: a
spec: &spec
  host: a
  ports:
  - name: http
    number: 80
  - name: tcp

twice: 1
twice: 2
again: *spec
`;
  expect(new Lines().of(text, path)).toBe(line);
});

test('finds the first line of a text that cannot be parsed', () => {
  expect(new Lines().of('\n{', ['a'])).toBe(1);
});

test('looks at each pair and each line once, however many ask', () => {
  let looks = 0;
  const counting = <T>(array: readonly T[]): readonly T[] =>
    new Proxy(array, {
      get(target, key) {
        if (typeof key === 'string' && /^\d+$/.test(key)) looks++;
        return Reflect.get(target, key) as unknown;
      },
    });
  const counted = (node: Node): Node =>
    node.kind === 'mapping'
      ? { ...node, pairs: counting(node.pairs.map(({ key, value }) => ({ key, value: counted(value) }))) }
      : node;
  const lines = new Lines({ parse: (text) => counted(parseTree(text)!) });
  const keys = Array.from({ length: 1_000 }, (_, i) => `k${i}`);
  const text = keys.map((key) => `${key}: 1\n`).join('');
  let searches = 0;
  const { indexOf } = String.prototype;
  onTestFinished(() => void (String.prototype.indexOf = indexOf));
  String.prototype.indexOf = function (...args) {
    searches++;
    return indexOf.apply(this, args);
  };
  const found = keys.map((key) => lines.of(text, [key]));
  String.prototype.indexOf = indexOf;
  expect(found).toEqual(keys.map((_, i) => i + 1));
  expect(looks).toBe(keys.length);
  expect(searches).toBeLessThan(2 * keys.length);
});

test.each([
  ['an escaped slash', String.raw`"a\/b"`],
  ['an escaped pair of surrogates', String.raw`"\ud83d\ude00"`],
  ['a control character', '"\u007f"'],
])('finds the line of a value in JSON with %s', (_, text) => {
  expect(new Lines().of(`{"note": ${text},\n "spec": {\n  "host": "a"}}`, ['spec', 'host'])).toBe(3);
});

test('keeps what fits of the documents that were asked about last, and always two', () => {
  let parsed = '';
  const lines = new Lines({
    parse(text) {
      parsed += text.charAt(0);
      return parseTree(text);
    },
    kept: 15,
  });
  for (const name of 'abcabcdabcde') lines.of(`${name}: 1`, [name]);
  expect(parsed).toBe('abcdabcde');
  parsed = '';
  for (const name of 'xyxyzx') lines.of(`${name}: ${'1'.repeat(100)}`, [name]);
  expect(parsed).toBe('xyzx');
});
