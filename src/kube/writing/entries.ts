import { isDeepStrictEqual } from 'node:util';
import { isObject, type Json, textOf } from '../../api/json.ts';
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

/** How many conditions an entry may have. Source: the CRDs of the Gateway API. */
const MOST_CONDITIONS = 8;

/**
 * The list to write, or undefined if the existing one says the same. Entries of other controllers stay as they are, in
 * their order; ours that are no longer desired are removed. If the list is full, what is left of ours is left out; of the
 * conditions in an entry of ours, those of others are. A list of listeners has one owner: if none is desired, it is
 * somebody else's.
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
    const key = keyOf(list, there);
    if (key === undefined) {
      merged.push(there);
      continue;
    }
    const placed = wanted.get(key);
    if (placed === undefined) {
      changed = true;
      continue;
    }
    wanted.delete(key);
    const entry = there as Json;
    const facts = differingFacts(entry, placed.place);
    const conditions = conditionsOf(entry, placed, own, now);
    if (conditions === undefined && facts === undefined) {
      merged.push(there);
      continue;
    }
    changed = true;
    merged.push({ ...entry, ...facts, ...(conditions && { conditions }) });
  }
  for (const placed of wanted.values()) {
    if (merged.length >= MOST[list]) break;
    changed = true;
    merged.push({ ...identityOf(placed.place), conditions: conditionsOf({}, placed, own, now) ?? [] });
  }
  return changed ? merged : undefined;
}

/** As {@link mergeConditions}, and no more than an entry may have. */
function conditionsOf(
  entry: Json,
  { conditions }: DesiredConditions,
  own: readonly string[],
  now: string,
): readonly unknown[] | undefined {
  const merged = mergeConditions(entry['conditions'], conditions, own, now);
  if (merged === undefined || merged.length <= MOST_CONDITIONS) return merged;
  const types = new Set(conditions.map(({ type }) => type));
  const isOurs = (there: unknown): boolean => isObject(there) && types.has(textOf(there['type']));
  let room = MOST_CONDITIONS - merged.filter(isOurs).length;
  return merged.filter((there) => isOurs(there) || room-- > 0);
}

/** {@link placeKey} of what an entry of ours is about; undefined if it is not ours. */
function keyOf(list: EntryList, entry: unknown): string | undefined {
  if (!isObject(entry)) return undefined;
  if (list === 'listeners') {
    const { name } = entry;
    return typeof name === 'string' ? placeKey({ in: list, name, facts: {} }) : undefined;
  }
  const ref = entry[refField[list]];
  if (entry['controllerName'] !== CONTROLLER || !isObject(ref)) return undefined;
  return isReference(ref) ? placeKey({ in: list, ref }) : NOWHERE;
}

/** The key of no place. */
const NOWHERE = '';

/** Whether its fields have the types of a reference: whoever may write a status can write anything. */
function isReference(ref: Json): ref is Json & StatusReference {
  const { group, kind, namespace, name, sectionName, port } = ref;
  const isText = (value: unknown): boolean => value === undefined || typeof value === 'string';
  return (
    typeof name === 'string' &&
    [group, kind, namespace, sectionName].every(isText) &&
    (port === undefined || typeof port === 'number')
  );
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
  const list = place.in;
  const found = entries.find((entry) => keyOf(list, entry) === key);
  return isObject(found) ? found['conditions'] : undefined;
}
