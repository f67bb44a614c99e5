import type { Graph, Input, Write } from './cache/graph.ts';

export interface CommitterOptions {
  /** Milliseconds without a change after which a batch is committed. */
  readonly quiet: number;
  /** A change waits no longer than this, however many follow it. Milliseconds. */
  readonly max: number;
  /** A commit lets others run after this long. Milliseconds. */
  readonly slice: number;
  readonly now: () => number;
  readonly signal: AbortSignal;
}

export interface CommitterStats {
  readonly commits: number;
  readonly writes: number;
  /** Changes that wait for the next commit. */
  readonly pending: number;
  /** Of the last commit: from its first change to its publication, and CPU-bound work alone. Milliseconds. */
  readonly lastDelay: number;
  readonly lastWork: number;
}

/**
 * The one way into the graph. Changes are gathered by key, the newest wins, and are committed in batches: at once after
 * a time of quiet, and never later than the bound in a steady stream. Long commits are cut into slices.
 */
export class Committer {
  private readonly graph: Graph;
  private readonly options: CommitterOptions;
  private pending = new Map<Input<unknown>, Map<string, unknown>>();
  private count = 0;
  private firstAt = 0;
  private lastCommitAt = Number.NEGATIVE_INFINITY;
  private timer: NodeJS.Timeout | undefined;
  private running = false;
  private held = true;
  private idle: (() => void)[] = [];
  private totals = { commits: 0, writes: 0, lastDelay: 0, lastWork: 0 };

  constructor(graph: Graph, options: CommitterOptions) {
    this.graph = graph;
    this.options = options;
    options.signal.addEventListener('abort', () => clearTimeout(this.timer), { once: true });
  }

  get stats(): CommitterStats {
    return { ...this.totals, pending: this.count };
  }

  /** Nothing is committed before this: the first commit holds all that the sources knew when they were ready. */
  open(): void {
    this.held = false;
    this.schedule();
  }

  write({ input, key, value }: Write): void {
    let values = this.pending.get(input);
    if (values === undefined) this.pending.set(input, (values = new Map<string, unknown>()));
    if (this.count === 0) this.firstAt = this.options.now();
    if (!values.has(key)) this.count++;
    values.set(key, value);
    this.schedule();
  }

  /** Resolves when every change so far is published. */
  settled(): Promise<void> {
    if (this.count === 0 && !this.running) return Promise.resolve();
    return new Promise((resolve) => this.idle.push(resolve));
  }

  private schedule(): void {
    if (this.held || this.running || this.count === 0 || this.options.signal.aborted) return;
    const now = this.options.now();
    const { quiet, max } = this.options;
    // The leading edge: after a time of quiet the first change does not wait for others.
    const due =
      now - this.lastCommitAt > quiet && this.timer === undefined ? now : Math.min(now + quiet, this.firstAt + max);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.commit(), Math.max(0, due - now));
  }

  private commit(): void {
    this.timer = undefined;
    const writes: Write[] = [];
    for (const [input, values] of this.pending) for (const [key, value] of values) writes.push({ input, key, value });
    this.pending = new Map();
    this.count = 0;
    this.running = true;
    const steps = this.graph.settleInSteps(writes, { discardable: false });
    const startedAt = this.firstAt;
    let work = 0;
    const next = (): void => {
      const begin = this.options.now();
      const until = begin + this.options.slice;
      let step = steps.next();
      while (step.done !== true && this.options.now() < until) step = steps.next();
      if (step.done !== true) {
        work += this.options.now() - begin;
        setImmediate(next);
        return;
      }
      step.value.publish();
      const now = this.options.now();
      work += now - begin;
      this.running = false;
      this.lastCommitAt = now;
      this.totals = {
        commits: this.totals.commits + 1,
        writes: this.totals.writes + writes.length,
        lastDelay: now - startedAt,
        lastWork: work,
      };
      this.schedule();
      if (this.count === 0) for (const resolve of this.idle.splice(0)) resolve();
    };
    next();
  }
}
