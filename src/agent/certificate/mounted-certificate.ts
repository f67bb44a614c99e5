import { join } from 'node:path';
import { mergeRoots } from '../../identity/roots.ts';
import type { AgentLog } from '../log.ts';
import type { CertificateSource } from './certificate-source.ts';
import { NAMES } from './files.ts';
import { type Certificate, pairProblem, rootsProblem } from './verdict.ts';
import { type FileWatch, WatchedFiles, isContent } from './watched-files.ts';

export interface MountedCertificateOptions {
  /** Has the three files of {@link NAMES}. */
  readonly directory: string;
  /** Roots of peers besides those that are mounted, PEM. */
  readonly trusted: readonly string[];
  /** Keeps it for others. Must not throw. */
  readonly save: (certificate: Certificate) => void;
  readonly log: AgentLog;
  readonly signal: AbortSignal;
}

/**
 * The workload's certificate as somebody else mounts it and renews it. For whom it is, and until when, is theirs to decide.
 * Files that do not belong together, as in the middle of a change, leave the last good ones in use.
 */
export class MountedCertificate implements CertificateSource {
  readonly #options: MountedCertificateOptions;
  readonly #files: WatchedFiles;
  readonly #watches: Readonly<Record<keyof Certificate, FileWatch>>;
  readonly #listeners = new Set<() => unknown>();
  #current: Certificate | undefined;
  #trusted: readonly string[] = [];
  #problem: string;

  constructor(options: MountedCertificateOptions) {
    const { directory, signal } = options;
    this.#options = options;
    this.#problem = `the files in ${directory} have not been read yet`;
    this.#files = new WatchedFiles(signal);
    const watch = (name: string): FileWatch => this.#files.watch(join(directory, name), () => this.#read());
    this.#watches = { chain: watch(NAMES.chain), key: watch(NAMES.key), roots: watch(NAMES.roots) };
  }

  get current(): Certificate | undefined {
    return this.#current;
  }

  get roots(): string {
    if (this.#current === undefined) return '';
    return mergeRoots([this.#current.roots, ...this.#options.trusted, ...this.#trusted]);
  }

  get problem(): string | undefined {
    return this.#current === undefined ? this.#problem : undefined;
  }

  onChange(listener: () => unknown): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Whoever mounts the certificate decides when another root signs it: that is not waited for. */
  trust(roots: readonly string[]): Promise<void> {
    const problem = roots.map(rootsProblem).find((each) => each !== undefined);
    if (problem !== undefined) return Promise.reject(new Error(`the trust bundle is not used: ${problem}`));
    this.#trusted = roots;
    this.#changed();
    return Promise.resolve();
  }

  async first(): Promise<void> {
    const { signal } = this.#options;
    if (this.#current !== undefined || signal.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const stop = this.onChange(() => this.#current !== undefined && resolve());
    signal.addEventListener('abort', () => resolve(), { once: true });
    await promise;
    stop();
  }

  keep(): Promise<void> {
    return this.look();
  }

  /** Looks at the files now, not only from time to time. Resolves when it has. */
  look(): Promise<void> {
    return this.#files.look();
  }

  #read(): void {
    const { directory, save, log } = this.#options;
    const found = this.#found();
    if (typeof found === 'string') {
      const rest = this.#current === undefined ? 'there is none' : 'the last one stays';
      if (found !== this.#problem) log.warn(`The mounted certificate is not used; ${rest}`, { reason: found });
      this.#problem = found;
      return;
    }
    this.#problem = '';
    const { current } = this;
    if (current !== undefined && PARTS.every((part) => current[part] === found[part])) return;
    this.#current = found;
    log.info('Using the mounted certificate', { directory });
    save(found);
    this.#changed();
  }

  /** Or why it is not used. */
  #found(): Certificate | string {
    const texts: Partial<Record<keyof Certificate, string>> = {};
    for (const part of PARTS) {
      const { state } = this.#watches[part];
      if (isContent(state)) texts[part] = state.text;
      else if (typeof state === 'object') return state.refused;
      else return `there is no ${join(this.#options.directory, NAMES[part])}`;
    }
    const certificate = texts as Certificate;
    return pairProblem(certificate) ?? certificate;
  }

  #changed(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}

const PARTS = ['chain', 'key', 'roots'] as const;
