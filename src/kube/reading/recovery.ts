import { sleep, type Clock } from '../../base/clock.ts';

export interface RecoveryOptions {
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** Holds back what is delivered from now on until the returned function is called. */
  readonly hold: () => () => void;
}

/** Spreads the requests of woken watches. Milliseconds, as are all of these. */
const SPREAD = 100;
/** A recovery takes no longer than this. */
const PATIENCE = 5_000;
/** Longest wait between two attempts during a recovery: a starting server refuses some kinds for a moment. */
const RETRY = 400;
/** Shortest time from the start of one recovery to the start of the next: servers may come and go. */
const INTERVAL = 10_000;

/**
 * Brings watches back together after an outage of the API server. Each has its own back-off; with that alone, objects
 * that changed together during the outage would be seen seconds apart. So the first watch that reaches the server wakes
 * the others, and whatever they deliver is held back until all have caught up, for a few seconds at most.
 */
export class Recovery {
  private readonly options: RecoveryOptions;
  /** Watches that wait for the server; the controller ends the wait. */
  private readonly waiting = new Map<string, AbortController>();
  /** Watches that the hold is for. */
  private readonly behind = new Set<string>();
  /** Watches that did not catch up in time: they may be refused for ever. */
  private readonly givenUp = new Set<string>();
  private begunAt = -Infinity;
  private release: (() => void) | undefined;

  constructor(options: RecoveryOptions) {
    this.options = options;
  }

  /** `who` failed and waits for `ms`, or until another watch reaches the server: then the result is true. */
  async wait(who: string, ms: number, { signal }: { readonly signal: AbortSignal }): Promise<boolean> {
    const { clock, random } = this.options;
    const woken = new AbortController();
    this.waiting.set(who, woken);
    const most = this.behind.has(who) ? RETRY * (0.5 + random() / 2) : Infinity;
    await sleep(clock, Math.min(ms, most), { signal: AbortSignal.any([signal, woken.signal]) });
    if (!woken.signal.aborted) return false;
    await sleep(clock, SPREAD * random(), { signal });
    return true;
  }

  /** The server responded to `who`, which has not delivered any of the response yet. */
  reached(who: string): void {
    if (!this.waiting.delete(who) || this.release !== undefined) return;
    const now = this.options.clock.now();
    const others = [...this.waiting].filter(([name]) => !this.givenUp.has(name));
    if (others.length === 0 || now - this.begunAt < INTERVAL) return;
    this.begunAt = now;
    this.holdFor([who, ...others.map(([name]) => name)]);
    for (const [, woken] of others) woken.abort();
  }

  /** `who` has delivered everything that it missed. */
  caughtUp(who: string): void {
    this.givenUp.delete(who);
    if (this.behind.delete(who) && this.behind.size === 0) this.release?.();
  }

  private holdFor(names: readonly string[]): void {
    const { clock, hold } = this.options;
    for (const name of names) this.behind.add(name);
    const end = hold();
    const cancel = clock.after(PATIENCE, () => this.release?.());
    this.release = () => {
      cancel();
      for (const name of this.behind) this.givenUp.add(name);
      this.behind.clear();
      this.release = undefined;
      end();
    };
  }
}
