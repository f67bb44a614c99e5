import type { ObjectSink } from '../api/source.ts';
import { Backoff } from '../base/backoff.ts';
import { type Clock, aborted, sleep } from '../base/clock.ts';
import { StagedSink } from './staged-sink.ts';

/** Why a source is not up to date. */
export interface Trouble {
  /** For people: with the kind and the server's answer if these are known. */
  readonly reason: string;
  readonly since: Date;
}

/** Something that reads objects from elsewhere until its signal fires. */
export interface RemoteSource {
  /** Resolves once everything was delivered; rejects if this cannot work, and the source is started again later. */
  readonly ready: Promise<void>;
  /** Resolves once the signal has fired and nothing of it runs any more. */
  readonly ended: Promise<void>;
  /** What keeps it from being up to date; it keeps trying by itself. */
  trouble(): Trouble | undefined;
  figures(): SourceFigures;
}

export interface SourceFigures {
  /** How many it has, by kind. */
  readonly objects: Readonly<Record<string, number>>;
  /** Since it was last heard from. */
  readonly stalenessSeconds: number;
  /** Objects, or parts of them, that were skipped because they cannot be read. */
  readonly unreadable?: number;
  /** How much is kept of it, and how much may be, in bytes. */
  readonly memory?: { readonly used: number; readonly most: number };
  /** What its account may not do, what is missing for it, and what to grant; for people. */
  readonly missingRights?: readonly string[];
}

/** Never throws: a source that cannot start rejects `ready`. */
export type StartSource<Source extends RemoteSource> = (sink: ObjectSink, signal: AbortSignal) => Source;

export interface ConnectionOptions<Access, Source extends RemoteSource> {
  readonly access: Access;
  readonly start: StartSource<Source>;
  readonly clock: Clock;
  readonly random: () => number;
  /** Called once, when everything was read and is staged. If it throws, all is read again. */
  readonly onWhole: (staged: StagedSink) => void;
}

/** Milliseconds between two starts of a source that does not work. */
const FIRST_DELAY = 1_000;
const LONGEST_DELAY = 60_000;

/** One way to reach a cluster: a source, started again until everything was read once, then kept. */
export class Connection<Access, Source extends RemoteSource> {
  readonly access: Access;
  readonly #options: ConnectionOptions<Access, Source>;
  readonly #ending = new AbortController();
  readonly #running: Promise<void>;
  #source: Source | undefined;
  #staged = new StagedSink();
  #failure: Trouble | undefined;

  constructor(options: ConnectionOptions<Access, Source>) {
    this.#options = options;
    this.access = options.access;
    this.#running = this.#run(this.#ending.signal);
  }

  /** Something was read. */
  get isHeard(): boolean {
    return this.#staged.heard;
  }

  /** Undefined between two starts. */
  get source(): Source | undefined {
    return this.#source;
  }

  figures(): SourceFigures | undefined {
    return this.#source?.figures();
  }

  trouble(): Trouble | undefined {
    return this.#source?.trouble() ?? this.#failure;
  }

  /** Nothing of it reaches a sink any more. Resolves once nothing of it runs. */
  async close(): Promise<void> {
    this.#staged.close();
    this.#ending.abort();
    await this.#running;
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { start, clock, random, onWhole } = this.#options;
    const backoff = new Backoff({ base: FIRST_DELAY, cap: LONGEST_DELAY, random });
    const over = aborted(signal);
    while (!signal.aborted) {
      const end = new AbortController();
      const staged = (this.#staged = new StagedSink());
      const source = (this.#source = start(staged, AbortSignal.any([signal, end.signal])));
      try {
        await Promise.race([source.ready, over]);
        if (!signal.aborted) {
          onWhole(staged);
          this.#failure = undefined;
          await over;
        }
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        this.#failure = { reason, since: this.#failure?.since ?? clock.date() };
      }
      staged.close();
      end.abort();
      await source.ended;
      this.#source = undefined;
      if (!signal.aborted) await sleep(clock, backoff.next(), { signal });
    }
  }
}
