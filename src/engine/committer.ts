import type { Graph, Input, Write } from '../cache/graph.ts';
import type { Clock } from '../base/clock.ts';

export interface CommitterOptions {
  /** What belongs to a change may follow within this time. Milliseconds. */
  readonly quiet: number;
  /** A change waits no longer than this, however many follow, unless its source holds it. Milliseconds. */
  readonly max: number;
  /** Whether changes of this input are made by people, who change several objects together. */
  readonly isConfig: (input: Input<unknown>) => boolean;
  /** Whether what belongs to such a change follows, and nothing shows what. */
  readonly hasCompanions: (input: Input<unknown>) => boolean;
  /** A commit yields after this long, or {@link LONG_SLICES} times as long if it is a long one. Milliseconds. */
  readonly slice: number;
  readonly clock: Pick<Clock, 'now' | 'after'>;
  /** A commit failed halfway, because of a bug in the graph itself. No other follows: the process must end, in order. */
  readonly broken: (error: unknown) => void;
  readonly signal: AbortSignal;
}

/**
 * A commit that has worked for this long gets longer slices, by this factor: what waits for the commit waits for all of
 * it, and longer slices give it a larger share of a busy event loop. Milliseconds.
 */
const LONG_WORK_MS = 100;
const LONG_SLICES = 2.5;

/** An observer that threw is called again after this long, if no commit comes before. Milliseconds. */
const TELL_AGAIN_MS = 1_000;

/** A published batch of changes. */
export interface Commit {
  readonly writes: number;
  /** From the first change to publication. Milliseconds. */
  readonly delay: number;
  /** The part of the delay that was computation. Milliseconds. */
  readonly work: number;
}

export interface CommitterStats {
  readonly commits: number;
  readonly writes: number;
  /** Changes waiting for the next commit. */
  readonly pending: number;
}

/**
 * The only way into the graph. Changes are collected by key (the newest wins) and committed in batches, in the order in
 * which they came. A change of config that has companions, or that follows another one within `max` milliseconds, waits
 * until none has followed for `quiet` milliseconds, or the first has waited for `max`; other changes wait with it. Without
 * one, a batch is committed as soon as the last commit is `quiet` milliseconds ago. Long commits are cut into slices.
 */
export class Committer {
  private readonly graph: Graph;
  private readonly options: CommitterOptions;
  private readonly observers: ((commit: Commit) => void)[] = [];
  private pending = new Map<Input<unknown>, Map<string, unknown>>();
  private count = 0;
  private firstAt = 0;
  /** When the last of the pending changes of config that wait for others arrived. */
  private configAt: number | undefined;
  /** When any change of config arrived. */
  private lastConfigAt = Number.NEGATIVE_INFINITY;
  private since = 0;
  private lastCommitAt = Number.NEGATIVE_INFINITY;
  private cancelTimer: (() => void) | undefined;
  private running = false;
  private holds = 0;
  /** Ends the hold that the committer starts with. */
  private readonly begin: () => void;
  private totals = { commits: 0, writes: 0 };
  /** Callers waiting for the pending changes, and for those being committed. */
  private waitingForNext: (() => void)[] = [];
  private waitingForThis: (() => void)[] = [];

  constructor(graph: Graph, options: CommitterOptions) {
    this.graph = graph;
    this.options = options;
    this.begin = this.hold();
    options.signal.addEventListener('abort', () => this.end(), { once: true });
  }

  get stats(): CommitterStats {
    return { ...this.totals, pending: this.count };
  }

  /** When the first change of the current commit arrived, or else of the last one. */
  get changedAt(): number {
    return this.since;
  }

  /** Calls back after every commit. */
  onCommit(observer: (commit: Commit) => void): void {
    this.observers.push(observer);
  }

  /** Nothing is committed before this: the first commit contains all that the sources knew when they were ready. */
  open(): void {
    this.begin();
  }

