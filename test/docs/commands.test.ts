import { globSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { PAGES, ROOT, isCommands, read, readPage } from './markdown.ts';

/** Blocks that no test runs, with the reason. */
const untested = parse(read('test/docs/untested.yaml')) as Readonly<Record<string, string>>;

const blocks = PAGES.flatMap((page) => readPage(page).blocks);

/** By the id of a block: test files that name it. */
const tested = new Map<string, string[]>();
for (const file of globSync('test/**/*.ts', { cwd: ROOT }))
  for (const [, id = ''] of read(file).matchAll(/['`"]([\w./-]+\.md#[\w-]+(?::\w+)?(?:\/\d+)?)\b/g))
    tested.set(id, [...(tested.get(id) ?? []), file]);

test('a test runs every block of commands, and reads every other block, or the list of the others has it', () => {
  expect(blocks.length).toBeGreaterThan(70);
  const open = blocks.filter(({ id, file }) => !tested.has(id) && file === undefined && !(id in untested));
  expect(open.map(({ id }) => id)).toEqual([]);
});

test('the list of what no test runs has only such blocks, each with a reason', () => {
  const known = new Set(blocks.map(({ id }) => id));
  for (const [id, reason] of Object.entries(untested)) {
    expect(known).toContain(id);
    expect(tested.has(id), id).toBe(false);
    expect(reason).toMatch(/^\S.{10,}\.$/s);
  }
});

test('tests name no block that is gone', () => {
  const known = new Set(blocks.map(({ id }) => id));
  expect([...tested].filter(([id]) => !known.has(id))).toEqual([]);
});

test('every block has a language', () => {
  const languages = ['sh', 'console', 'yaml', 'json', 'text'];
  expect(blocks.filter(({ language }) => !languages.includes(language)).map(({ id }) => id)).toEqual([]);
});

test('only a block of commands is numbered together with others', () => {
  expect(blocks.filter(({ id, language }) => id.includes(':') === isCommands(language))).toEqual([]);
});
