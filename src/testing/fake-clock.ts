import { setImmediate } from 'node:timers/promises';
import type { Clock } from '../base/clock.ts';

/** Time that passes only when a test says so. */
export class FakeClock implements Clock {
  private time = 0;
  private order = 0;
  private timers: { readonly at: number; readonly order: number; readonly fn: () => void }[] = [];

  now(): number {
    return this.time;
  }

  date(): Date {
    return new Date(Date.UTC(2030, 0, 1) + this.time);
  }

  after(ms: number, fn: () => void): () => void {
    const timer = { at: this.time + Math.max(0, ms), order: this.order++, fn };
    this.timers.push(timer);
    this.timers.sort((a, b) => a.at - b.at || a.order - b.order);
    return () => (this.timers = this.timers.filter((other) => other !== timer));
  }

  /** Number of timers that have not fired. */
  get pending(): number {
    return this.timers.length;
  }

  /** Lets everything run that does not depend on time. */
  async settle(): Promise<void> {
    for (let i = 0; i < 3; i++) await setImmediate();
  }

  /** Lets time pass, timer by timer, and runs everything that they trigger. */
  async advance(ms: number): Promise<void> {
    const end = this.time + ms;
    await this.settle();
    for (let next = this.timers[0]; next !== undefined && next.at <= end; next = this.timers[0]) {
      this.timers.shift();
      this.time = next.at;
      next.fn();
      await this.settle();
    }
    this.time = end;
  }

  /** The event loop does not run for this long: then all timers that are due fire at once, before anything else. */
  async block(ms: number): Promise<void> {
    this.time += ms;
    const due = this.timers.filter(({ at }) => at <= this.time);
    this.timers = this.timers.filter(({ at }) => at > this.time);
    for (const { fn } of due) fn();
    await this.settle();
  }

  /** Lets time pass until the condition holds; false if it does not within `ms`. */
  async until(holds: () => boolean, ms: number): Promise<boolean> {
    const end = this.time + ms;
    await this.settle();
    while (!holds() && this.time < end) await this.advance(Math.min(end, this.timers[0]?.at ?? end) - this.time);
    return holds();
  }
}
