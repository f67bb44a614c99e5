import protobuf from 'protobufjs';

/** A message that does not fit its type: a bug in the code that built it. */
export class MessageError extends Error {
  override readonly name = 'MessageError';
}

/**
 * Makes a message safe for protobufjs' encoder, which writes garbage or nothing for unexpected input: enum names become
 * numbers, maps are sorted, and a wrong member or value throws. Whatever needs no change is not copied.
 */
export type Prepare = (type: protobuf.Type, message: object) => object;

type Convert = (value: unknown) => unknown;

interface FieldPlan {
  readonly convert: Convert;
  /** For a member of a real oneof: the oneof's index in the type's list. */
  readonly oneof: number;
}

type Plan = ReadonlyMap<string, FieldPlan>;

/**
 * @param anyType the type that holds any message.
 * @param encode encodes the message that it holds.
 */
export function createPreparer(
  anyType: protobuf.Type,
  encode: (typeUrl: string, message: object) => Uint8Array,
): Prepare {
  const plans = new Map<protobuf.Type, Plan>();

  /** For messages that never change. */
  const constants = new WeakMap<HeldMessage, Members>();
  const packed = (held: HeldMessage): Members => {
    const known = constants.get(held);
    if (known !== undefined) return known;
    const bytes = encode(held.typeUrl, held.value);
    if (!Object.isFrozen(held)) return { typeUrl: held.typeUrl, value: bytes };
    const members = { typeUrl: held.typeUrl, value: new Uint8Array(bytes) };
    constants.set(held, members);
    return members;
  };

  const prepare: Prepare = (type, message) => {
    if (type === anyType && isHeld(message)) return packed(message);
    let plan = plans.get(type);
    if (plan === undefined) {
      plan = planOf(type, prepare);
      plans.set(type, plan);
    }
    return convertMembers(type, plan, message as Members);
  };
  return prepare;
}

type Members = Record<string, unknown>;

/** An `Any` whose message is not yet encoded. */
interface HeldMessage {
  readonly typeUrl: string;
  readonly value: object;
}

function isHeld(message: object): message is HeldMessage {
  const { value } = message as { value?: unknown };
  return typeof value === 'object' && value !== null && !(value instanceof Uint8Array);
}

function convertMembers(type: protobuf.Type, plan: Plan, message: Members): Members {
  let copy: Members | undefined;
  let oneofs: number[] | undefined;
  for (const name in message) {
    const value = message[name];
    if (value === undefined || value === null) continue;
    const field = plan.get(name);
    if (field === undefined) throw new MessageError(`${nameOf(type)} has no member "${name}"`);
    if (field.oneof >= 0) {
      if (oneofs?.includes(field.oneof)) {
        const { name: oneof } = type.oneofsArray[field.oneof] ?? { name: '' };
        throw new MessageError(`${nameOf(type)} has more than one member of the oneof "${oneof}"`);
      }
      (oneofs ??= []).push(field.oneof);
    }
    const converted = field.convert(value);
    if (converted !== value) {
      copy ??= { ...message };
      copy[name] = converted;
    }
  }
  return copy ?? message;
}

function planOf(type: protobuf.Type, prepare: Prepare): Plan {
  return new Map(
    type.fieldsArray.map((field) => {
      field.resolve();
      const single = singleOf(field, prepare);
      const convert = field.map ? mapOf(field, single) : field.repeated ? listOf(field, single) : single;
      const oneof = field.partOf && !field.partOf.isProto3Optional ? type.oneofsArray.indexOf(field.partOf) : -1;
      return [field.name, { convert, oneof }];
    }),
  );
}

function singleOf(field: protobuf.Field, prepare: Prepare): Convert {
  const { resolvedType } = field;
  if (resolvedType instanceof protobuf.Enum) return enumOf(field, resolvedType.values);
  if (resolvedType) {
    return (value) => (hasMembers(value) ? prepare(resolvedType, value) : refuse(field, value));
  }
  const scalar = scalarOf(field.type);
  return (value) => scalar(value) ?? refuse(field, value);
}

function enumOf(field: protobuf.Field, values: Readonly<Record<string, number>>): Convert {
  return (value) =>
    typeof value === 'string'
      ? (values[value] ?? refuse(field, value))
      : Number.isInteger(value)
        ? value
        : refuse(field, value);
}

/** The value as it is written, or undefined if the type cannot hold it. */
function scalarOf(type: string): Convert {
  switch (type) {
    case 'string':
      return (value) => (typeof value === 'string' ? value : undefined);
    case 'bool':
      return (value) => (typeof value === 'boolean' ? value : undefined);
    case 'bytes':
      return (value) => (value instanceof Uint8Array ? value : undefined);
    case 'double':
    case 'float':
      return (value) => (typeof value === 'number' ? value : undefined);
    case 'uint32':
    case 'fixed32':
      return (value) => (typeof value === 'number' && value >>> 0 === value ? value : undefined);
    case 'int32':
    case 'sint32':
    case 'sfixed32':
      return (value) => (typeof value === 'number' && (value | 0) === value ? value : undefined);
    default: {
      const negative = !type.startsWith('u') && type !== 'fixed64';
      return (value) => wideInteger(value, negative);
    }
  }
}

/** A small number is written as a number, even if given as a string: the encoder omits 0, but not '0'. */
function wideInteger(value: unknown, negative: boolean): unknown {
  if (typeof value === 'string') {
    if (!/^-?\d+$/.test(value) || (!negative && value.startsWith('-'))) return undefined;
    const number = Number(value);
    return Number.isSafeInteger(number) ? number : value;
  }
  return typeof value === 'number' && Number.isSafeInteger(value) && (negative || value >= 0) ? value : undefined;
}

function listOf(field: protobuf.Field, single: Convert): Convert {
  return (value) => {
    if (!Array.isArray(value)) return refuse(field, value);
    let copy: unknown[] | undefined;
    for (let index = 0; index < value.length; index++) {
      const item: unknown = value[index];
      if (item === undefined || item === null) return refuse(field, item);
      const converted = single(item);
      if (converted !== item) (copy ??= value.slice())[index] = converted;
    }
    return copy ?? value;
  };
}

function mapOf(field: protobuf.Field, single: Convert): Convert {
  return (value) => {
    if (!hasMembers(value)) return refuse(field, value);
    const entries = value as Members;
    // No prototype: a key may be `__proto__`.
    const sorted = Object.create(null) as Members;
    for (const key of Object.keys(entries).sort()) {
      const item = entries[key];
      if (item === undefined || item === null) return refuse(field, item);
      sorted[key] = single(item);
    }
    return sorted;
  };
}

function hasMembers(value: unknown): value is object {
  return typeof value === 'object' && !Array.isArray(value) && !(value instanceof Uint8Array);
}

function refuse(field: protobuf.Field, value: unknown): never {
  const shown = typeof value === 'string' ? JSON.stringify(value.slice(0, 80)) : typeof value;
  throw new MessageError(`${field.fullName.slice(1)} (${field.type}) cannot be ${shown}`);
}

function nameOf(type: protobuf.Type): string {
  return type.fullName.slice(1);
}
