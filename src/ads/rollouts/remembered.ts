import type { Reached } from './reached.ts';

/** Of many tenants: several of these see the same. At least half of it is kept. */
const MOST = 128;

/** By which tenant's clients they have been taken. */
type Known<T> = Map<T, Reached['tenant']>;

/**
 * What is over, the oldest first. An object may keep changing while a client lags, or be asked for again and again: then
 * exact numbers no longer matter. But no tenant can make it forgotten that another one has taken it, nor can clients
 * that have not proven their tenant.
 */
export class Remembered<T extends { readonly reached: Pick<Reached, 'tenant'> }> {
  readonly #proven: Known<T> = new Map();
  readonly #unproven: Known<T> = new Map();

  *[Symbol.iterator](): Generator<T> {
    yield* this.#proven.keys();
    yield* this.#unproven.keys();
  }

  add(concern: T): void {
    const { tenant } = concern.reached;
    const known = tenant === '' ? this.#unproven : this.#proven;
    // It may have ended before, and been wanted again.
    this.#proven.delete(concern);
    this.#unproven.delete(concern);
    known.set(concern, tenant);
    if (known.size > MOST) trim(known);
  }

  clear(): void {
    this.#proven.clear();
    this.#unproven.clear();
  }
}

/** Many go at once, so that each costs little. */
function trim<T>(known: Known<T>): void {
  const byTenant = [...Map.groupBy(known.keys(), (each) => known.get(each)).values()];
  while (known.size > MOST / 2) known.delete(byTenant.reduce((a, b) => (b.length > a.length ? b : a)).shift()!);
}
