import type { Clock } from '../base/clock.ts';
import type { ListWatchSink } from '../etcd/list-watch.ts';

/** Milliseconds. It is written every minute. As Cilium has it. */
export const LONGEST_SILENCE = 120_000;

/** Whether another cluster's etcd is alive: only that the heartbeat arrives counts, not what it says. */
export class Heartbeat implements ListWatchSink<undefined> {
  readonly #clock: Clock;
  readonly #onSilence: () => void;
  #cancel: () => void;
  /** Milliseconds of `clock.now()`. */
  heardAt: number;

  constructor(clock: Clock, onSilence: () => void) {
    this.#clock = clock;
    this.#onSilence = onSilence;
    this.heardAt = clock.now();
    this.#cancel = clock.after(LONGEST_SILENCE, onSilence);
  }

  read(): undefined {
    return undefined;
  }

  replace(entries: ReadonlyMap<string, undefined>): undefined {
    if (entries.size > 0) this.#heard();
  }

  upsert(): void {
    this.#heard();
  }

  delete(): void {
    // Its lease ended: if it does not come back, it is silent.
  }

  end(): void {
    this.#cancel();
  }

  #heard(): void {
    this.#cancel();
    this.heardAt = this.#clock.now();
    this.#cancel = this.#clock.after(LONGEST_SILENCE, this.#onSilence);
  }
}
