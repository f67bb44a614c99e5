import protobuf from 'protobufjs';
import { createRoot, descriptorSet } from '../../src/envoy/encode/proto-root.ts';
import { typeOfUrl } from '../../src/envoy/encode/proto.ts';
import { checkValue, ignoresEmpty } from './value-rules.ts';
import type { FieldRules } from './value-rules.ts';

/** A message that Envoy would refuse, or that uses a field which Envoy refuses unless told otherwise. */
export interface Violation {
  /** `filterChains[0].filters[0].typedConfig.statPrefix` */
  readonly path: string;
  readonly message: string;
}

/** Checks an encoded message, and every known message packed in it, against the constraints of its protos. */
export type CheckRules = (type: string, bytes: Uint8Array) => readonly Violation[];

/** Takes about 200 ms: once per test file. */
export function createRules(): CheckRules {
  const root = createRoot();
  const options = readOptions(root);

  const checkType = (type: protobuf.Type, message: Members, path: string): Violation[] => [
    ...type.fieldsArray.flatMap((field) => checkField(field, message, path ? `${path}.${field.name}` : field.name)),
    ...type.oneofsArray
      .filter((oneof) => options.requiredOneofs.has(oneof.fullName) && !oneof.fieldsArray.some((f) => has(message, f)))
      .map((oneof) => ({ path, message: `one of ${oneof.oneof.join(', ')} is required` })),
  ];

  const checkField = (field: protobuf.Field, message: Members, path: string): Violation[] => {
    const rules = options.rules.get(keyOf(field)) ?? {};
    const present = has(message, field);
    const found: string[] = [];
    if (present && options.disallowed.has(keyOf(field))) found.push('is disallowed by default');
    if (isMessage(field)) {
      const required = rules.message?.required || rules.duration?.required || rules.any?.required;
      // Of a oneof, only the member that is chosen has to hold to its rules.
      if (!present && required && field.partOf == null) found.push('is required');
      if (present) found.push(...checkMessageValue(field, rules, message[field.name]));
    } else if (present || !hasPresence(field)) {
      const value = message[field.name];
      if (!(isEmpty(value) && ignoresEmpty(rules))) found.push(...checkValue(rules, value, field));
    }
    return [
      ...found.map((text) => ({ path, message: text })),
      ...(present && !rules.message?.skip ? nested(field, message[field.name], path) : []),
    ];
  };

  const nested = (field: protobuf.Field, value: unknown, path: string): Violation[] => {
    if (!(field.resolvedType instanceof protobuf.Type)) return [];
    const type = field.resolvedType;
    const descend = (item: unknown, at: string): Violation[] =>
      type.fullName === '.google.protobuf.Any'
        ? checkAny(item as AnyMembers, at)
        : checkType(type, item as Members, at);
    if (field.map) {
      return Object.entries(value as Members).flatMap(([key, item]) =>
        descend(item, `${path}[${JSON.stringify(key)}]`),
      );
    }
    return field.repeated
      ? (value as unknown[]).flatMap((item, index) => descend(item, `${path}[${index}]`))
      : descend(value, path);
  };

  const checkAny = (any: AnyMembers, path: string): Violation[] => {
    const type = root.lookup(typeOfUrl(any.typeUrl));
    if (!(type instanceof protobuf.Type)) return [{ path, message: `holds an unknown type ${any.typeUrl}` }];
    return checkType(type, membersOf(type, any.value), path);
  };

  return (name, bytes) => {
    const type = root.lookupType(name);
    return checkType(type, membersOf(type, bytes), '');
  };
}

type Members = Readonly<Record<string, unknown>>;
type AnyMembers = { readonly typeUrl: string; readonly value: Uint8Array };

// A decoded message has its fields as members, and their defaults on its prototype.
function membersOf(type: protobuf.Type, bytes: Uint8Array): Members {
  return type.decode(bytes) as unknown as Members;
}

function has(message: Members, field: protobuf.Field): boolean {
  if (!Object.hasOwn(message, field.name)) return false;
  const value = message[field.name];
  return field.map ? Object.keys(value as Members).length > 0 : !(field.repeated && (value as unknown[]).length === 0);
}

function isMessage(field: protobuf.Field): boolean {
  return field.resolvedType instanceof protobuf.Type && !field.repeated && !field.map;
}

function hasPresence(field: protobuf.Field): boolean {
  return field.partOf != null;
}

function isEmpty(value: unknown): boolean {
  return value === '' || value === 0;
}

/** The rules of a wrapper are those of the number or string in it; a duration is compared in nanoseconds. */
function checkMessageValue(field: protobuf.Field, rules: FieldRules, value: unknown): string[] {
  const { resolvedType } = field;
  const wrapped = resolvedType instanceof protobuf.Type ? resolvedType.fields['value'] : undefined;
  return resolvedType?.fullName.match(/^\.google\.protobuf\.\w+Value$/) && wrapped
    ? checkValue(rules, (value as { value: unknown }).value, wrapped)
    : checkValue(rules, value, field);
}

interface Options {
  readonly rules: ReadonlyMap<string, FieldRules>;
  readonly disallowed: ReadonlySet<string>;
  readonly requiredOneofs: ReadonlySet<string>;
}

function keyOf(field: protobuf.Field): string {
  return `${field.parent?.fullName}#${field.id}`;
}

interface Described {
  readonly name: string;
  readonly field?: readonly { readonly number: number; readonly options?: Members }[];
  readonly nestedType?: readonly Described[];
  readonly oneofDecl?: readonly { readonly name: string; readonly options?: Members }[];
}

/**
 * `Root.fromDescriptor` drops custom options. The root's own `FileDescriptorSet` has them as extension fields, so the
 * same bytes are decoded once more with that type.
 */
function readOptions(root: protobuf.Root): Options {
  const rules = new Map<string, FieldRules>();
  const disallowed = new Set<string>();
  const requiredOneofs = new Set<string>();
  const read = (message: Described, parent: string): void => {
    const name = `${parent}.${message.name}`;
    for (const field of message.field ?? []) {
      const fieldRules = field.options?.['.validate.rules'];
      if (fieldRules) rules.set(`${name}#${field.number}`, fieldRules);
      if (field.options?.['.envoy.annotations.disallowedByDefault']) disallowed.add(`${name}#${field.number}`);
    }
    for (const oneof of message.oneofDecl ?? []) {
      if (oneof.options?.['.validate.required']) requiredOneofs.add(`${name}.${oneof.name}`);
    }
    for (const inner of message.nestedType ?? []) read(inner, name);
  };
  const setType = root.lookupType('google.protobuf.FileDescriptorSet');
  const set = setType.toObject(setType.decode(descriptorSet()), { longs: Number, enums: String }) as {
    file: { package: string; messageType?: Described[] }[];
  };
  for (const file of set.file) for (const message of file.messageType ?? []) read(message, `.${file.package}`);
  return { rules, disallowed, requiredOneofs };
}
