import type { Batch, Held, Served } from './served.ts';

/** A response on its way: until it is answered, what the client holds of its names is not certain. */
export interface Sent {
  nonce: number;
  /** Lower than `nonce` where older responses were folded into this record. */
  first: number;
  /** When it was handed to the connection, in milliseconds. */
  at: number;
  batches: readonly Batch[];
  removed: readonly string[];
  /**
   * What the client held before. A name that is sent and not in here was held in the version sent; no map at all:
   * nothing is known of any.
   */
  prior: ReadonlyMap<string, Held> | undefined;
  /** One of the pieces that a refused response was cut into. */
  readonly trial: boolean;
}

/** To be completed when the response is handed to the connection. */
export const UNSENT = { nonce: 0, first: 0, at: 0 };

export function* itemsOf(sent: Sent): Generator<Served> {
  for (const batch of sent.batches) yield* batch.items;
}

export function priorOf(sent: Sent, item: Served): Held {
  if (sent.prior === undefined) return undefined;
  return sent.prior.has(item.name) ? sent.prior.get(item.name) : item;
}

/** Makes one record of the two oldest, so that a client which never answers costs bounded memory. */
export function foldOldest(inFlight: Sent[]): void {
  const [older, newer] = inFlight;
  if (older === undefined || newer === undefined) return;
  inFlight.splice(0, 2, {
    nonce: newer.nonce,
    first: older.first,
    at: older.at,
    batches: [...older.batches, ...newer.batches],
    removed: [...older.removed, ...newer.removed],
    prior: older.prior === undefined ? undefined : new Map([...(newer.prior ?? []), ...older.prior]),
    trial: false,
  });
}

/** The pieces of a refused response that named nobody: tried one by one, halved when they are refused. */
export class Trial {
  readonly #groups: (readonly string[])[] = [];

  /** To be tried next, in this order. */
  prepend(groups: readonly (readonly string[])[]): void {
    this.#groups.unshift(...groups.filter((group) => group.length > 0));
  }

  /** The piece to be tried now; undefined when none is left. Pieces of which nothing is owed any more are skipped. */
  next(owed: ReadonlyMap<string, Held>): ReadonlySet<string> | undefined {
    for (let group = this.#groups[0]; group !== undefined; group = this.#groups[0]) {
      if (group.some((name) => owed.has(name))) return new Set(group);
      this.#groups.shift();
    }
    return undefined;
  }

  answered(): void {
    this.#groups.shift();
  }
}

export function halves(names: readonly string[]): [string[], string[]] {
  const middle = Math.ceil(names.length / 2);
  return [names.slice(0, middle), names.slice(middle)];
}
