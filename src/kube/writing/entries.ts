import { isDeepStrictEqual } from 'node:util';
import { isObject, type Json } from '../../api/json.ts';
import { type Place, type StatusReference, placeKey } from '../../api/place.ts';
import { isSame } from '../client/comparison.ts';
import { type DesiredCondition, mergeConditions } from './conditions.ts';

/** Lists in a status whose entries have conditions of their own. */
export type EntryList = Exclude<Place['in'], 'object'>;

export interface DesiredConditions {
  readonly place: Place;
  readonly conditions: readonly DesiredCondition[];
}

/** The name of this controller in entries: several controllers may write to one status. */
export const CONTROLLER = 'fairlead.dev/gateway-controller';

/** How many entries a list may have. Source: the CRDs of the Gateway API. */
const MOST: Readonly<Record<EntryList, number>> = { parents: 32, ancestors: 16, listeners: 64 };

/**
 * The list to write, or undefined if the existing one says the same. Entries of other controllers stay as they are, in
 * their order; ours that are no longer desired are removed. If the list is full, what is left of ours is left out. A list
 * of listeners has one owner: if none is desired, it is somebody else's.
 *
 * @param own types of conditions that are ours alone.
 */
export function mergeEntries(
  list: EntryList,
  existing: unknown,
  desired: readonly DesiredConditions[],
  own: readonly string[],
  now: string,
): readonly unknown[] | undefined {
  const wanted = new Map(
    desired.filter(({ place }) => place.in === list).map((placed) => [placeKey(placed.place), placed]),
  );
  if (list === 'listeners' && wanted.size === 0) return undefined;
  const merged: unknown[] = [];
  let changed = false;
  for (const there of Array.isArray(existing) ? existing : []) {
    const place = placeOf(list, there);
    if (place === undefined) {
      merged.push(there);
      continue;
    }
    const key = placeKey(place);
    const placed = wanted.get(key);
    if (placed === undefined) {
      changed = true;
      continue;
    }
    wanted.delete(key);
    const entry = there as Json;
    const facts = differingFacts(entry, placed.place);
    const conditions = mergeConditions(entry['conditions'], placed.conditions, own, now);
    if (conditions === undefined && facts === undefined) {
      merged.push(there);
      continue;
    }
    changed = true;
    merged.push({ ...entry, ...facts, ...(conditions && { conditions }) });
  }
  for (const { place, conditions } of wanted.values()) {
    if (merged.length >= MOST[list]) break;
    changed = true;
    merged.push({ ...identityOf(place), conditions: mergeConditions(undefined, conditions, own, now) ?? [] });
  }
  return changed ? merged : undefined;
}

/** What an entry of ours is about, or undefined if it is not ours. */
function placeOf(list: EntryList, entry: unknown): Place | undefined {
  if (!isObject(entry)) return undefined;
  if (list === 'listeners') {
    const { name } = entry;
    return typeof name === 'string' ? { in: list, name, facts: {} } : undefined;
  }
  const ref = entry[refField[list]];
  if (entry['controllerName'] !== CONTROLLER || !isObject(ref)) return undefined;
  // A field of another type cannot be equal to one of ours.
  return { in: list, ref: ref as unknown as StatusReference };
}

const refField = { parents: 'parentRef', ancestors: 'ancestorRef' } as const;

function identityOf(place: Place): Json {
  switch (place.in) {
    case 'object':
      return {};
    case 'listeners':
      return { ...place.facts, name: place.name };
    case 'parents':
    case 'ancestors':
      return { [refField[place.in]]: place.ref, controllerName: CONTROLLER };
  }
}

/** Undefined: the entry says what the place does. */
function differingFacts(entry: Json, place: Place): Json | undefined {
  if (place.in !== 'listeners') return undefined;
  const { facts } = place;
  const isTold = Object.keys(facts).every((field) => isSame(() => isDeepStrictEqual(entry[field], facts[field])));
  return isTold ? undefined : facts;
}

/** The conditions that a status has at a place, or undefined if there is none. */
export function conditionsAt(status: Json, place: Place): unknown {
  if (place.in === 'object') return status['conditions'];
  const key = placeKey(place);
  const entries: readonly unknown[] = Array.isArray(status[place.in]) ? (status[place.in] as unknown[]) : [];
  const found = entries.find((entry) => {
    const there = placeOf(place.in as EntryList, entry);
    return there !== undefined && placeKey(there) === key;
  });
  return isObject(found) ? found['conditions'] : undefined;
}
