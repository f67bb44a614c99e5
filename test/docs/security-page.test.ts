import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

const page = read('docs/security.md');
const advisories = read('test/e2e/advisories.test.ts');

/** A file, and titles of its tests in quotes. */
const named = [...page.matchAll(/`((?:src|test)\/[^`]+\.test\.ts)`((?:[:,] "[^"]+")+)/g)].flatMap(([, file = '', titles = '']) =>
  [...titles.matchAll(/"([^"]+)"/g)].map(([, title = '']) => ({ file, title })),
);

test('names tests', () => {
  expect(named.length).toBeGreaterThan(50);
});

test.each(named)('$file has "$title"', ({ file, title }) => {
  const text = read(file);
  // A title may go on with what varies.
  expect([`'${title}'`, `"${title}"`, `\`${title}\``, `\`${title} (`].some((written) => text.includes(written))).toBe(true);
});

const ids = /(?:CVE|ISTIO-SECURITY)-\d{4}-\d+/g;

test('has each advisory that is tried on a real Envoy, and no other under its number alone', () => {
  const tried = new Set([...advisories.matchAll(/test\('([^:]+):/g)].flatMap(([, title = '']) => title.match(ids) ?? []));
  const rows = page.slice(page.indexOf('## Advisories')).split('\n').filter((line) => line.startsWith('|'));
  const told = new Set(rows.flatMap((row) => row.split('|').at(-2)!.match(ids) ?? []));
  expect(told.size).toBeGreaterThan(10);
  expect([...told].filter((id) => !tried.has(id))).toEqual([]);
  for (const id of tried) expect(rows.some((row) => row.includes(id)), id).toBe(true);
});
