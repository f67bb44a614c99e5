import type { Clock } from './clock.ts';
import { FairSemaphore, Permit } from './fair-semaphore.ts';

/** What was last known. */
export interface Known<Answer> {
  /** Undefined: nothing yet. */
  readonly answer: Answer | undefined;
  /** When it was asked for successfully, on the clock; undefined: never. */
  readonly at: number | undefined;
}

export interface FreshAnswersOptions<Question, Answer> {
  /** `again`: milliseconds until the next time. Rejects if there is no answer, and when the signal fires. */
  readonly ask: (
    question: Question,
    signal: AbortSignal,
  ) => Promise<{ readonly answer: Answer; readonly again: number }>;
  /** The answer while none can be had. The error may be a {@link NoAnswer}. */
  readonly failed: (error: unknown, known: Known<Answer>) => Answer | undefined;
  /** After a failure: first and longest delay. Milliseconds. */
  readonly retry: { readonly first: number; readonly longest: number };
  /** Milliseconds after which no answer counts as a failure; absent: whoever asks decides. */
  readonly patience?: (question: Question) => number;
  /** Whether a question that is asked already need not be asked anew. */
  readonly isSame: (a: Question, b: Question) => boolean;
  /** Questions asked at a time; those of one client may be half of them. Others wait for their turn. */
  readonly atOnce: number;
  readonly clientOf: (key: string, question: Question) => string;
  /** Called whenever an answer changes; undefined if it is no longer wanted. */
  readonly write: (key: string, answer: Answer | undefined) => void;
  readonly clock: Pick<Clock, 'after' | 'now'>;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly signal: AbortSignal;
}

/** Nobody has answered in time. */
export class NoAnswer extends Error {
  constructor(ms: number) {
    super(`no answer within ${ms} ms`);
  }
}

interface Entry<Question, Answer> {
  readonly key: string;
  readonly question: Question;
  readonly turn: Permit;
  known: Known<Answer>;
  failures: number;
  cancel: () => void;
}

/** Keeps the answers to questions up to date: each is asked at once, and then again and again, while it is wanted. */
export class FreshAnswers<Question, Answer> {
  readonly #options: FreshAnswersOptions<Question, Answer>;
  readonly #entries = new Map<string, Entry<Question, Answer>>();
  readonly #turns: FairSemaphore;

  constructor(options: FreshAnswersOptions<Question, Answer>) {
    this.#options = options;
    this.#turns = new FairSemaphore(options.atOnce);
    options.signal.addEventListener('abort', () => {
      const entries = [...this.#entries.values()];
      this.#entries.clear();
      for (const entry of entries) entry.cancel();
    });
  }

  /** How many questions are wanted. */
  get size(): number {
    return this.#entries.size;
  }

  has(key: string): boolean {
    return this.#entries.has(key);
  }

  want(key: string, question: Question): void {
    const { signal, isSame, clientOf } = this.#options;
    if (signal.aborted) return;
    const before = this.#entries.get(key);
    if (before !== undefined && isSame(before.question, question)) return;
    before?.cancel();
    const { known, failures } = before ?? { known: { answer: undefined, at: undefined }, failures: 0 };
    const turn = new Permit(this.#turns, clientOf(key, question));
    const entry = { key, question, turn, known, failures, cancel: () => undefined };
    this.#entries.set(key, entry);
    this.#enqueue(entry);
  }

  unwant(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    entry.cancel();
    this.#entries.delete(key);
    this.#options.write(key, undefined);
  }

  #enqueue(entry: Entry<Question, Answer>): void {
    const { turn } = entry;
    entry.cancel = () => turn.leave();
    turn.take(() => void this.#ask(entry).finally(() => turn.leave()));
  }

  async #ask(entry: Entry<Question, Answer>): Promise<void> {
    const { ask, clock, random, signal: ended } = this.#options;
    const end = new AbortController();
    const stop = (): void => end.abort();
    const cancelTimer = this.#giveUpInTime(entry, end);
    ended.addEventListener('abort', stop);
    entry.cancel = stop;
    const result = await ask(entry.question, end.signal).catch((error: unknown) => ({
      error: end.signal.aborted ? (end.signal.reason as unknown) : error,
    }));
    cancelTimer?.();
    ended.removeEventListener('abort', stop);
    // It was given up, or replaced, meanwhile.
    if (ended.aborted || this.#entries.get(entry.key) !== entry) return;
    const delay = this.#keep(entry, result);
    entry.cancel = clock.after(delay * (0.9 + 0.2 * random()), () => this.#enqueue(entry));
  }

  #giveUpInTime({ question }: Entry<Question, Answer>, end: AbortController): (() => void) | undefined {
    const { clock, patience } = this.#options;
    const ms = patience?.(question);
    return ms === undefined ? undefined : clock.after(ms, () => end.abort(new NoAnswer(ms)));
  }

  /** Milliseconds until the next time. */
  #keep(
    entry: Entry<Question, Answer>,
    result: { readonly answer: Answer; readonly again: number } | { readonly error: unknown },
  ): number {
    const { failed, retry, write, clock } = this.#options;
    const before = entry.known;
    if ('error' in result) {
      entry.failures = Math.min(entry.failures + 1, 30);
      entry.known = { answer: failed(result.error, before), at: before.at };
    } else {
      entry.failures = 0;
      entry.known = { answer: result.answer, at: clock.now() };
    }
    const { answer } = entry.known;
    if (JSON.stringify(before.answer) !== JSON.stringify(answer)) write(entry.key, answer);
    return 'error' in result ? Math.min(retry.longest, retry.first * 2 ** (entry.failures - 1)) : result.again;
  }
}
