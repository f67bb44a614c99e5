/** One document of a file: parsed, cached and broken on its own. */
export interface DocumentText {
  readonly text: string;
  /** Line of the file on which the text begins, counted from 1. */
  readonly line: number;
}

// `---` and `...` at the start of a line are markers wherever they stand, also within quotes and block scalars
// (YAML 1.2, c-forbidden). `^` of a multiline pattern will not do: it matches behind U+2028 too.
const marker = /(?:^|\n)(---|\.\.\.)(?=[ \t\r\n]|$)/g;

/**
 * Cuts a file at its document markers, as kubectl does, so that a broken document cannot swallow its neighbours.
 * Documents of comments only are left out.
 */
export function splitDocuments(file: string): DocumentText[] {
  const text = file.startsWith('\ufeff') ? file.slice(1) : file;
  const starts = [0];
  for (const match of text.matchAll(marker)) starts.push(match.index + match[0].length - 3);
  const documents: DocumentText[] = [];
  let line = 1;
  for (const [index, start] of starts.entries()) {
    const part = text.slice(start, starts[index + 1] ?? text.length);
    // What follows `...` on its line can only be a comment.
    const body = part.startsWith('...') ? part.replace(/^[^\n]*/, '') : part;
    if (!isNothing(body)) documents.push({ text: body, line });
    line += countLines(part);
  }
  return documents;
}

/** Blank lines, comments, directives and a `---` without content. */
function isNothing(text: string): boolean {
  const line = /(?:---(?=[ \t\r\n]|$)|%[^\n]*)?[ \t\r]*(?:#[^\n]*)?(?:\n|$)/y;
  while (line.lastIndex < text.length) if (!line.test(text)) return false;
  return true;
}

function countLines(text: string): number {
  let count = 0;
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) count++;
  return count;
}
