import type { Address, SocketAddress, Struct, Value } from '../gen/types.gen.ts';
import type { Json } from './proto.ts';

/** A wrapper message (UInt32Value, BoolValue, Percent, ...): an optional value that is present. */
export function wrapped<Type extends number | boolean | string>(value: Type): { readonly value: Type } {
  return { value };
}

/** A wrapper, or undefined if the value is absent. */
export function wrappedIfSet<Type extends number | boolean>(value: Type | undefined): { value: Type } | undefined {
  return value === undefined ? undefined : { value };
}

export function socketAddress(address: string, port: number): SocketAddress {
  return { address, portValue: port };
}

/** An address to connect to. Port 0 means that the address is the path of a unix socket. */
export function connectAddress(address: string, port: number): Address {
  return port === 0 ? { pipe: { path: address } } : { socketAddress: socketAddress(address, port) };
}

/** JSON as a protobuf Struct. */
export function struct(json: { readonly [key: string]: Json }): Struct {
  return { fields: Object.fromEntries(Object.entries(json).map(([key, value]) => [key, structValue(value)])) };
}

function structValue(json: Json): Value {
  if (json === null) return { nullValue: 'NULL_VALUE' };
  if (typeof json === 'string') return { stringValue: json };
  if (typeof json === 'boolean') return { boolValue: json };
  if (typeof json === 'number') return { numberValue: json };
  if (isList(json)) return { listValue: { values: json.map(structValue) } };
  return { structValue: struct(json) };
}

function isList(json: Json): json is readonly Json[] {
  return Array.isArray(json);
}
