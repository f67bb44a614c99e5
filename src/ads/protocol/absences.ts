import type { BarrierTimes, Parties } from './barrier.ts';
import type { Sent } from './sent.ts';
import type { Subscription } from './subscription.ts';

/**
 * Tables that left the world while a client warms the listener that names them. Answered as empty, such a table would put
 * that listener in force, in place of one that serves, and all its requests would find nothing. The client is about to
 * get the next version of the listener, and no longer asks then: until that has been sent, there is no answer.
 */
export class Absences {
  readonly #times: Pick<BarrierTimes, 'timeoutMs'>;
  /** Since when some name has not been answered for this reason. */
  #since: number | undefined;

  /** @param times a name is answered after `timeoutMs` in any case. */
  constructor(times: Pick<BarrierTimes, 'timeoutMs'>) {
    this.#times = times;
  }

  /** @param take takes the next response; `keepsSilent`: without answers for names that do not exist. */
  take(
    of: Subscription,
    { referrers }: Parties,
    now: number,
    take: (keepsSilent: boolean) => Sent | undefined,
  ): Sent | undefined {
    const { type, ledger } = of;
    if (type.refersTo === undefined || type.whenAbsent === undefined) return take(false);
    const since = this.#since ?? now;
    const isOwed = referrers.some((each) => each.type.drains === true && each.owes);
    const keepsSilent = isOwed && now - since < this.#times.timeoutMs;
    const sent = take(keepsSilent);
    this.#since = keepsSilent && ledger.asked !== undefined ? since : undefined;
    return sent;
  }
}
