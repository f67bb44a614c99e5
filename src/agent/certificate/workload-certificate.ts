import { type Clock, sleep } from '../../base/clock.ts';
import { mergeRoots } from '../../identity/roots.ts';
import { Backoff } from '../../base/backoff.ts';
import type { AgentLog } from '../log.ts';
import type { CertificateSource } from './certificate-source.ts';
import { newKey } from './key.ts';
import { type Certificate, lifeOf, problemOf, rootsProblem } from './verdict.ts';

export interface WorkloadCertificateOptions {
  /** SPIFFE ID. */
  readonly identity: string;
  /** Has a CSR signed: the chain, and the roots last. Rejects with the reason. */
  readonly sign: (csr: string) => Promise<readonly string[]>;
  /** Keeps it for a restart of this process. Must not throw. */
  readonly save: (certificate: Certificate) => void;
  /** Roots of peers besides those that come with certificates, PEM. */
  readonly trusted?: readonly string[];
  /** Part of its life after which a certificate is renewed; 0.5 by default. */
  readonly renewAfter: number;
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly log: AgentLog;
  readonly signal: AbortSignal;
}

/** Renewals of workloads that started together are spread over this part of a certificate's life. */
const SPREAD = 0.02;
/** Milliseconds between attempts: while there is no certificate, and while there still is a good one. */
const [WAITING, RENEWING] = [
  { base: 500, cap: 20_000 },
  { base: 5_000, cap: 300_000 },
];

/** Milliseconds that at least pass between renewals, however short certificates are, or often roots change. */
const LEAST = 5_000;

/** The workload's certificate: has it signed, and renewed while the old one is still good. */
export class WorkloadCertificate implements CertificateSource {
  readonly #options: WorkloadCertificateOptions;
  readonly #listeners = new Set<() => unknown>();
  #current: Certificate | undefined;
  /** When it was signed, by the clock of this machine: the certificate is backdated, and the clock may be ahead. */
  #received: Date | undefined;
  #trusted: readonly string[] = [];
  /** It may be from before a change of roots. */
  #isOutdated = false;
  /** When one was last requested for that reason, on the clock that never jumps. */
  #replacedAt = -Infinity;
  #problem = 'no certificate was requested yet';
  /** Wakes up the loop before its time. */
  #wake = new AbortController();

  constructor(options: WorkloadCertificateOptions) {
    this.#options = options;
  }

  get current(): Certificate | undefined {
    return this.#current;
  }

