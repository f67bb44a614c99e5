import type { Names } from '../store/served.ts';

/** Names that have shared the same fate so far. */
export interface Group {
  readonly names: Names;
}

/** New names that were sent together. */
export interface Arrival extends Group {
  readonly since: number;
  /** Nonce of the response that carried them. */
  readonly nonce: number;
  /** Nonce of the later response that carried what belongs to them; 0 until it is sent. */
  readonly followed: number;
  /** Something was held back because of one of these names. */
  awaited: boolean;
}

/** Names that left the world together; the client may use either all or none of them. */
export interface Departure extends Group {
  readonly since: number;
  /** Since when nothing that the client may use has named one of them. */
  readonly freeAt: number | undefined;
  readonly timedOut: boolean;
}

/** The part of a group that is in a set, and the rest; undefined if empty. A group that stays whole is the same object. */
export function split<G extends Group>(group: G, set: Names): readonly [within: G | undefined, rest: G | undefined] {
  const { names } = group;
  const shared = countCommon(names, set);
  if (shared === 0) return [undefined, group];
  if (shared === names.size) return [group, undefined];
  const within = new Set<string>();
  const rest = new Set<string>();
  for (const name of names.keys()) (set.has(name) ? within : rest).add(name);
  return [
    { ...group, names: within },
    { ...group, names: rest },
  ];
}

function countCommon(one: Names, other: Names): number {
  if (one.size === 0 || other.size === 0) return 0;
  const [few, many] = one.size < other.size ? [one, other] : [other, one];
  let count = 0;
  for (const name of few.keys()) if (many.has(name)) count++;
  return count;
}

/** What is left of each group without the names of a set. */
export function without<G extends Group>(groups: readonly G[], set: Names): readonly G[] {
  return groups.flatMap((group) => split(group, set)[1] ?? []);
}

/** Each resource to be sent is looked up in each arrival; beyond this number, the earliest arrivals are merged. */
const MAX_ARRIVALS = 16;

/** A client may be sent each cluster separately, and answer nothing. */
export function fewer(arrivals: readonly Arrival[]): readonly Arrival[] {
  if (arrivals.length <= MAX_ARRIVALS) return arrivals;
  const early = arrivals.slice(0, -MAX_ARRIVALS / 2);
  const [unsent, sent] = [true, false].map((is) => early.filter(({ nonce }) => (nonce === Infinity) === is));
  return [...together(unsent!), ...together(sent!), ...arrivals.slice(-MAX_ARRIVALS / 2)];
}

/** Ends when the last of them is answered, or when the first of them has waited too long. */
function together(arrivals: readonly Arrival[]): readonly Arrival[] {
  if (arrivals.length === 0) return [];
  return [
    {
      names: new Set(arrivals.flatMap(({ names }) => [...names.keys()])),
      since: Math.min(...arrivals.map(({ since }) => since)),
      nonce: Math.max(...arrivals.map(({ nonce }) => nonce)),
      followed: arrivals.every(({ followed }) => followed > 0)
        ? Math.max(...arrivals.map(({ followed }) => followed))
        : 0,
      awaited: arrivals.some(({ awaited }) => awaited),
    },
  ];
}

/** The same departure, if nothing changes. */
export function freeSince(departure: Departure, freeAt: number | undefined): Departure {
  return departure.freeAt === freeAt ? departure : { ...departure, freeAt };
}

/** The former departures, as far as their names are still kept, and one for new names. */
export function departuresOf(kept: Names, former: readonly Departure[], now: number): readonly Departure[] {
  const departures: Departure[] = [];
  const known = new Set<string>();
  for (const departure of former) {
    const [still] = split(departure, kept);
    if (still === undefined) continue;
    // Other streams share this map: what is released as a whole is not iterated over.
    if (still.names.size === kept.size) return [{ ...still, names: kept }];
    departures.push(still);
    for (const name of still.names.keys()) known.add(name);
  }
  const [, added] = split({ names: kept, since: now, freeAt: undefined, timedOut: false }, known);
  return added === undefined ? departures : [...departures, added];
}
