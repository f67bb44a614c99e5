/** Directories whose files are devices, or are made as they are read: they may block or have no end. */
const special: readonly string[] = ['/dev', '/proc', '/sys'];

/** Bytes. Linux's PATH_MAX is 4096. */
const longestPath = 1024;

/** A file on a proxy's disk as an object names it: its one spelling, or a clause that says what is wrong with it. */
export function readFilePath(text: string): { readonly path: string } | { readonly problem: string } {
  if (!text.startsWith('/')) return { problem: 'is not an absolute path; start it with /.' };
  if (Buffer.byteLength(text) > longestPath) return { problem: `is longer than ${longestPath} bytes.` };
  // An agent gets the names of a certificate and its key with ~ between them.
  if (/[~\p{Cc}]/u.test(text)) return { problem: 'has a control character or ~ in it; rename the file.' };
  const path = normalizePath(text);
  if (path === '/') return { problem: 'is a directory; name a file.' };
  const directory = specialDirectory(path);
  if (directory !== undefined)
    return { problem: `is in ${directory}, whose files are not read; copy it, or mount a Secret elsewhere.` };
  return { path };
}

/** The special directory that an absolute, normalized path is in. */
export function specialDirectory(path: string): string | undefined {
  return special.find((directory) => path === directory || path.startsWith(`${directory}/`));
}

/** An absolute path without `.`, `..` and empty names. */
function normalizePath(path: string): string {
  const names: string[] = [];
  for (const name of path.split('/'))
    if (name === '..') names.pop();
    else if (name !== '' && name !== '.') names.push(name);
  return `/${names.join('/')}`;
}
