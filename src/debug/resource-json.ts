import { Buffer } from 'node:buffer';
import type { EncodedResource } from '../ads/store/resource.ts';
import { FieldReader } from '../ads/wire/field-reader.ts';
import { type Json, type Protos, typeOfUrl } from '../envoy/encode/proto.ts';
import { jsonOf, shownBytes } from './snapshot.ts';

/** Larger messages are printed in pieces of about this size. Bytes. */
const PIECE_BYTES = 32 * 1024;

/** The message as protobuf JSON, in pieces: a table of a large mesh would keep the thread busy for hundreds of milliseconds. */
export function* resourceJson(protos: Protos, resource: EncodedResource): Generator<string> {
  if (resource.body.length <= PIECE_BYTES) {
    yield JSON.stringify(jsonOf(protos, resource));
    return;
  }
  const type = typeOfUrl(resource.typeUrl);
  yield `{"@type":${JSON.stringify(resource.typeUrl)}`;
  // The list that comes first is printed as it comes; it is the long one. Whatever else there is follows.
  let list: string | undefined;
  const others = new Map<string, Json>();
  for (const piece of piecesOf(Buffer.from(shownBytes(protos, resource)))) {
    for (const [name, value] of Object.entries(protos.toJson(type, piece) as Record<string, Json>)) {
      if (!Array.isArray(value) || (list !== undefined && list !== name)) {
        others.set(name, joined(others.get(name), value));
        continue;
      }
      const elements = value.map((element) => JSON.stringify(element)).join();
      if (elements === '') continue;
      yield list === undefined ? `,"${name}":[${elements}` : `,${elements}`;
      list = name;
    }
  }
  if (list !== undefined) yield ']';
  for (const [name, value] of others) yield `,"${name}":${JSON.stringify(value)}`;
  yield '}';
}

/** Whole fields of a message, which are messages of the same type. */
function* piecesOf(bytes: Buffer): Generator<Buffer> {
  const reader = new FieldReader(bytes);
  let begin = 0;
  while (reader.next()) {
    if (reader.at - begin < PIECE_BYTES) continue;
    yield bytes.subarray(begin, reader.at);
    begin = reader.at;
  }
  if (begin < bytes.length) yield bytes.subarray(begin);
}

/** Lists and maps may be in several pieces. */
function joined(before: Json | undefined, value: Json): Json {
  if (Array.isArray(before) && Array.isArray(value)) return [...(before as Json[]), ...(value as Json[])];
  if (isMap(before) && isMap(value)) return { ...before, ...value };
  return value;
}

function isMap(value: Json | undefined): value is { readonly [key: string]: Json } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
