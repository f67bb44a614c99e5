import { type BigIntStats, constants } from 'node:fs';
import { open, readdir, realpath, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { isMissing, reasonOf } from './files.ts';
import { Wake } from './wake.ts';
import { Watchers } from './watchers.ts';

export interface FolderOptions {
  /** A directory of small files, such as a mounted Secret. It may not exist yet. */
  readonly path: string;
  /** Files that are read: the first ones by name. */
  readonly mostFiles: number;
  /** In bytes. A larger file is not read. */
  readonly largestFile: number;
  /** Called once at first, and after each change. */
  readonly found: (content: FolderContent) => void;
  readonly signal: AbortSignal;
  /** Milliseconds between looks without a notification from the file system. */
  readonly pollInterval?: number;
}

export interface FolderContent {
  /** By name. */
  readonly files: ReadonlyMap<string, FileText>;
  /** Files beyond those that are read. */
  readonly ignored: number;
  /** Why the directory cannot be read; its files are those that were known. */
  readonly problem?: string;
}

export type FileText = { readonly text: string } | { readonly problem: string };

export interface Folder {
  /** Resolves once {@link FolderOptions.found} was called. */
  readonly read: Promise<void>;
  /** Resolves once the signal has fired and nothing is watched any more. */
  readonly ended: Promise<void>;
}

/** Wait after a notification: writers often make several changes in a row. Milliseconds, as are all of these. */
const QUIET = 20;
/** A file that changed less than this ago may be half-written, and a change soon after may leave its times as they are. */
const SETTLED = 50;
/** Time for which a file may be missing: editors remove a file before they write the new one. */
const GONE = 50;
const POLL = 5_000;

/**
 * Follows the files of one directory. Hidden names are skipped, and so are directories. A mounted Secret or ConfigMap is
 * read as one version, that to which its `..data` leads.
 */
export function followFolder(options: FolderOptions): Folder {
  const first = Promise.withResolvers<void>();
  const follower = new Follower(options);
  const run = async (): Promise<void> => {
    await follower.look();
    first.resolve();
    await follower.run();
  };
  return { read: first.promise, ended: run() };
}

interface Known {
  /** Changes when the content does; empty: it is to be read again. */
  readonly stamp: string;
  readonly content: FileText;
  /** On the clock of `performance`. */
  readonly missingSince?: number;
}

interface Listed {
  readonly names: readonly string[];
  readonly ignored: number;
  readonly directory: string;
}

class Follower {
  readonly #options: FolderOptions;
  readonly #wake = new Wake();
  readonly #watchers = new Watchers(() => this.#wake.up());
  #known = new Map<string, Known>();
  #said: FolderContent | undefined;
  /** Milliseconds after which to look although nothing was heard. */
  #pause = 0;

  constructor(options: FolderOptions) {
    this.#options = options;
  }

  async run(): Promise<void> {
    const { signal } = this.#options;
    while (!signal.aborted) {
      const changed = await this.#wake.wait(this.#pause, signal);
      if (changed) await new Wake().wait(QUIET, signal);
      if (signal.aborted) break;
      this.#wake.clear();
      await this.look();
    }
    this.#watchers.close();
  }

  /** Never rejects. */
  async look(): Promise<void> {
    const { signal, found, pollInterval = POLL } = this.#options;
    this.#pause = pollInterval;
    const listed = await this.#list().catch((error: unknown) => reasonOf(error));
    if (typeof listed === 'object') await this.#read(listed);
    if (signal.aborted) return;
    const files = new Map(Array.from(this.#known, ([name, { content }]) => [name, content]));
    const content: FolderContent =
      typeof listed === 'object' ? { files, ignored: listed.ignored } : { files, ignored: 0, problem: listed };
    if (this.#said !== undefined && isSame(content, this.#said)) return;
    this.#said = content;
    found(content);
  }

  async #list(): Promise<Listed> {
    const { path, mostFiles } = this.#options;
    // A mounted Secret is a link to a directory, which is replaced as a whole.
    const directory = await realpath(join(path, '..data')).catch(() => path);
    const watched = new Map<string, string>();
    for (const each of new Set([path, directory])) watched.set(each, identityOf(await stat(each, { bigint: true })));
    // What changes before a watch begins is seen by the next look.
    if (this.#watchers.follow(watched).added) this.#pause = 0;
    const entries = await readdir(directory);
    const names = entries.filter((name) => !name.startsWith('.')).sort();
    return { directory, names: names.slice(0, mostFiles), ignored: Math.max(0, names.length - mostFiles) };
  }

  async #read({ directory, names }: Listed): Promise<void> {
    const now = performance.now();
    const known = new Map<string, Known>();
    for (const name of names) {
      const next = await this.#fileAt(join(directory, name), this.#known.get(name));
      if (next !== undefined) known.set(name, next);
    }
    for (const [name, former] of this.#known) {
      const missingSince = former.missingSince ?? now;
      if (known.has(name) || now - missingSince >= GONE) continue;
      this.#lookSoon(GONE);
      known.set(name, { ...former, stamp: '', missingSince });
    }
    this.#known = known;
  }

  /** Undefined: there is no such file. */
  async #fileAt(path: string, former: Known | undefined): Promise<Known | undefined> {
    const { largestFile } = this.#options;
    try {
      const stats = await stat(path, { bigint: true });
      if (stats.isDirectory()) return undefined;
      if (!stats.isFile()) return { stamp: '', content: sameOr(former?.content, NOT_A_FILE) };
      const isFresh = Math.abs(Date.now() - Number(stats.mtimeMs)) < SETTLED;
      if (isFresh) this.#lookSoon(SETTLED);
      const stamp = isFresh ? '' : stampOf(stats);
      if (former !== undefined && stamp !== '' && former.stamp === stamp) return former;
      return { stamp, content: sameOr(former?.content, await readFile(path, largestFile)) };
    } catch (error) {
      if (isMissing(error)) return undefined;
      return { stamp: '', content: sameOr(former?.content, { problem: `cannot be read: ${reasonOf(error)}` }) };
    }
  }

  #lookSoon(ms: number): void {
    this.#pause = Math.min(this.#pause, ms);
  }
}

const NOT_A_FILE: FileText = { problem: 'is not a file' };

/** What is equal stays the same, so that a change is seen without a comparison of all texts. */
function sameOr(former: FileText | undefined, content: FileText): FileText {
  return former !== undefined && isDeepStrictEqual(former, content) ? former : content;
}

function isSame(a: FolderContent, b: FolderContent): boolean {
  if (a.problem !== b.problem || a.ignored !== b.ignored || a.files.size !== b.files.size) return false;
  for (const [name, content] of a.files) if (b.files.get(name) !== content) return false;
  return true;
}

async function readFile(path: string, most: number): Promise<FileText> {
  // The file may have been replaced by a pipe: opening one to read from it would block.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const content = Buffer.alloc(most + 1);
    let length = 0;
    for (;;) {
      const { bytesRead } = await file.read(content, length, content.length - length, length);
      length += bytesRead;
      if (bytesRead === 0 || length > most) break;
    }
    if (length > most) return { problem: `is longer than ${most} bytes` };
    return { text: content.toString('utf8', 0, length) };
  } finally {
    await file.close();
  }
}

function stampOf({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return `${dev}:${ino}:${size}:${mtimeNs}:${ctimeNs}`;
}

function identityOf({ dev, ino }: BigIntStats): string {
  return `${dev}:${ino}`;
}
