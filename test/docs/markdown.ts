import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';

export const ROOT = join(import.meta.dirname, '../..');

export const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

/** A block of code in a page. */
export interface Block {
  /**
   * Page and section, as `operations.md#upgrade`; the second block of a section as `operations.md#upgrade/2`. Blocks that
   * are not commands are counted by language: `routing.md#split:yaml`.
   */
  readonly id: string;
  readonly page: string;
  readonly language: string;
  /** Path of the file that has this text, as the comment before the block says. */
  readonly file: string | undefined;
  /** Without the indentation of its list. */
  readonly text: string;
}

/** Headings, links and blocks of a page. */
export interface Page {
  readonly path: string;
  readonly anchors: ReadonlySet<string>;
  readonly links: readonly string[];
  readonly blocks: readonly Block[];
}

/** @param path from the root of the repository. */
export function readPage(path: string): Page {
  const anchors = new Set<string>();
  const links: string[] = [];
  const blocks: Block[] = [];
  const counts = new Map<string, number>();
  const lines = read(path).split('\n');
  let section = '';
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i]!;
    const [, indent, language] = /^( *)```(\w*)$/.exec(line) ?? [];
    if (indent === undefined || language === undefined) {
      const [, heading] = /^#+ (.+)$/.exec(line) ?? [];
      if (heading !== undefined) anchors.add((section = anchorOf(heading)));
      for (const [, target = ''] of line.replaceAll(/`[^`]*`/g, '').matchAll(/\]\(([^)\s]+)\)/g)) links.push(target);
      continue;
    }
    const end = lines.indexOf(`${indent}\`\`\``, i + 1);
    const place = `${nameOf(path)}#${section}`;
    const kind = isCommands(language) ? place : `${place} ${language}`;
    const count = (counts.get(kind) ?? 0) + 1;
    counts.set(kind, count);
    const [, file] = /^<!-- (\S+) -->$/.exec(lines[i - 1] ?? '') ?? [];
    const text = lines.slice(i + 1, end).map((each) => each.slice(indent.length));
    blocks.push({
      id: `${isCommands(language) ? place : `${place}:${language}`}${count === 1 ? '' : `/${count}`}`,
      ...{ page: path, language, file, text: `${text.join('\n')}\n` },
    });
    i = end;
  }
  return { path, anchors, links, blocks };
}

/** The pages with blocks that a reader copies. */
export const PAGES = [
  'README.md',
  ...readdirSync(join(ROOT, 'docs/guide'))
    .sort()
    .map((file) => `docs/guide/${file}`),
  ...['docs/check.md', 'docs/compatibility.md', 'docs/security.md', 'examples/guide/README.md', 'CONTRIBUTING.md'],
];

/** The text of a block of the guide, by its id. */
export function blockOf(id: string): string {
  const path = id.slice(0, id.indexOf('#'));
  const page = path.includes('/') || path === 'README.md' ? path : `docs/guide/${path}`;
  const found = readPage(page).blocks.find((block) => block.id === id);
  if (found === undefined) throw new Error(`${page} has no block ${id}`);
  return found.text;
}

/** Pages of the guide by their names alone. */
function nameOf(path: string): string {
  return path.replace(/^docs\/guide\/(?!README)/, '');
}

/** What a reader types, or a transcript of that. */
export function isCommands(language: string): boolean {
  return language === 'sh' || language === 'console';
}

/** As GitHub makes it of a heading. */
function anchorOf(heading: string): string {
  const text = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
  return text.replaceAll(/[^\p{L}\p{N}\-_ ]/gu, '').replaceAll(' ', '-');
}

/** The path that a link in a page leads to, and its anchor. Not for links to other sites. */
export function targetOf(page: string, link: string): { readonly path: string; readonly anchor: string | undefined } {
  const [path = '', anchor] = link.split('#');
  return { path: path === '' ? page : posix.join(dirname(page), path), anchor };
}
