import type { AdsStream } from './stream.ts';

/** Ends the existing streams one by one, spread evenly over a period: they reconnect elsewhere. */
export class Shutdown {
  readonly #streams: readonly AdsStream[];
  readonly #begun: number;
  readonly #ms: number;
  #ended = 0;

  constructor(streams: readonly AdsStream[], now: number, ms: number) {
    this.#streams = streams;
    this.#begun = now;
    this.#ms = ms;
  }

  /** Ends the streams that are due. */
  step(now: number): void {
    const passed = this.#ms === 0 ? 1 : Math.min(1, (now - this.#begun) / this.#ms);
    const due = Math.floor(this.#streams.length * passed);
    for (; this.#ended < due; this.#ended++) this.#streams[this.#ended]!.retire('the server is shutting down');
  }
}
