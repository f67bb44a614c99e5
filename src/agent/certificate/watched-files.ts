import { X509Certificate } from 'node:crypto';
import { type Stats, constants } from 'node:fs';
import { open, realpath, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { specialDirectory } from '../../model/file-path.ts';
import { LARGEST } from './files.ts';

/** PEM. */
export interface FileContent {
  readonly text: string;
  /** The certificates in it that can be read, nothing else: Envoy would reject all of them for one that cannot. */
  readonly roots: string;
}

/** What is known of a file. */
export type FileState =
  /** Not looked at yet. */
  | 'unknown'
  /** There is none, or it is empty. */
  | 'absent'
  | FileContent
  /** Why it is not read. */
  | { readonly refused: string };

/** Someone's interest in a file. */
export interface FileWatch {
  readonly state: FileState;
  close(): void;
}

/** Under one of its names. */
interface NamedFile {
  readonly path: string;
  readonly listeners: Set<() => void>;
  state: FileState;
  /** Where its links lead; empty: not known. */
  real: string;
  isBusy: boolean;
}

/** Once, however many names and links lead to it. */
interface RealFile {
  state: FileState;
  /** Tells whether it is still the same. */
  stamp: string;
  /** Its last look. */
  round: number;
  looking: Promise<void> | undefined;
}

/** Milliseconds between looks: the files of a mounted Secret change. */
const EVERY = 5_000;
/** A file system that hangs has no more than these of the process's threads. */
const AT_ONCE = 2;
/** Bytes of all files together. */
const MOST = 64 * 1024 * 1024;
/** Certificates that are parsed before others have their turn: about 5 ms. */
const PARSED_AT_ONCE = 50;

/**
 * Files that others name, such as whoever writes a DestinationRule. Only plain files of bounded size are read, outside
 * the event loop, and only again when they have changed.
 */
export class WatchedFiles {
  readonly #named = new Map<string, NamedFile>();
  readonly #real = new Map<string, RealFile>();
  readonly #waiting = new Set<NamedFile>();
  readonly #changed = new Set<NamedFile>();
  #busy = 0;
  #round = 0;
  #idle = Promise.withResolvers<void>();

  constructor(signal: AbortSignal) {
    const timer = setInterval(() => void this.look(), EVERY);
    timer.unref();
    signal.addEventListener('abort', () => clearInterval(timer), { once: true });
  }

  /** Says when the state of the file changes, until it is closed. Throws for a path that is never read. */
  watch(named: string, onChange: () => void): FileWatch {
    const path = resolve(named);
    refuseSpecial(named, path);
    const file = this.#named.get(path) ?? { path, listeners: new Set(), state: 'unknown', real: '', isBusy: false };
    this.#named.set(path, file);
    const listener = (): void => onChange();
    file.listeners.add(listener);
    if (file.state === 'unknown') this.#enqueue([file]);
    return {
      get state() {
        return file.state;
      },
      close: () => {
        if (!file.listeners.delete(listener) || file.listeners.size > 0) return;
        this.#named.delete(path);
        this.#waiting.delete(file);
        this.#forget(file.real);
      },
    };
  }

  /** Looks at all files. Resolves when it has. */
  look(): Promise<void> {
    this.#round++;
    void this.#tell();
    this.#enqueue(this.#named.values());
    return this.#busy === 0 ? Promise.resolve() : this.#idle.promise;
  }

  #enqueue(files: Iterable<NamedFile>): void {
    // What hangs is not waited for twice.
    for (const file of files) if (!file.isBusy) this.#waiting.add(file);
    while (this.#busy < AT_ONCE && this.#waiting.size > 0) {
      this.#busy++;
      void this.#work();
    }
  }

  async #work(): Promise<void> {
    for (const file of this.#waiting) {
      this.#waiting.delete(file);
      file.isBusy = true;
      const { real, state } = await this.#lookAt(file.path);
      file.isBusy = false;
      const former = file.real;
      file.real = real;
      if (former !== real) this.#forget(former);
      if (this.#named.get(file.path) !== file) this.#forget(real);
      else if (!isSame(state, file.state)) {
        file.state = state;
        this.#changed.add(file);
      }
    }
    if (--this.#busy > 0) return;
    await this.#tell();
    if (this.#busy > 0) return;
    this.#idle.resolve();
    this.#idle = Promise.withResolvers();
  }

  /** Only once all have been looked at: a certificate changes together with its key. */
  async #tell(): Promise<void> {
    const changed = [...this.#changed];
    this.#changed.clear();
    for (const { listeners } of changed)
      for (const listener of [...listeners]) {
        if (listeners.has(listener)) listener();
        // Encoding a secret takes milliseconds, and thousands may be waiting for the same file.
        await setImmediate();
      }
  }

  async #lookAt(path: string): Promise<{ readonly real: string; readonly state: FileState }> {
    try {
      const real = await realpath(path);
      refuseSpecial(path, real);
      const file = this.#real.get(real) ?? { state: 'unknown', stamp: '', round: -1, looking: undefined };
      this.#real.set(real, file);
      if (file.looking === undefined && file.round < this.#round) {
        file.round = this.#round;
        file.looking = this.#read(real, file).finally(() => (file.looking = undefined));
      }
      await file.looking;
      return { real, state: file.state };
    } catch (error) {
      return { real: '', state: stateOf(path, error) };
    }
  }

  /** Never rejects. */
  async #read(path: string, file: RealFile): Promise<void> {
    try {
      const found = await stat(path);
      const { dev, ino, size, mtimeMs, ctimeMs } = found;
      const stamp = [dev, ino, size, mtimeMs, ctimeMs].join(' ');
      if (stamp === file.stamp) return;
      const others = [...this.#real.values()].reduce((sum, one) => sum + (one === file ? 0 : sizeOf(one.state)), 0);
      const room = MOST - others;
      check(path, found, room);
      const text = await readText(path, room);
      const state = text === '' ? 'absent' : { text, roots: await readableCertificates(text) };
      if (!isSame(state, file.state)) file.state = state;
      file.stamp = stamp;
    } catch (error) {
      file.state = stateOf(path, error);
      file.stamp = '';
    }
  }

  /** Drops what no name leads to. */
  #forget(real: string): void {
    if (real === '') return;
    for (const { real: other } of this.#named.values()) if (other === real) return;
    this.#real.delete(real);
  }
}

export const isContent = (state: FileState): state is FileContent => typeof state === 'object' && 'text' in state;

const sizeOf = (state: FileState): number => (isContent(state) ? state.text.length : 0);

function isSame(a: FileState, b: FileState): boolean {
  if (typeof a === 'string' || typeof b === 'string') return a === b;
  if ('text' in a) return 'text' in b && a.text === b.text;
  return 'refused' in b && a.refused === b.refused;
}

/** The message is for whoever named the file. */
class Refused extends Error {}

function refuseSpecial(named: string, path: string): void {
  const directory = specialDirectory(path);
  if (directory === undefined) return;
  throw new Refused(`${named} is not read: it is${named === path ? '' : ` ${path},`} in ${directory}`);
}

function stateOf(path: string, error: unknown): FileState {
  if (error instanceof Refused) return { refused: error.message };
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT' || code === 'ENOTDIR') return 'absent';
  return { refused: `${path} cannot be read: ${code ?? String(error)}` };
}

/** Throws unless it is a plain file with no more bytes than are read. */
function check(path: string, found: Stats, room: number): void {
  if (!found.isFile()) throw new Refused(`${path} is not read: it is not a plain file`);
  if (found.size > LARGEST)
    throw new Refused(`${path} is not read: it has ${found.size} bytes, and the limit is ${LARGEST}`);
  if (found.size > room)
    throw new Refused(`${path} is not read: the files that objects name have more than ${MOST} bytes together`);
}

/** The text of a file, without space around it. A file without a size, as a kernel makes them, counts as empty. */
async function readText(path: string, room: number): Promise<string> {
  // It may have become something else: a pipe is not waited for, and a link not followed.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  try {
    const found = await file.stat();
    check(path, found, room);
    const bytes = Buffer.alloc(found.size);
    let length = 0;
    for (let read = -1; read !== 0 && length < bytes.length; length += read)
      read = (await file.read(bytes, length, bytes.length - length, length)).bytesRead;
    const text = bytes.toString('utf8', 0, length).trim();
    return text === '' ? '' : `${text}\n`;
  } finally {
    await file.close();
  }
}

async function readableCertificates(pem: string): Promise<string> {
  const found: string[] = [];
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  for (const [i, block] of blocks.entries()) {
    if (i % PARSED_AT_ONCE === PARSED_AT_ONCE - 1) await setImmediate();
    if (isCertificate(block)) found.push(block);
  }
  return found.join('\n');
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem) !== undefined;
  } catch {
    return false;
  }
}
