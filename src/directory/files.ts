import { Buffer } from 'node:buffer';
import { type BigIntStats, closeSync, constants, type Dirent, fstatSync, openSync, readSync } from 'node:fs';
import { readdir, realpath, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** A given path cannot be read. The message is one line that names it. */
export class DirectoryError extends Error {
  override readonly name = 'DirectoryError';
  readonly code = 'DIRECTORY';
}

export interface FoundFile {
  /** As reached from the given path. */
  readonly path: string;
  /** Changes when the content does. */
  readonly stamp: string;
  /** Milliseconds since 1970. */
  readonly modified: number;
  /** Bytes. */
  readonly size: number;
}

export interface Listing {
  /** The files of each given path in turn, ordered by name. */
  readonly files: readonly FoundFile[];
  /** Directories to watch for changes of the files. Directory → its identity. */
  readonly directories: ReadonlyMap<string, string>;
  /** The given paths, or paths within them, that cannot be listed: path → reason. */
  readonly unreadable: ReadonlyMap<string, string>;
}

/** The last is a name that Kustomize knows. */
const readable = /(\.(ya?ml|json)|\/Kustomization)$/i;

/**
 * Lists the files at the paths, recursively. Hidden names are skipped: editors keep copies there, and a mounted
 * ConfigMap its versions, to which the visible names link. A given path that is a file counts whatever its name.
 */
export async function listFiles(paths: readonly string[]): Promise<Listing> {
  const listing = new Lister();
  for (const path of paths) await listing.add(path, 'given');
  return listing;
}

/** At the first read, an unreadable path is the caller's mistake. */
export function refuseUnreadable(listing: Listing): void {
  for (const [path, reason] of listing.unreadable) throw new DirectoryError(`${path}: ${reason}`);
}

/** Number of files to stat at once: in a busy process, each answer takes a round of the event loop. */
const LOOKS_AT_ONCE = 256;

class Lister implements Listing {
  readonly files: FoundFile[] = [];
  readonly directories = new Map<string, string>();
  readonly unreadable = new Map<string, string>();
  readonly #seen = new Set<string>();

  async add(path: string, how: 'given' | 'listed' | 'linked', asked = statsOf(path)): Promise<void> {
    const stats = await asked;
    if (stats instanceof Error) {
      // A name that is already gone, or a broken link, is not a file. A given path must exist.
      if (how === 'given' || !isMissing(stats)) this.unreadable.set(path, reasonOf(stats));
      return;
    }
    if (stats.isDirectory()) return this.#addDirectory(path, stats);
    if (!stats.isFile() && how === 'given') this.unreadable.set(path, 'is neither a file nor a directory');
    if (!stats.isFile() || (how !== 'given' && !readable.test(path)) || this.#seen.has(path)) return;
    this.#seen.add(path);
    if (how !== 'listed') await this.#watchTarget(path);
    this.files.push({
      path,
      stamp: `${stats.dev}:${stats.ino}:${stats.size}:${stats.mtimeNs}:${stats.ctimeNs}`,
      modified: Number(stats.mtimeMs),
      size: Number(stats.size),
    });
  }

  async #addDirectory(path: string, stats: BigIntStats): Promise<void> {
    // Links can form cycles.
    const identity = `${stats.dev}:${stats.ino}`;
    if (this.#seen.has(identity)) return;
    this.#seen.add(identity);
    this.directories.set(path, identity);
    let entries: Dirent[];
    try {
      entries = await readdir(path, { withFileTypes: true });
    } catch (error) {
      this.unreadable.set(path, reasonOf(error));
      return;
    }
    const visible = entries.filter(({ name }) => !name.startsWith('.')).sort((a, b) => (a.name < b.name ? -1 : 1));
    for (let i = 0; i < visible.length; i += LOOKS_AT_ONCE) {
      const asked = visible
        .slice(i, i + LOOKS_AT_ONCE)
        .map((entry) => ({ entry, file: join(path, entry.name), stats: statsOf(join(path, entry.name)) }));
      for (const { entry, file, stats: known } of asked)
        await this.add(file, entry.isSymbolicLink() ? 'linked' : 'listed', known);
    }
  }

  /** A change of a link's target shows in the target's directory, not in the link's. */
  async #watchTarget(path: string): Promise<void> {
    const directories = [dirname(path)];
    try {
      directories.push(dirname(await realpath(path)));
    } catch {
      // Already gone: the next scan will tell.
    }
    for (const directory of directories)
      if (!this.directories.has(directory)) this.directories.set(directory, await identityOf(directory));
  }
}

async function statsOf(path: string): Promise<BigIntStats | Error> {
  return stat(path, { bigint: true }).catch((error: unknown) => error as Error);
}

async function identityOf(directory: string): Promise<string> {
  try {
    const { dev, ino } = await stat(directory, { bigint: true });
    return `${dev}:${ino}`;
  } catch {
    return '';
  }
}

/** Larger files are reported, not read. */
const MAX_SIZE = 32 << 20;

/** Why there is no text. */
export interface Unreadable {
  readonly reason: string;
  /** It may be readable later, although it does not change. */
  readonly passing?: boolean;
}

const tooLarge: Unreadable = { reason: `is larger than ${MAX_SIZE >> 20} MiB and is not read; split it` };

/**
 * The text of a file, or the reason why there is none; undefined for a file that no longer exists. Reads at once: in a
 * busy process, each of the four asynchronous steps would take a round of the event loop, and the file system has just
 * answered for this file.
 */
export function readText({ path, size }: FoundFile): { text: string } | Unreadable | undefined {
  if (size > MAX_SIZE) return tooLarge;
  try {
    const content = contentOf(path);
    return content === undefined ? tooLarge : { text: new TextDecoder('utf-8', { fatal: true }).decode(content) };
  } catch (error) {
    if (isMissing(error)) return undefined;
    if (error instanceof TypeError) return { reason: 'is not UTF-8; save it as UTF-8' };
    return { reason: `cannot be read: ${reasonOf(error)}`, passing: true };
  }
}

/** Undefined if it is too large: files of `/proc` say that they are empty, and others may have grown. */
function contentOf(path: string): Uint8Array | undefined {
  // The file may have been replaced by a pipe: opening one to read from it would block.
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stats = fstatSync(file);
    if (!stats.isFile()) throw new Error('is not a file');
    let content = Buffer.allocUnsafe(Math.min(stats.size, MAX_SIZE) + 1);
    for (let length = 0; ;) {
      const read = readSync(file, content, length, content.length - length, null);
      length += read;
      if (read === 0) return content.subarray(0, length);
      if (length > MAX_SIZE) return undefined;
      if (length === content.length)
        content = Buffer.concat([content], Math.min(MAX_SIZE + 1, Math.max(65_536, 2 * length)));
    }
  } finally {
    closeSync(file);
  }
}

export function isMissing(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException).code;
  return code === 'ENOENT' || code === 'ENOTDIR';
}

/** For people: why something cannot be read. */
export function reasonOf(error: unknown): string {
  const code = (error as NodeJS.ErrnoException).code;
  switch (code) {
    case 'ENOENT':
      return 'no such file or directory';
    case 'EACCES':
    case 'EPERM':
      return 'permission denied';
    default:
      return code ?? String(error);
  }
}
