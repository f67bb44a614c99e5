import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT, read } from './markdown.ts';

const rows = read('docs/architecture.md')
  .split('\n')
  .flatMap((line, i) => (line.startsWith('|') ? [{ line: i + 1, cells: line.replaceAll(/^\| | \|$/g, '').split(' | ') }] : []));

test('no cell of a table is longer than 200 characters: what a file is about is in the file', () => {
  const long = rows.flatMap(({ line, cells }) => cells.filter((cell) => cell.length > 200).map(() => line));
  expect(rows.length).toBeGreaterThan(200);
  expect(long).toEqual([]);
});

test('every folder of the code map exists', () => {
  const folders = rows.flatMap(({ cells }) => [...cells[0]!.matchAll(/`((?:src|test|bench|charts|crds|examples)\/[\w/-]*)`/g)]);
  expect(folders.length).toBeGreaterThan(30);
  expect(folders.map(([, path = '']) => path).filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
});
