/** Time as this layer sees it; tests provide their own. */
export interface Clock {
  /** Milliseconds on a clock that never jumps. Only differences are meaningful. */
  now(): number;
  /** Wall clock, for times written into objects. */
  date(): Date;
  /** Calls `fn` once after `ms`, or after 24 days if that is longer; the result cancels. */
  after(ms: number, fn: () => void): () => void;
}

/** Node fires timers at once that are longer. Milliseconds. */
const LONGEST_TIMER = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => performance.now(),
  date: () => new Date(),
  after: (ms, fn) => {
    const timer = setTimeout(fn, Math.min(ms, LONGEST_TIMER));
    return () => clearTimeout(timer);
  },
};

/** Milliseconds of {@link afterRunning} that one block of the event loop may count as. */
const STEP_MS = 500;

/**
 * Calls `fn` once after `ms` in which the event loop ran; the result cancels. After a block, timers fire before anything
 * that arrived meanwhile is read: a limit for how long others may take must not count that time.
 */
export function afterRunning(clock: Pick<Clock, 'after'>, ms: number, fn: () => void): () => void {
  let left = ms;
  let cancel = (): void => undefined;
  const next = (): void => {
    const step = Math.min(left, STEP_MS);
    left -= step;
    cancel = clock.after(step, left > 0 ? next : fn);
  };
  next();
  return () => cancel();
}

/** Resolves after `ms`, or when the signal fires. Never rejects: callers check the signal next. */
export function sleep(clock: Clock, ms: number, { signal }: { readonly signal: AbortSignal }): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const end = (): void => {
      cancel();
      signal.removeEventListener('abort', end);
      resolve();
    };
    const cancel = clock.after(ms, end);
    signal.addEventListener('abort', end);
  });
}

/** Resolves once the signal has fired. */
export function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}