  /** All roots that peers may have, PEM; empty until there is a certificate. */
  get roots(): string {
    if (this.#current === undefined) return '';
    return mergeRoots([this.#current.roots, ...(this.#options.trusted ?? []), ...this.#trusted]);
  }

  /** Why there is no certificate, or undefined if there is one. */
  get problem(): string | undefined {
    return this.#current === undefined ? this.#problem : undefined;
  }

  /** Calls it when the certificate or the roots change. */
  onChange(listener: () => unknown): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Uses one that was saved, if it is still good. */
  resume(saved: Certificate): void {
    const { identity, clock, log } = this.#options;
    // A process or machine that ended while they were written may have left the key of one and the chain of another, or
    // half of a file.
    const problem = problemOf(saved, identity, clock.date());
    if (problem !== undefined)
      return log.info('Not using the certificate from before the restart', { reason: problem });
    log.info('Using the certificate from before the restart', { expires: this.#life(saved)?.expires });
    this.#use(saved);
  }

  /**
   * Trusts these roots besides those of the certificate, and replaces it where they are new: another root may have come
   * into force. Settles once there is a certificate from after that, or the signal has fired. Rejects, and changes nothing,
   * if they cannot be read.
   */
  async trust(roots: readonly string[]): Promise<void> {
    const problem = roots.map(rootsProblem).find((each) => each !== undefined);
    if (problem !== undefined) throw new Error(`the trust bundle is not used: ${problem}`);
    const before = this.roots;
    this.#trusted = roots;
    if (!sameRoots(before, this.roots)) {
      this.#isOutdated = true;
      this.#changed();
      this.#wakeUp();
    }
    await this.#until(() => !this.#isOutdated);
  }

  /** Settles once there is a certificate, or the signal has fired. */
  async first(): Promise<void> {
    await this.#until(() => this.#current !== undefined);
  }

  async #until(isSo: () => boolean): Promise<void> {
    const { signal } = this.#options;
    if (isSo() || signal.aborted) return;
    await new Promise<void>((resolve) => {
      const done = (): void => {
        stop();
        signal.removeEventListener('abort', done);
        resolve();
      };
      const stop = this.onChange(() => isSo() && done());
      signal.addEventListener('abort', done);
    });
  }

  /** Has certificates signed until the signal fires. */
  async keep(): Promise<void> {
    const { random, signal, log } = this.#options;
    const backoff = { waiting: new Backoff({ ...WAITING!, random }), renewing: new Backoff({ ...RENEWING!, random }) };
    let said = '';
    while (!signal.aborted) {
      // Whatever goes wrong, it goes on: without it, the certificate would expire.
      try {
        await this.#sleep(this.#dueIn());
        if (signal.aborted) return;
        // Something else may have renewed it, or the clock may have been set.
        if (this.#dueIn() > 0) continue;
        await this.#renew();
        backoff.waiting.reset();
        backoff.renewing.reset();
        said = '';
      } catch (error) {
        if (signal.aborted) return;
        this.#problem = reasonOf(error);
        // Once for each reason, whatever times it names: it is tried for as long as it takes.
        const topic = this.#problem.replaceAll(/\d+/g, '0');
        if (said !== topic) log.warn('No certificate from the control plane; trying again', { reason: this.#problem });
        said = topic;
        const isGood = this.#life() !== undefined;
        await this.#sleep((isGood ? backoff.renewing : backoff.waiting).next());
      }
    }
  }

  /** Milliseconds. */
  #dueIn(): number {
    const life = this.#life();
    if (life === undefined) return 0;
    if (this.#isOutdated) return Math.max(0, this.#replacedAt + LEAST - this.#options.clock.now());
    const earliest = this.#received === undefined ? 0 : this.#received.getTime() + LEAST;
    return Math.max(0, Math.max(life.renew, earliest) - this.#options.clock.date().getTime());
  }

  #life(of = this.#current) {
    const { identity, clock, renewAfter } = this.#options;
    const part = renewAfter + (this.#jitter - 0.5) * SPREAD;
    return of && lifeOf(of, identity, clock.date(), { part, received: this.#received });
  }

  #jitter = 0.5;

  /** At most an hour: the wall clock may be set meanwhile, and a laptop may sleep. */
  async #sleep(ms: number): Promise<void> {
    const { clock, signal } = this.#options;
    await sleep(clock, Math.min(ms, 3_600_000), { signal: AbortSignal.any([signal, this.#wake.signal]) });
  }

  async #renew(): Promise<void> {
    const { identity, sign, save, clock, log } = this.#options;
    const trusted = this.#trusted;
    if (this.#isOutdated) this.#replacedAt = clock.now();
    const { key, csr } = await newKey(identity);
    const signed = await sign(csr);
    const certificate = { chain: signed.slice(0, -1).join(''), key, roots: signed.at(-1)! };
    const received = clock.date();
    const problem = problemOf(certificate, identity, received);
    if (problem !== undefined) throw new Error(problem);
    if (trusted === this.#trusted) this.#isOutdated = false;
    this.#use(certificate, received);
    save(certificate);
    log.info('Certificate received', { identity, expires: this.#life()?.expires });
  }

  #use(certificate: Certificate, received?: Date): void {
    [this.#current, this.#received] = [certificate, received];
    this.#jitter = this.#options.random();
    this.#changed();
    this.#wakeUp();
  }

  #wakeUp(): void {
    this.#wake.abort();
    this.#wake = new AbortController();
  }

  #changed(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return 'details' in error && typeof error.details === 'string' && error.details !== ''
    ? error.details
    : error.message;
}

const sameRoots = (a: string, b: string): boolean => a.length === b.length && mergeRoots([a, b]).length === a.length;
