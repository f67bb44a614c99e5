import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type Page, ROOT, read, readPage, targetOf } from './markdown.ts';

const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], { cwd: ROOT, encoding: 'utf8' })
  .split('\n')
  .filter((path) => path !== '' && existsSync(join(ROOT, path)));
const pages = new Map<string, Page>();

function pageAt(path: string): Page {
  const page = pages.get(path) ?? readPage(path);
  pages.set(path, page);
  return page;
}

/** What is wrong with a reference from a file; nothing if it leads somewhere. */
function broken(from: string, path: string, anchor: string | undefined): string[] {
  if (!existsSync(join(ROOT, path))) return [`${from}: there is no ${path}`];
  if (anchor === undefined || !path.endsWith('.md')) return [];
  return pageAt(path).anchors.has(anchor) ? [] : [`${from}: ${path} has no section #${anchor}`];
}

test('every link between documents leads to a file, and to a section that it has', () => {
  const documents = files.filter((path) => path.endsWith('.md'));
  expect(documents.length).toBeGreaterThan(100);
  const wrong = documents.flatMap((from) =>
    pageAt(from)
      .links.filter((link) => !/^[a-z]+:/.test(link))
      .flatMap((link) => {
        const { path, anchor } = targetOf(from, link);
        return broken(from, path, anchor);
      }),
  );
  expect(wrong).toEqual([]);
});

test('every document that code, charts and texts name exists, with the section', () => {
  const named = files.filter((path) => /\.(md|ts|ya?ml|txt|json|js|tpl)$|file$/.test(path) && !path.startsWith('test/truth/cases/'));
  let count = 0;
  const wrong = named.flatMap((from) =>
    [...read(from).matchAll(/(?<![\w/.-])((?:docs|examples|charts|test|tools)\/[\w./-]+\.md)(?:#([\w-]+))?/g)].flatMap(([, path = '', anchor]) => {
      count++;
      return broken(from, path, anchor);
    }),
  );
  expect(count).toBeGreaterThan(20);
  expect(wrong).toEqual([]);
});
