import type { Logger } from './logger.ts';

/** Limit for one message: lines at once, and lines per second in the long run. */
export interface LogRate {
  readonly burst: number;
  readonly perSecond: number;
  /** So many messages, or causes of a message, have a limit of their own; the rest share one. Quiet ones make room. */
  readonly budgets: number;
}

/**
 * 100 lines, then one per second: whatever proxies and owners of objects do, one message, at about a kilobyte per line,
 * stays below 100 KB a minute. Messages are constant: there are fewer.
 */
export const LOG_RATE: LogRate = { burst: 100, perSecond: 1, budgets: 256 };

/** For one line per certificate, of one tenant: two thousand proxies at once, and a hundred thousand a day. */
export const AUDIT_RATE: LogRate = { burst: 2_000, perSecond: 2, budgets: 10_000 };

interface Budget {
  lines: number;
  at: number;
  suppressed: number;
}

/**
 * Rate limits the lines of each message, which proxies and owners of objects can cause. Dropped lines are counted; the
 * next line of the message, or of the same cause, carries the count.
 */
export class LogBudget implements Logger {
  readonly #log: Logger;
  readonly #rate: LogRate;
  readonly #now: () => number;
  /** The budget that was used last comes last. */
  readonly #budgets = new Map<string, Budget>();
  readonly #shared: Budget;
  /** Lines dropped so far. */
  suppressed = 0;

  /** @param now milliseconds; only differences count. */
  constructor(log: Logger, { rate = LOG_RATE, now }: { readonly rate?: LogRate; readonly now: () => number }) {
    this.#log = log;
    this.#rate = rate;
    this.#now = now;
    this.#shared = this.#full();
  }

  error(message: string, fields: object = {}): void {
    this.#say('error', message, fields, message);
  }

  warn(message: string, fields: object = {}): void {
    this.#say('warn', message, fields, message);
  }

  info(message: string, fields: object = {}): void {
    this.#say('info', message, fields, message);
  }

  /** As {@link info}, with a limit for each cause: one that causes many lines does not keep out those about others. */
  infoBy(cause: string, message: string, fields: object): void {
    this.#say('info', message, fields, `${message} ${cause}`);
  }

  /** Unlimited: only written on request. */
  debug(message: string, fields: object = {}): void {
    this.#log.debug(message, fields);
  }

  #say(level: 'error' | 'warn' | 'info', message: string, fields: object, limited: string): void {
    const budget = this.#budgetOf(limited);
    const now = this.#now();
    budget.lines = Math.min(this.#rate.burst, budget.lines + ((now - budget.at) / 1000) * this.#rate.perSecond);
    budget.at = now;
    if (budget.lines < 1) {
      budget.suppressed++;
      this.suppressed++;
      return;
    }
    budget.lines--;
    const { suppressed } = budget;
    budget.suppressed = 0;
    this.#log[level](message, suppressed === 0 ? fields : { ...fields, suppressed });
  }

  #budgetOf(limited: string): Budget {
    let budget = this.#budgets.get(limited);
    if (budget === undefined) {
      this.#dropRefilled();
      if (this.#budgets.size >= this.#rate.budgets) return this.#shared;
      budget = this.#full();
    }
    this.#budgets.delete(limited);
    this.#budgets.set(limited, budget);
    return budget;
  }

  #full(): Budget {
    return { lines: this.#rate.burst, at: this.#now(), suppressed: 0 };
  }

  /** A budget that is full again is as good as none: namespaces come and go. */
  #dropRefilled(): void {
    const { burst, perSecond, budgets } = this.#rate;
    for (const [key, { at }] of this.#budgets) {
      if (this.#budgets.size < budgets || this.#now() - at < (burst / perSecond) * 1000) break;
      this.#budgets.delete(key);
    }
  }
}
