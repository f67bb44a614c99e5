import { NONE } from './ledger.ts';
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

export function notEmpty<G extends Group>(groups: readonly G[]): readonly G[] {
  return groups.filter(({ names }) => names.size > 0);
}

/** The part of a group that is in a set, and the rest. */
export function split<G extends Group>(group: G, set: Names): [G, G] {
  const { names } = group;
  const [few, many] = set.size < names.size ? [set, names] : [names, set];
  const within = new Set([...few.keys()].filter((name) => many.has(name)));
  const [all, none] = [group, { ...group, names: NONE }];
  if (within.size === 0) return [none, all];
  if (within.size === names.size) return [all, none];
  const without = new Set([...names.keys()].filter((name) => !within.has(name)));
  return [
    { ...group, names: within },
    { ...group, names: without },
  ];
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

/** The former departures, as far as their names are still kept, and one for new names. */
export function departuresOf(kept: Names, former: readonly Departure[], now: number): readonly Departure[] {
  const departures: Departure[] = [];
  const known = new Set<string>();
  for (const departure of former) {
    const [still] = split(departure, kept);
    if (still.names.size === 0) continue;
    // Other streams share this map: what is released as a whole is not iterated over.
    if (still.names.size === kept.size) return [{ ...still, names: kept }];
    departures.push(still);
    for (const name of still.names.keys()) known.add(name);
  }
  const [, added] = split({ names: kept, since: now, freeAt: undefined, timedOut: false }, known);
  return added.names.size === 0 ? departures : [...departures, added];
}
