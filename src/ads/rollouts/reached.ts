import { isProven, type Recipient } from './recipient.ts';

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
  /** How many of them are of each. */
  readonly #tenants = new Map<string, number>();
  #sweepAt = MANY;

  constructor(isGone: (client: Recipient) => boolean) {
    this.#isGone = isGone;
  }

  [Symbol.iterator](): Iterator<Recipient> {
    return this.#clients.values();
  }

  /** Of those that have proven it. */
  get tenants(): Pick<ReadonlySet<string>, 'has' | 'keys' | 'size'> {
    return this.#tenants;
  }

  add(client: Recipient): void {
    if (this.#clients.has(client)) return;
    this.#clients.add(client);
    const { tenant } = client;
    if (tenant !== '') this.#tenants.set(tenant, (this.#tenants.get(tenant) ?? 0) + 1);
    if (this.#clients.size >= this.#sweepAt) this.#sweep();
  }

  delete(client: Recipient): void {
    if (!this.#clients.delete(client) || !isProven(client)) return;
    const others = this.#tenants.get(client.tenant)! - 1;
    if (others > 0) this.#tenants.set(client.tenant, others);
    else this.#tenants.delete(client.tenant);
  }

  #sweep(): void {
    const gone = Map.groupBy([...this.#clients].filter(this.#isGone), ({ tenant }) => tenant);
    for (const clients of gone.values()) for (const client of clients.slice(0, -MOST_GONE)) this.delete(client);
    this.#sweepAt = MANY + 2 * this.#clients.size;
  }
}
