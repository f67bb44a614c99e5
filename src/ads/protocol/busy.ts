import type { Subscription } from './subscription.ts';

/** The subscriptions of one stream that may owe something, or wait for it, in order: a push looks at no others. */
export class Busy implements Iterable<Subscription> {
  /** All of them, in order. */
  readonly #all: readonly (Subscription | undefined)[];
  #busy: Subscription[] = [];

  constructor(all: readonly (Subscription | undefined)[]) {
    this.#all = all;
  }

  [Symbol.iterator](): Iterator<Subscription> {
    return this.#busy[Symbol.iterator]();
  }

  get owes(): boolean {
    for (const subscription of this.#busy) if (subscription.owes) return true;
    return false;
  }

  get owesAll(): boolean {
    for (const subscription of this.#busy) if (subscription.all) return true;
    return false;
  }

  add(subscription: Subscription): void {
    if (this.#busy.includes(subscription)) return;
    this.#busy.push(subscription);
    if (this.#busy.length > 1) this.#busy.sort((a, b) => this.#all.indexOf(a) - this.#all.indexOf(b));
  }

  /** Adds whatever owes something after a while. */
  addAll(): void {
    for (const subscription of this.#all)
      if (subscription !== undefined && isBusy(subscription)) this.add(subscription);
  }

  /** Forgets those that are done. */
  settle(): void {
    if (!this.#busy.every(isBusy)) this.#busy = this.#busy.filter(isBusy);
  }
}

function isBusy({ owes, awaited }: Subscription): boolean {
  return owes || awaited.owes;
}
