import { isObject, type Json } from '../api/json.ts';

/** As the API server calls us: the part of the user agent before the slash. */
const OWN_MANAGER = 'fairlead';

/** Types of conditions that somebody else has written, in whole or in part; sorted. */
export function conditionsOfOthers(managedFields: unknown, conditions: unknown): readonly string[] {
  const found = new Set<string>();
  for (const entry of Array.isArray(managedFields) ? managedFields : []) {
    if (!isObject(entry) || entry['manager'] === OWN_MANAGER) continue;
    const fields = fieldsOfConditions(entry['fieldsV1']);
    if (fields === undefined) continue;
    // In some definitions, the list belongs as a whole to its last writer.
    const types = Object.keys(fields).length === 0 ? typesIn(conditions) : Object.keys(fields).flatMap(typeOfField);
    for (const type of types) found.add(type);
  }
  return [...found].sort();
}

/** `{"f:status": {"f:conditions": {"k:{\"type\":\"Ready\"}": {...}}}}` */
function fieldsOfConditions(fields: unknown): Json | undefined {
  const status = isObject(fields) ? fields['f:status'] : undefined;
  const conditions = isObject(status) ? status['f:conditions'] : undefined;
  return isObject(conditions) ? conditions : undefined;
}

function typeOfField(key: string): string[] {
  const type = /^k:\{"type":"([A-Za-z0-9._/-]{1,316})"\}$/.exec(key)?.[1];
  return type === undefined ? [] : [type];
}

function typesIn(conditions: unknown): string[] {
  return (Array.isArray(conditions) ? conditions : []).flatMap((condition) => {
    const type: unknown = isObject(condition) ? condition['type'] : undefined;
    return typeof type === 'string' ? [type] : [];
  });
}
