import { open, readdir, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { type Clock, sleep } from '../base/clock.ts';
import type { Injector } from '../injection/injector.ts';
import type { FileProblem } from '../injection/problem.ts';

/** What the files of the directory mean. Never throws. */
export type LoadInjection = (
  files: ReadonlyMap<string, string>,
) => { readonly injector: Injector } | { readonly problems: readonly FileProblem[] };

export interface InjectionFilesOptions {
  /** A directory of files, such as a mounted ConfigMap. */
  readonly directory: string;
  readonly load: LoadInjection;
  readonly clock: Clock;
  readonly log: { info(message: string, fields: object): void; warn(message: string, fields: object): void };
  readonly signal: AbortSignal;
}

/** The kubelet takes a minute to bring a new ConfigMap; notifications would not make it faster. Milliseconds. */
const EVERY = 5_000;
/** The API server's limit for a ConfigMap. Bytes of all files together. */
const LARGEST = 1024 * 1024;
const MOST_FILES = 100;
/** Of a directory that cannot be used, so many problems are logged. */
const MOST_SAID = 10;

/** Follows the templates and values of injection. Those that cannot be used leave the former ones in use. */
export class InjectionFiles {
  readonly #options: InjectionFilesOptions;
  #injector: Injector | undefined;
  #problems: readonly FileProblem[] = [];
  /** What was looked at last. */
  #seen: string | undefined;

  constructor(options: InjectionFilesOptions) {
    this.#options = options;
  }

  /** Of the newest files that can be used; undefined: there have been none. */
  get injector(): Injector | undefined {
    return this.#injector;
  }

  /** Why the newest files are not used; empty if they are. */
  get problems(): readonly FileProblem[] {
    return this.#problems;
  }

  /** Ends with the signal; never rejects. */
  async follow(): Promise<void> {
    const { clock, signal } = this.#options;
    while (!signal.aborted) {
      await this.look();
      await sleep(clock, EVERY, { signal });
    }
  }

  /** Reads the files once. */
  async look(): Promise<void> {
    const { directory, load, log } = this.#options;
    const read = await readFiles(directory);
    const seen = JSON.stringify('files' in read ? [...read.files] : read.problem);
    if (seen === this.#seen) return;
    this.#seen = seen;
    const loaded = 'files' in read ? load(read.files) : { problems: [read.problem] };
    if ('injector' in loaded) {
      this.#injector = loaded.injector;
      this.#problems = [];
      log.info('Injection templates are in use', { directory });
      return;
    }
    this.#problems = loaded.problems;
    log.warn('Injection templates cannot be used', {
      inUse: this.#injector === undefined ? 'none' : 'former',
      problems: loaded.problems.slice(0, MOST_SAID).map(print),
      ...(loaded.problems.length > MOST_SAID && { more: loaded.problems.length - MOST_SAID }),
    });
  }
}

/** `file:line: sentence`. */
function print({ file, line, message }: FileProblem): string {
  return `${line > 0 ? `${file}:${line}` : file}: ${message}`;
}

async function readFiles(
  directory: string,
): Promise<{ readonly files: ReadonlyMap<string, string> } | { readonly problem: FileProblem }> {
  const problem = (message: string) => ({ problem: { file: directory, line: 0, message } });
  try {
    // A mounted ConfigMap is a link to a directory, which is replaced as a whole.
    const real = await realpath(join(directory, '..data')).catch(() => directory);
    const names = (await readdir(real)).filter((name) => !name.startsWith('.')).sort();
    if (names.length > MOST_FILES) return problem(`has more than ${MOST_FILES} files; remove those that are not read`);
    const files = new Map<string, string>();
    let room = LARGEST;
    for (const name of names) {
      const text = await readStart(join(real, name), room + 1);
      room -= text.length;
      if (room < 0) return problem(`has more than ${LARGEST} bytes in its files; make them smaller`);
      files.set(name, text.toString('utf8'));
    }
    return { files };
  } catch (error) {
    return problem(`cannot be read: ${(error as Error).message}`);
  }
}

async function readStart(path: string, most: number): Promise<Buffer> {
  const file = await open(path);
  try {
    const buffer = Buffer.alloc(Math.min(most, (await file.stat()).size));
    const { bytesRead } = await file.read(buffer, 0, buffer.length, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}
