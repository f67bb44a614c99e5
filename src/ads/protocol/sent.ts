import type { Concern } from '../rollouts/rollout.ts';
import { Batch, type Held, type Served } from '../store/served.ts';

/** A response on its way: until it is answered, it is uncertain what the client holds of its names. */
export interface Sent {
  nonce: number;
  /** Lower than `nonce` if older responses were folded into this record. */
  first: number;
  /** When it was handed to the connection, in milliseconds. */
  at: number;
  /** Version of its content, as the client repeats it in state of the world. */
  version: string;
  readonly batches: readonly Batch[];
  readonly removed: readonly string[];
  /** What the client held before. A name that is sent but not in this map was held in the version sent. */
  prior: ReadonlyMap<string, Held> | undefined;
  /** Used if `prior` is absent: either nothing was held, or it is unknown what. */
  readonly before: Held;
  /** The piece of a rejected response that this is. */
  readonly trial: Piece | undefined;
  /** Names whose version the client rejected before: left out, what it has instead would be deleted. */
  readonly tolerated: ReadonlySet<string>;
  /** What its acknowledgement settles. */
  concerns: readonly Concern[];
}

/** To be completed when the response is handed to the connection. */
export const UNSENT = {
  nonce: 0,
  first: 0,
  at: 0,
  version: '',
  batches: [],
  removed: [],
  prior: undefined,
  before: undefined,
  trial: undefined,
  tolerated: new Set<string>(),
  concerns: [],
} as const satisfies Sent;

export function* itemsOf(sent: Sent): Generator<Served> {
  for (const batch of sent.batches) yield* batch.items;
}

export function priorOf(sent: Sent, item: Served): Held {
  if (sent.prior === undefined) return sent.before;
  return sent.prior.has(item.name) ? sent.prior.get(item.name) : item;
}

/** The names that the client did not hold. */
export function newNamesOf(sent: Sent): ReadonlySet<string> {
  const names = new Set<string>();
  for (const item of itemsOf(sent)) if (priorOf(sent, item) === undefined) names.add(item.name);
  return names;
}

/** How many names a record covers. */
export function namesOf({ batches, removed }: Sent): number {
  return batches.reduce((sum, { items }) => sum + items.length, removed.length);
}

/** What a client is subscribed to. */
export interface Subscribed {
  has(name: string): boolean;
  /** By name, not only by a wildcard. */
  readonly names: { has(name: string): boolean };
}

/**
 * One record for several consecutive responses: for each name, its newest bytes and its oldest prior. Leaves out what
 * the client has given up meanwhile, and names that it was only told do not exist: it may keep asking for new ones.
 */
export function fold(oldest: Sent, newer: readonly Sent[], subscribed: Subscribed): Sent {
  const items = new Map<string, Served>();
  const removed = new Set<string>();
  let prior: Map<string, Held> | undefined = new Map<string, Held>();
  for (const sent of [oldest, ...newer]) {
    for (const item of itemsOf(sent)) {
      items.set(item.name, item);
      removed.delete(item.name);
    }
    for (const name of sent.removed) {
      removed.add(name);
      items.delete(name);
    }
    if (sent.prior === undefined) prior = undefined;
    for (const [name, held] of sent.prior ?? []) if (prior?.has(name) === false) prior.set(name, held);
  }
  for (const name of items.keys()) if (!subscribed.has(name)) items.delete(name);
  for (const name of removed) {
    const held = prior?.get(name) !== undefined;
    if (!subscribed.names.has(name) && !(held && subscribed.has(name))) removed.delete(name);
  }
  for (const name of prior?.keys() ?? []) if (!items.has(name) && !removed.has(name)) prior!.delete(name);
  return {
    ...(newer.at(-1) ?? oldest),
    first: oldest.first,
    at: oldest.at,
    batches: items.size === 0 ? [] : [new Batch([...items.values()])],
    removed: [...removed],
    prior,
    before: oldest.before,
    trial: undefined,
    concerns: [...new Set([oldest, ...newer].flatMap(({ concerns }) => concerns))],
  };
}

/** Names of a rejected response that are tried together. */
export type Piece = ReadonlySet<string>;

/**
 * The pieces of a response whose rejection names no resource: tried one by one, and halved when rejected. One culprit
 * among ten thousand is found in fourteen steps; a client that keeps rejecting is assumed to reject everything that is
 * left.
 */
export class Trial {
  #pieces: readonly Piece[] = [];
  #rejected = 0;

  /** To be tried next, in this order. */
  prepend(groups: readonly (readonly string[])[]): void {
    const pieces = groups.filter((names) => names.length > 0).map((names) => new Set(names));
    this.#pieces = [...pieces, ...this.#pieces];
  }

  /** A piece was answered: it is not tried again. */
  answered(piece: Piece): void {
    this.#pieces = this.#pieces.filter((each) => each !== piece);
  }

  /** One more rejection that names no resource; false: there were enough of them. */
  goOn(): boolean {
    return ++this.#rejected <= MAX_NAMELESS;
  }

  /** The pieces with something owed, in the order in which they are to be tried. The rest are dropped. */
  owed(pending: ReadonlyMap<string, Held>): readonly Piece[] {
    this.#pieces = this.#pieces.filter((piece) => [...piece].some((name) => pending.has(name)));
    return this.#pieces;
  }

  has(name: string): boolean {
    return this.#pieces.some((piece) => piece.has(name));
  }
}

const MAX_NAMELESS = 64;

export function halves(names: readonly string[]): [string[], string[]] {
  const middle = Math.ceil(names.length / 2);
  return [names.slice(0, middle), names.slice(middle)];
}
