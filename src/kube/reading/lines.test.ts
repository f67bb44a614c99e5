import fc from 'fast-check';
import { expect, test } from 'vitest';
import { LineSplitter } from './lines.ts';

test('lines come out whole, however the bytes are cut', () => {
  const line = fc.string({ unit: 'binary', minLength: 1 }).map((text) => text.replaceAll('\n', ' ').toWellFormed());
  fc.assert(
    fc.property(fc.array(line), fc.array(fc.nat(50)), (lines, cuts) => {
      const bytes = Buffer.from(lines.map((text) => `${text}\n`).join(''));
      const splitter = new LineSplitter();
      const found: string[] = [];
      let at = 0;
      for (const cut of cuts) {
        found.push(...splitter.push(bytes.subarray(at, at + cut)));
        at += cut;
      }
      found.push(...splitter.push(bytes.subarray(at)));
      expect(found).toEqual(lines);
    }),
  );
});

test('what follows the last newline is not a line yet, and empty lines are none', () => {
  const splitter = new LineSplitter();
  expect(splitter.push(Buffer.from('a\n\nb'))).toEqual(['a']);
  expect(splitter.push(Buffer.from('c\n'))).toEqual(['bc']);
});

test('a line without end is an error', () => {
  const splitter = new LineSplitter();
  const chunk = Buffer.alloc(16 * 1024 * 1024, 'x');
  expect(() => {
    for (let i = 0; i < 5; i++) splitter.push(chunk);
  }).toThrow('does not end');
});
