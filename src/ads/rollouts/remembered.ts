import type { Reached } from './reached.ts';

/** Of many tenants: several of these see the same. At least half of it is kept. */
const MOST = 128;

/** With the only tenant of its clients, or undefined if there are several, or no client has proven its tenant. */
type Known<T> = Map<T, string | undefined>;

/**
 * What is over, the oldest first. An object may keep changing while a client lags, or be asked for again and again: then
 * exact numbers no longer matter. But no tenant can make it forgotten that another one has taken it, nor can clients
 * that have not proven their tenant.
 */
export class Remembered<T extends { readonly reached: Pick<Reached, 'tenants'> }> {
  readonly #proven: Known<T> = new Map();
  readonly #unproven: Known<T> = new Map();

  *[Symbol.iterator](): Generator<T> {
    yield* this.#proven.keys();
    yield* this.#unproven.keys();
  }

  add(concern: T): void {
    const { tenants } = concern.reached;
    const known = tenants.size === 0 ? this.#unproven : this.#proven;
    // It may have ended before, and been wanted again.
    this.#proven.delete(concern);
    this.#unproven.delete(concern);
    const [only] = tenants.keys();
    known.set(concern, tenants.size === 1 ? only : undefined);
    if (known.size > MOST) trim(known);
  }
}

/** Many go at once, so that each costs little. */
function trim<T>(known: Known<T>): void {
  const byTenant = [...Map.groupBy(known.keys(), (each) => known.get(each)).values()];
  while (known.size > MOST / 2) known.delete(byTenant.reduce((a, b) => (b.length > a.length ? b : a)).shift()!);
}
