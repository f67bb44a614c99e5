import { expect, onTestFinished, test, vi } from 'vitest';
import { systemClock } from './clock.ts';

test.each([2 ** 31, Infinity])('a timer of %d ms does not fire at once', (ms) => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const fired = vi.fn();
  systemClock.after(ms, fired);
  vi.advanceTimersByTime(24 * 86_400_000);
  expect(fired).not.toHaveBeenCalled();
  vi.advanceTimersByTime(86_400_000);
  expect(fired).toHaveBeenCalledOnce();
});
