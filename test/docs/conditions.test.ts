import { expect, test } from 'vitest';
import { read } from './markdown.ts';

const page = read('docs/guide/status.md');

/** The reasons of a condition in its table: the names in its first cells. */
function told(type: string): string[] {
  const start = page.indexOf(`| \`${type}\` | what it means | what to do |`);
  const rows = page.slice(start, page.indexOf('\n\n', start)).split('\n').slice(2);
  return rows.flatMap((row) => /^\| `\w+`, `(\w+)` \|/.exec(row)?.[1] ?? []).sort();
}

/** The names that code writes as reasons. */
const written = (file: string): string[] =>
  [...new Set([...read(file).matchAll(/reason: '(\w+)'/g)].map(([, name = '']) => name))].sort();

/** The reasons that code takes from findings: members of these lists. */
const listed = (name: string): string[] => {
  const [, list = ''] = new RegExp(`${name}: readonly ProblemReason\\[\\] = \\[(.*)\\]`).exec(read('src/status/conditions.ts')) ?? [];
  return [...list.matchAll(/'(\w+)'/g)].map(([, reason = '']) => reason);
};

test('the guide has every reason of Accepted, and what to do', () => {
  expect(told('Accepted')).toEqual(['Accepted', ...listed('NOT_ACCEPTED'), ...listed('REMARKS')].sort());
});

test('the guide has every reason of ResolvedRefs, and what to do', () => {
  expect(told('ResolvedRefs')).toEqual(written('src/status/conditions.ts'));
});

test('the guide has every reason of Programmed, and what to do', () => {
  expect(told('Programmed')).toEqual(written('src/status/programmed.ts'));
});
