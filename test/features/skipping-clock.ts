import { expect } from 'vitest';
import type { Clock } from '../../src/base/clock.ts';
import { PATIENCE } from './waiters.ts';

interface Timer {
  readonly at: number;
  readonly fn: () => void;
  timeout: NodeJS.Timeout;
}

/**
 * Real time, of which a test can skip some: what would have happened in it happens at once. With `realDates`, the wall
 * clock shows none of it: certificates are for programs that know nothing of skipped time.
 */
export class SkippingClock implements Clock {
  private skipped = 0;
  private readonly realDates: boolean;
  private readonly timers = new Set<Timer>();

  constructor({ realDates = false } = {}) {
    this.realDates = realDates;
  }

  now(): number {
    return performance.now() + this.skipped;
  }

  date(): Date {
    return new Date(Date.now() + (this.realDates ? 0 : this.skipped));
  }

  after(ms: number, fn: () => void): () => void {
    const timer: Timer = { at: this.now() + ms, fn, timeout: setTimeout(() => this.fire(timer), ms) };
    this.timers.add(timer);
    return () => {
      clearTimeout(timer.timeout);
      this.timers.delete(timer);
    };
  }

  skip(ms: number): void {
    this.skipped += ms;
    for (const timer of [...this.timers].sort((a, b) => a.at - b.at)) {
      clearTimeout(timer.timeout);
      const rest = timer.at - this.now();
      if (rest <= 0) this.fire(timer);
      else timer.timeout = setTimeout(() => this.fire(timer), rest);
    }
  }

  private fire(timer: Timer): void {
    if (this.timers.delete(timer)) timer.fn();
  }
}

/** Asks again and again while time passes, in steps in which a leader stays one. */
export function later<T>({ clock }: { readonly clock: Pick<SkippingClock, 'skip'> }, ask: () => T) {
  const again = (): T => {
    clock.skip(4_000);
    return ask();
  };
  return expect.poll(again, { interval: 20, timeout: PATIENCE });
}
