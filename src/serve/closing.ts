import type { Clock } from '../base/clock.ts';
import type { Logger } from '../ops/logger.ts';

/** How long parts have to close, in milliseconds. */
export const CLOSING_MS = 5_000;

/**
 * Waits until all parts are closed, but no longer than {@link CLOSING_MS}: a process that is told to end ends, even if a
 * part waits for something that never comes. What is not closed by then, or failed to close, is logged by name.
 */
export async function closed(
  parts: Readonly<Record<string, Promise<unknown>>>,
  { clock, log }: { readonly clock: Pick<Clock, 'after'>; readonly log: Pick<Logger, 'warn'> },
): Promise<void> {
  const open = new Set(Object.keys(parts));
  const all = Promise.all(
    Object.entries(parts).map(([name, part]) =>
      part.catch((err: unknown) => log.warn('Failed to close', { part: name, err })).finally(() => open.delete(name)),
    ),
  );
  let cancel = (): void => undefined;
  const late = new Promise<void>((resolve) => (cancel = clock.after(CLOSING_MS, resolve)));
  await Promise.race([all, late]);
  cancel();
  if (open.size > 0) log.warn('Not closed in time, ending anyway', { parts: [...open] });
}
