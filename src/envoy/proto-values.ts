import type { Duration, Struct, Value } from './gen/types.gen.ts';
import type { Json } from './proto.ts';

/** `google.protobuf.Duration` of a number of milliseconds. */
export function durationOfMs(ms: number): Duration {
  const seconds = Math.trunc(ms / 1000);
  return { seconds, nanos: Math.round((ms - seconds * 1000) * 1e6) };
}

export function structOf(members: { readonly [name: string]: Json }): Struct {
  return { fields: Object.fromEntries(Object.entries(members).map(([name, json]) => [name, valueOf(json)])) };
}

function valueOf(json: Json): Value {
  if (json === null) return { nullValue: 'NULL_VALUE' };
  if (typeof json === 'string') return { stringValue: json };
  if (typeof json === 'number') return { numberValue: json };
  if (typeof json === 'boolean') return { boolValue: json };
  if (isList(json)) return { listValue: { values: json.map(valueOf) } };
  return { structValue: structOf(json) };
}

/** The JSON that a decoded `google.protobuf.Struct` stands for. */
export function jsonOfStruct(struct: Struct): { [name: string]: Json } {
  return Object.fromEntries(Object.entries(struct.fields ?? {}).map(([name, value]) => [name, jsonOfValue(value)]));
}

function jsonOfValue(value: Value): Json {
  if (value.structValue) return jsonOfStruct(value.structValue);
  if (value.listValue) return (value.listValue.values ?? []).map(jsonOfValue);
  return value.stringValue ?? value.numberValue ?? value.boolValue ?? null;
}

function isList(json: Json): json is readonly Json[] {
  return Array.isArray(json);
}
