import type { Clock } from '../../base/clock.ts';
import type { Log } from '../client/log.ts';

export interface SlowKindsOptions {
  /** Empty once nothing is missing. */
  readonly waitingFor: () => readonly string[];
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
}

/** Milliseconds until the first line, and the longest time between two lines. */
const FIRST = 30_000;
const LONGEST = 10 * 60_000;

/** Logs which kinds hold up the start, first after half a minute and then less and less often, until none do. */
export function logSlowKinds({ waitingFor, clock, log, signal }: SlowKindsOptions): void {
  const began = clock.now();
  const sayAfter = (ms: number): void => {
    const cancel = clock.after(ms, () => {
      signal.removeEventListener('abort', cancel);
      const kinds = waitingFor();
      if (kinds.length === 0) return;
      log.warn('Not ready: waiting for kinds', { kinds, seconds: Math.round((clock.now() - began) / 1000) });
      sayAfter(Math.min(2 * ms, LONGEST));
    });
    signal.addEventListener('abort', cancel, { once: true });
  };
  if (!signal.aborted) sayAfter(FIRST);
}
