import type { Recipient } from './recipient.ts';

/** Clients that are gone and are remembered, of each tenant: that somebody else has taken something may decide. */
const MOST_GONE = 16;
/** From how many clients on it pays to look for those that are gone. */
const MANY = 256;

/**
 * Whom something has concerned: everybody who is connected, and the last ones of each tenant that are gone. Clients may
 * come and go for as long as it is under way.
 */
export class Reached implements Iterable<Recipient> {
  readonly #isGone: (client: Recipient) => boolean;
  readonly #clients = new Set<Recipient>();
  #sweepAt = MANY;

  constructor(isGone: (client: Recipient) => boolean) {
    this.#isGone = isGone;
  }

  [Symbol.iterator](): Iterator<Recipient> {
    return this.#clients.values();
  }

  /** The tenant of those that have proven it; empty: none has; undefined: there are several. */
  get tenant(): string | undefined {
    let only = '';
    for (const { tenant } of this.#clients) {
      if (only !== '' && tenant !== '' && only !== tenant) return undefined;
      only ||= tenant;
    }
    return only;
  }

  add(client: Recipient): void {
    this.#clients.add(client);
    if (this.#clients.size >= this.#sweepAt) this.#sweep();
  }

  delete(client: Recipient): void {
    this.#clients.delete(client);
  }

  #sweep(): void {
    const gone = Map.groupBy([...this.#clients].filter(this.#isGone), ({ tenant }) => tenant);
    for (const clients of gone.values())
      for (const client of clients.slice(0, -MOST_GONE)) this.#clients.delete(client);
    this.#sweepAt = MANY + 2 * this.#clients.size;
  }
}
