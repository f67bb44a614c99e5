import { sleep, type Clock } from './clock.ts';

export interface RecoveryOptions {
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** What is delivered from now on takes no effect before the result is called. */
  readonly hold: () => () => void;
}

/** Those who are woken do not ask in the same instant, in milliseconds. */
const SPREAD = 100;
/** Nothing is held for longer, in milliseconds. */
const PATIENCE = 3_000;
/** A server that comes and goes wakes nobody more often, in milliseconds. */
const INTERVAL = 5_000;

/**
 * Brings watches back together after an outage of the API server. Each waits in a back-off of its own; left to that,
 * objects that changed together meanwhile would be seen seconds apart. So the first that reaches the server wakes the
 * others, and what any of them delivers is held until these have caught up or failed again.
 */
export class Recovery {
  private readonly options: RecoveryOptions;
  /** Who waits for the server, with what ends the wait. */
  private readonly waiting = new Map<string, AbortController>();
  private readonly wokenAt = new Map<string, number>();
  /** Whom the hold is for. */
  private readonly behind = new Set<string>();
  private release: (() => void) | undefined;

  constructor(options: RecoveryOptions) {
    this.options = options;
  }

  /** `who` failed and waits so long, or until another one reaches the server: true then. */
  async wait(who: string, ms: number, { signal }: { readonly signal: AbortSignal }): Promise<boolean> {
    const { clock, random } = this.options;
    this.caughtUp(who);
    const woken = new AbortController();
    this.waiting.set(who, woken);
    await sleep(clock, ms, { signal: AbortSignal.any([signal, woken.signal]) });
    if (!woken.signal.aborted) return false;
    await sleep(clock, SPREAD * random(), { signal });
    return true;
  }

  /** The server answered `who`, which has not delivered anything of the answer yet. */
  reached(who: string): void {
    if (!this.waiting.delete(who)) return;
    const now = this.options.clock.now();
    const woken = [...this.waiting].filter(([other]) => now - (this.wokenAt.get(other) ?? -Infinity) >= INTERVAL);
    if (woken.length === 0) return;
    this.holdFor([who, ...woken.map(([other]) => other)]);
    for (const [other, controller] of woken) {
      this.wokenAt.set(other, now);
      controller.abort();
    }
  }

  /** `who` has delivered all that it missed, or is not to be waited for. */
  caughtUp(who: string): void {
    if (this.behind.delete(who) && this.behind.size === 0) this.release?.();
  }

  private holdFor(names: readonly string[]): void {
    for (const name of names) this.behind.add(name);
    if (this.release !== undefined) return;
    const { clock, hold } = this.options;
    const end = hold();
    const cancel = clock.after(PATIENCE, () => this.release?.());
    this.release = () => {
      cancel();
      this.behind.clear();
      this.release = undefined;
      end();
    };
  }
}
