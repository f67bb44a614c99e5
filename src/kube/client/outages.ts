import type { ApiError } from './api-error.ts';
import { TOO_LARGE } from './body.ts';
import { OVER_BUDGET } from './budget.ts';
import type { Clock } from '../../base/clock.ts';
import type { Log } from './log.ts';

export interface OutagesOptions {
  readonly log: Log;
  readonly clock: Clock;
  /** Cancels log lines that are still waiting. */
  readonly signal?: AbortSignal;
}

const DENIED = 'denying access';

/** Milliseconds for which denials of access are collected, to be named together. */
const GATHERING = 1_000;

/** How many are named; the rest are counted. */
const NAMED = 50;

/** Shortest time between two wake-ups: the server may come and go. Milliseconds. */
const INTERVAL = 10_000;

/**
 * Logs each kind of trouble with the API server once when it begins and once when it is over, however many kinds it
 * affects and however many retries there are. For denied access it also names the kinds: each needs its own rule.
 */
export class Outages {
  private readonly options: OutagesOptions;
  /** Trouble -> kinds or clients that it affects. */
  private readonly open = new Map<string, Set<string>>();
  private cancelNaming: (() => void) | undefined;
  private readonly waiting: (() => void)[] = [];
  private wokenAt = Number.NEGATIVE_INFINITY;

  constructor(options: OutagesOptions) {
    this.options = options;
    options.signal?.addEventListener('abort', () => this.cancelNaming?.(), { once: true });
  }

  begin(who: string, error: ApiError): void {
    const trouble = troubleOf(error);
    if (this.open.get(trouble)?.has(who) === true) return;
    this.end(who, trouble);
    const having = this.open.get(trouble);
    if (having !== undefined) {
      having.add(who);
      if (trouble === DENIED) this.nameAll();
      return;
    }
    this.open.set(trouble, new Set([who]));
    this.options.log.warn(`API server: ${trouble}, retrying until it works`, { who, err: error });
  }

  private nameAll(): void {
    const { clock, log, signal } = this.options;
    if (this.cancelNaming !== undefined || signal?.aborted === true) return;
    this.cancelNaming = clock.after(GATHERING, () => {
      this.cancelNaming = undefined;
      const denied = [...(this.open.get(DENIED) ?? [])].sort();
      if (denied.length === 0) return;
      const more = denied.length - NAMED;
      log.warn(`API server: ${DENIED} to all of these`, { who: denied.slice(0, NAMED), ...(more > 0 && { more }) });
    });
  }

  /** Calls back when the server answers again: those who wait before they try again need not any longer. */
  onReached(wake: () => void): void {
    this.waiting.push(wake);
  }

  /** The server has answered `who`, which goes on only after that. */
  reached(who: string): void {
    const now = this.options.clock.now();
    if (this.open.size === 0 || now - this.wokenAt < INTERVAL) return;
    if (![...this.open.values()].some((having) => having.has(who))) return;
    this.wokenAt = now;
    for (const wake of this.waiting) wake();
  }

  /** The outage of `who` is over, or, given `unless`, has become that one. */
  end(who: string, unless = ''): void {
    for (const [trouble, having] of this.open) {
      if (trouble === unless || !having.delete(who) || having.size > 0) continue;
      this.open.delete(trouble);
      if (unless === '') this.options.log.info(`API server: no longer ${trouble}`, { who });
    }
  }
}

function troubleOf({ code, reason }: ApiError): string {
  if (reason === 'NoCredentials') return 'credentials unreadable';
  if (reason === 'Garbled') return 'sending invalid events';
  if (reason === TOO_LARGE) return 'sending responses that are too long';
  if (reason === OVER_BUDGET) return 'sending more objects than there is room for';
  if (reason === 'SinkFailed') return 'sending objects that Fairlead fails to process';
  if (code === 0) return 'unreachable';
  if (code === 401) return 'refusing the credentials';
  if (code === 403) return DENIED;
  if (code === 429 || code >= 500) return 'unavailable';
  // What it says is in the error: messages of the log are constant.
  return 'sending unexpected responses';
}
