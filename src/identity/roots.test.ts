import { expect, test } from 'vitest';
import { writePem } from './pem.ts';
import { mergeRoots } from './roots.ts';

const [a, b, c] = ['a', 'b', 'c'].map((text) => writePem('CERTIFICATE', Buffer.from(text)));

test.each<[string, readonly string[], string]>([
  ['nothing', [], ''],
  ['one', [a!], a!],
  ['old and new', [a!, b!], a! + b!],
  ['the new one first', [b!, a!], b! + a!],
  ['the same one twice', [a!, a!], a!],
  ['the same one in other line breaks', [a!, a!.replaceAll('\n', '\r\n')], a!],
  ['bundles that overlap', [a! + b!, b! + c! + a!], a! + b! + c!],
  ['an empty bundle', ['', a!], a!],
  ['comments and a key', [`# old\n${a!}${writePem('PRIVATE KEY', Buffer.from('k'))}`], a!],
])('roots are merged without repetition, in order of first appearance: %s', (_, pems, expected) => {
  expect(mergeRoots(pems)).toBe(expected);
});

test('a root that is cut off is not dropped silently', () => {
  expect(() => mergeRoots([a!, b!.slice(0, -5)])).toThrow('not valid PEM');
});
