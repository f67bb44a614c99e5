import type { Clock } from './clock.ts';

/** `process`, as far as it is needed here; tests pass an EventEmitter. */
export interface ErrorSource {
  on(event: 'uncaughtException', listener: (error: unknown, origin?: string) => void): unknown;
  off(event: 'uncaughtException', listener: (error: unknown, origin?: string) => void): unknown;
}

export interface ContainmentOptions {
  readonly clock: Pick<Clock, 'now'>;
  /** For a log at level error. */
  readonly log: (message: string, fields: object) => void;
  /** Called for each error, for a metric. */
  readonly count: () => void;
  /** Called once, when errors come so fast that the process can hardly do anything else: it should end, in order. */
  readonly giveUp: (reason: string) => void;
  /** Ends the containment: from then on, an error that nobody catches ends the process. */
  readonly signal: AbortSignal;
}

/** Milliseconds; lines of the log in that time; errors in that time after which it is better to end. */
const [WINDOW, LINES, MOST] = [60_000, 10, 6_000];

/**
 * Keeps the process running after an error that nobody catches: an exception in a timer or a listener, or a rejection
 * that nobody handles. Such an error is a bug, but what it interrupts is one piece of work, and the end of the process
 * would interrupt them all.
 */
export function containErrors(process: ErrorSource, { clock, log, count, giveUp, signal }: ContainmentOptions): void {
  if (signal.aborted) return;
  let [began, errors, lines, omitted, gaveUp] = [clock.now(), 0, 0, 0, false];
  const contain = (error: unknown): void => {
    // An exception here would end the process after all.
    try {
      count();
      if (clock.now() - began >= WINDOW) [began, errors, lines] = [clock.now(), 0, 0];
      if (++errors > MOST && !gaveUp) {
        gaveUp = true;
        giveUp(`more than ${MOST} unexpected errors within a minute`);
      }
      if (++lines > LINES) return void omitted++;
      log('Unexpected error; please report it', { error, ...(omitted > 0 && { omitted }) });
      omitted = 0;
    } catch {
      // There is nobody left to tell.
    }
  };
  // Rejections that nobody handles come here, too.
  process.on('uncaughtException', contain);
  signal.addEventListener('abort', () => process.off('uncaughtException', contain), { once: true });
}
