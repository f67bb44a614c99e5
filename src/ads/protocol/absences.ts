import type { BarrierTimes } from './barrier-times.ts';
import type { Parties } from './parties.ts';

/**
 * Tables that left the world while a client warms the listener that names them. Answered as empty, such a table would put
 * that listener in force, in place of one that serves, and all its requests would find nothing. The client is about to
 * get the next version of the listener, and no longer asks then: until that has been sent, there is no answer.
 */
export class Absences {
  readonly #times: Pick<BarrierTimes, 'timeoutMs'>;
  /** Since when names may have been left without an answer for this reason. */
  #since: number | undefined;

  /** @param times every name is answered after `timeoutMs`. */
  constructor(times: Pick<BarrierTimes, 'timeoutMs'>) {
    this.#times = times;
  }

  /** Whether names that do not exist are not answered yet. To be asked while some name must be answered. */
  keepSilent({ referrers }: Parties, now: number): boolean {
    const isOwed = referrers.some(({ type, owes }) => type.drains === true && owes);
    this.#since = isOwed ? (this.#since ?? now) : undefined;
    return this.#since !== undefined && now - this.#since < this.#times.timeoutMs;
  }

  /** Returns whether the client asks for nothing any more. */
  settle({ referrers }: Parties): boolean {
    return !referrers.some(({ type, all, ledger }) => type.drains !== true && (all || ledger.asked !== undefined));
  }
}
