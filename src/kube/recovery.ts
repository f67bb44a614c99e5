import { sleep, type Clock } from './clock.ts';

export interface RecoveryOptions {
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** What is delivered from now on takes no effect before the result is called. */
  readonly hold: () => () => void;
}

/** Those who are woken do not ask in the same instant. Milliseconds, as all of these. */
const SPREAD = 100;
/** A recovery ends here. */
const PATIENCE = 5_000;
/** Until then no wait between two tries is longer: a server that starts refuses some kinds for a moment. */
const RETRY = 400;
/** From the beginning of a recovery to that of the next one: servers may come and go. */
const INTERVAL = 10_000;

/**
 * Brings watches back together after an outage of the API server. Each waits in a back-off of its own; left to that,
 * objects that changed together meanwhile would be seen seconds apart. So the first that reaches the server wakes the
 * others, and what any of them delivers is held until all have caught up, for a few seconds at most.
 */
export class Recovery {
  private readonly options: RecoveryOptions;
  /** Who waits for the server, with what ends the wait. */
  private readonly waiting = new Map<string, AbortController>();
  /** Whom the hold is for. */
  private readonly behind = new Set<string>();
  /** Who was waited for in vain: it may be refused for ever. */
  private readonly givenUp = new Set<string>();
  private begunAt = -Infinity;
  private release: (() => void) | undefined;

  constructor(options: RecoveryOptions) {
    this.options = options;
  }

  /** `who` failed and waits so long, or until another one reaches the server: true then. */
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

  /** The server answered `who`, which has not delivered anything of the answer yet. */
  reached(who: string): void {
    if (!this.waiting.delete(who) || this.release !== undefined) return;
    const now = this.options.clock.now();
    const others = [...this.waiting].filter(([name]) => !this.givenUp.has(name));
    if (others.length === 0 || now - this.begunAt < INTERVAL) return;
    this.begunAt = now;
    this.holdFor([who, ...others.map(([name]) => name)]);
    for (const [, woken] of others) woken.abort();
  }

  /** `who` has delivered all that it missed. */
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