  /** Collects changes without committing any, until the returned function is called. */
  hold(): () => void {
    let held = true;
    this.holds++;
    this.cancelTimer?.();
    return () => {
      if (!held) return;
      held = false;
      this.holds--;
      this.schedule();
    };
  }

  write({ input, key, value }: Write): void {
    let values = this.pending.get(input);
    if (values === undefined) this.pending.set(input, (values = new Map<string, unknown>()));
    const now = this.options.clock.now();
    if (this.count === 0) this.firstAt = now;
    if (this.options.isConfig(input)) {
      if (now < this.lastConfigAt + this.options.max || this.options.hasCompanions(input)) this.configAt = now;
      this.lastConfigAt = now;
    }
    if (!values.has(key)) this.count++;
    values.set(key, value);
    this.schedule();
  }

  /** Writes what something outside the graph finds out; undefined deletes. */
  into<V>(input: Input<V>): (key: string, value: V | undefined) => void {
    return (key, value) => this.write(input.write(key, value));
  }

  /** Resolves when every change so far is published, or when nothing will be committed any more. */
  settled(): Promise<void> {
    if (this.options.signal.aborted || (this.count === 0 && !this.running)) return Promise.resolve();
    return new Promise((resolve) => (this.count === 0 ? this.waitingForThis : this.waitingForNext).push(resolve));
  }

  private schedule(): void {
    if (this.holds > 0 || this.running || this.options.signal.aborted) return;
    const { quiet, max, clock } = this.options;
    if (this.count === 0) {
      this.cancelTimer?.();
      if (this.graph.wantsCommit) this.cancelTimer = clock.after(TELL_AGAIN_MS, () => this.commit());
      return;
    }
    const { configAt, firstAt } = this;
    const due = configAt === undefined ? this.lastCommitAt + quiet : Math.min(configAt + quiet, firstAt + max);
    this.cancelTimer?.();
    this.cancelTimer = clock.after(Math.max(0, due - clock.now()), () => this.commit());
  }

  private commit(): void {
    this.cancelTimer = undefined;
    const writes: Write[] = [];
    for (const [input, values] of this.pending) for (const [key, value] of values) writes.push({ input, key, value });
    this.pending = new Map();
    this.count = 0;
    this.configAt = undefined;
    this.waitingForThis = this.waitingForNext.splice(0);
    this.running = true;
    const { clock, signal, slice } = this.options;
    let steps: ReturnType<Graph['draftInSteps']> | undefined;
    const firstAt = writes.length === 0 ? clock.now() : this.firstAt;
    this.since = firstAt;
    let work = 0;
    const next = (): void => {
      if (signal.aborted) return;
      try {
        advance();
      } catch (error) {
        this.options.broken(error);
      }
    };
    const advance = (): void => {
      const begin = clock.now();
      steps ??= this.graph.draftInSteps(writes, { discardable: false });
      let step = steps.next();
      const most = work < LONG_WORK_MS ? slice : slice * LONG_SLICES;
      while (step.done !== true && clock.now() < begin + most) step = steps.next();
      if (step.done !== true) {
        work += clock.now() - begin;
        setImmediate(next);
        return;
      }
      step.value.publish();
      const now = clock.now();
      this.committed({ writes: writes.length, delay: now - firstAt, work: work + now - begin }, now);
    };
    next();
  }

  private committed(commit: Commit, now: number): void {
    this.running = false;
    this.lastCommitAt = now;
    this.totals = { commits: this.totals.commits + 1, writes: this.totals.writes + commit.writes };
    for (const [i, observer] of this.observers.entries())
      this.graph.contain(`commit observer ${i + 1}`, () => observer(commit));
    this.schedule();
    for (const resolve of this.waitingForThis.splice(0)) resolve();
  }

  private end(): void {
    this.cancelTimer?.();
    for (const resolve of [...this.waitingForThis.splice(0), ...this.waitingForNext.splice(0)]) resolve();
  }
}
