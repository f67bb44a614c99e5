/** One document of a file: parsed, cached and, if broken, reported on its own. */
export interface DocumentText {
  readonly text: string;
  /** Line of the file on which the text begins, counted from 1. */
  readonly line: number;
}

// `---` at the start of a line is always a marker, even within quotes and block scalars (YAML 1.2, c-forbidden).
// `^` with the multiline flag will not do: it also matches after U+2028.
const marker = /(?:^|\n)---(?=[ \t\r\n]|$)/g;

/** Splits a file at its document markers, like kubectl, so that a broken document cannot swallow its neighbours. */
export function splitDocuments(file: string): DocumentText[] {
  const unmarked = file.startsWith('\ufeff') ? file.slice(1) : file;
  // kubectl ends the last line with a newline: a block scalar is longer by that.
  const text = unmarked === '' || unmarked.endsWith('\n') ? unmarked : `${unmarked}\n`;
  const starts = [0];
  for (const match of text.matchAll(marker)) starts.push(match.index + match[0].length - 3);
  const documents: DocumentText[] = [];
  let line = 1;
  for (const [index, start] of starts.entries()) {
    const part = text.slice(start, starts[index + 1] ?? text.length);
    documents.push({ text: part, line });
    line += countLines(part);
  }
  return documents;
}

function countLines(text: string): number {
  let count = 0;
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) count++;
  return count;
}
