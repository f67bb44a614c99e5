import protobuf from 'protobufjs/minimal.js';

/** A field of a message, as it is read (`Out`) and given to be written (`In`). */
export interface Field<Out, In = Out> {
  /** Field number and wire type. */
  readonly tag: number;
  /** What a reader sees if it is absent, as fields that equal the default are. */
  readonly absent: Out;
  /** It may be there many times. */
  readonly repeats?: true;
  /** @param before what was read of this field already. */
  read(reader: protobuf.Reader, before: Out): Out;
  write(writer: protobuf.Writer, value: In): void;
}

/**
 * A kind of message. `decode` throws if the bytes are not such a message; fields that it does not know are skipped. A field
 * that does not repeat is there once at most, as every writer has it: it takes two bytes to have it decoded again.
 */
export interface Message<Out, In> {
  decode(bytes: Uint8Array): Out;
  encode(value: In): Buffer;
}

export type Decoded<M> = M extends Message<infer Out, infer _> ? Out : never;

type OutOf<F> = F extends Field<infer Out, infer _> ? Out : never;
type InOf<F> = F extends Field<infer _, infer In> ? In : never;
type AnyField = Field<unknown, never>;

/** The message with these fields. */
export function message<Shape extends Readonly<Record<string, AnyField>>>(
  shape: Shape,
): Message<{ readonly [K in keyof Shape]: OutOf<Shape[K]> }, { readonly [K in keyof Shape]?: InOf<Shape[K]> }> {
  const fields = Object.entries(shape) as [string, Field<unknown>][];
  const byTag = new Map(fields.map(([name, field]) => [field.tag, { name, field }]));
  const absent = Object.fromEntries(fields.map(([name, field]) => [name, field.absent]));
  return {
    decode(bytes) {
      const found: Record<string, unknown> = { ...absent };
      const seen = new Set<number>();
      const reader = protobuf.Reader.create(bytes);
      while (reader.pos < reader.len) {
        const tag = reader.uint32();
        const known = byTag.get(tag);
        if (known === undefined) {
          reader.skipType(tag & 7);
          continue;
        }
        if (known.field.repeats !== true && seen.size === seen.add(tag).size) throw new Error(`${known.name} twice`);
        found[known.name] = known.field.read(reader, found[known.name]);
      }
      return found as { readonly [K in keyof Shape]: OutOf<Shape[K]> };
    },
    encode(value) {
      const given: Readonly<Record<string, unknown>> = value;
      const writer = protobuf.Writer.create();
      for (const [name, field] of fields) if (given[name] !== undefined) field.write(writer, given[name]);
      return Buffer.from(writer.finish());
    },
  };
}

/** Bytes, one per character of the text: no two byte strings look alike, and ASCII looks like itself. */
export const key = (field: number): Field<string> => ({
  tag: delimited(field),
  absent: '',
  read: (reader) => Buffer.from(reader.bytes()).toString('latin1'),
  write: (writer, value) => void writer.uint32(delimited(field)).bytes(Buffer.from(value, 'latin1')),
});

export const bytes = (field: number): Field<Uint8Array> => ({
  tag: delimited(field),
  absent: new Uint8Array(),
  // A copy: a view would keep the whole message alive.
  read: (reader) => Buffer.from(reader.bytes()),
  write: (writer, value) => void writer.uint32(delimited(field)).bytes(value),
});

export const text = (field: number): Field<string> => ({
  tag: delimited(field),
  absent: '',
  read: (reader) => reader.string(),
  write: (writer, value) => void writer.uint32(delimited(field)).string(value),
});

export const bool = (field: number): Field<boolean> => ({
  tag: varint(field),
  absent: false,
  read: (reader) => reader.bool(),
  write: (writer, value) => void writer.uint32(varint(field)).bool(value),
});

/** An enumeration. */
export const choice = (field: number): Field<number> => ({
  tag: varint(field),
  absent: 0,
  read: (reader) => reader.int32(),
  write: (writer, value) => void writer.uint32(varint(field)).int32(value),
});

/** 64 bits, all of which count. */
export const int64 = (field: number): Field<bigint> => ({
  tag: varint(field),
  absent: 0n,
  read: (reader) => BigInt(reader.int64().toString()),
  write: (writer, value) => void writer.uint32(varint(field)).int64(value.toString()),
});

export const uint64 = (field: number): Field<bigint> => ({
  tag: varint(field),
  absent: 0n,
  read: (reader) => BigInt(reader.uint64().toString()),
  write: (writer, value) => void writer.uint32(varint(field)).uint64(value.toString()),
});

export const one = <Out, In>(field: number, { decode, encode }: Message<Out, In>): Field<Out | undefined, In> => ({
  tag: delimited(field),
  absent: undefined,
  read: (reader) => decode(reader.bytes()),
  write: (writer, value) => void writer.uint32(delimited(field)).bytes(encode(value)),
});

/** Of one field: two bytes are enough to name another one, of which a message could have millions. */
const MOST_VALUES = 100_000;

export const many = <Out, In>(
  field: number,
  { decode, encode }: Message<Out, In>,
): Field<readonly Out[], readonly In[]> => ({
  tag: delimited(field),
  absent: [],
  repeats: true,
  read(reader, before) {
    const values = before.length === 0 ? [] : (before as Out[]);
    if (values.length >= MOST_VALUES) throw new Error(`more than ${MOST_VALUES} values`);
    values.push(decode(reader.bytes()));
    return values;
  },
  write(writer, values) {
    for (const value of values) writer.uint32(delimited(field)).bytes(encode(value));
  },
});

const varint = (field: number): number => field << 3;
const delimited = (field: number): number => (field << 3) | 2;
