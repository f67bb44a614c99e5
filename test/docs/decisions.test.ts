import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT, read } from './markdown.ts';

const DECISIONS = 'docs/decisions';
const records = readdirSync(join(ROOT, DECISIONS)).filter((file) => file !== 'README.md');

/** The line of the index for a record: number, file and title. */
function entryOf(file: string): string {
  const [, number, title] = /^# (\d{4}): (.+)\n/.exec(read(`${DECISIONS}/${file}`)) ?? [];
  return `* [${number}](${file}): ${title}`;
}

test('the index of decisions has each record once, with its title', () => {
  expect(records.length).toBeGreaterThan(100);
  const entries = read(`${DECISIONS}/README.md`)
    .split('\n')
    .filter((line) => line.startsWith('* '));
  expect(entries.toSorted()).toEqual(records.map(entryOf).toSorted());
});

test('the number of a decision is that of its file, and no two have the same', () => {
  const numbers = records.map((file) => entryOf(file).slice(3, 7));
  expect(numbers).toEqual(records.map((file) => file.slice(0, 4)));
  expect(new Set(numbers).size).toBe(numbers.length);
});
