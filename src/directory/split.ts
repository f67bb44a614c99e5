/** One document of a file: parsed, cached and broken on its own. */
export interface DocumentText {
  readonly text: string;
  /** Line of the file on which the text begins, counted from 1. */
  readonly line: number;
}

// `---` at the start of a line is a marker wherever it stands, also within quotes and block scalars (YAML 1.2,
// c-forbidden). `^` of a multiline pattern will not do: it matches behind U+2028 too.
const marker = /(?:^|\n)---(?=[ \t\r\n]|$)/g;

/** Cuts a file at its document markers, as kubectl does, so that a broken document cannot swallow its neighbours. */
export function splitDocuments(file: string): DocumentText[] {
  const unmarked = file.startsWith('\ufeff') ? file.slice(1) : file;
  // The last line has an end to kubectl: the text of a block scalar is longer by it.
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
