import { Buffer } from 'node:buffer';
import type protobuf from 'protobufjs';
import protojson from 'protobufjs/ext/protojson.js';
import type { Any, MessageTypes } from '../gen/types.gen.ts';
import { createPreparer } from './proto-prepare.ts';
import { createRoot } from './proto-root.ts';

/** The message of a type given by its full name; any object if the type has no generated interface (EnvoyFilter). */
export type MessageOf<Name extends string> = Name extends keyof MessageTypes ? MessageTypes[Name] : object;

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** Envoy's types, looked up by full name (`envoy.config.cluster.v3.Cluster`). */
export interface Protos {
  /**
   * The same bytes for the same message, in their own memory. Map entries are sorted by key. A member that the type
   * does not have, a value of the wrong type, and two members of a oneof are bugs in the caller, and throw.
   */
  encode<Name extends string>(type: Name, message: MessageOf<Name>): Uint8Array;
  /** Enum names, 64-bit numbers as decimal strings, absent members absent. Throws for bytes that are not a message. */
  decode<Name extends string>(type: Name, bytes: Uint8Array): MessageOf<Name>;
  /** The message in an `Any` of this type. */
  unpack<Name extends string>(type: Name, any: Any): MessageOf<Name>;
  /** Canonical protobuf JSON; every `Any` is expanded under its `@type`. */
  toJson(type: string, bytes: Uint8Array): Json;
  /** From protobuf JSON (field names in either spelling). Throws for an unknown field, type or enum name. */
  fromJson<Name extends string>(type: Name, json: Json): MessageOf<Name>;
  has(type: string): boolean;
}

const TYPE_URL_PREFIX = 'type.googleapis.com/';

export function typeUrl(type: string): string {
  return TYPE_URL_PREFIX + type;
}

/** `type.googleapis.com/envoy.config.cluster.v3.Cluster` -> `envoy.config.cluster.v3.Cluster` */
export function typeOfUrl(url: string): string {
  return url.slice(url.lastIndexOf('/') + 1);
}

/** A message for an `Any` field. It is encoded together with the message around it. */
export function any<Name extends string>(type: Name, message: MessageOf<Name>): Any {
  return { typeUrl: typeUrl(type), value: message };
}

/** Like {@link any}, for a message that never changes: it is encoded once. */
export function constantAny<Name extends string>(type: Name, message: MessageOf<Name>): Any {
  return Object.freeze(any(type, message));
}

/** Takes about 100 ms: the composition root makes it once. */
export function createProtos(root: protobuf.Root = createRoot()): Protos {
  const types = new Map<string, protobuf.Type>();
  const lookup = (name: string): protobuf.Type => {
    let type = types.get(name);
    if (type === undefined) {
      type = root.lookupType(name);
      types.set(name, type);
    }
    return type;
  };
  // Bytes in shared memory: valid until they are written into the message around them.
  const encode = (type: protobuf.Type, message: object): Uint8Array => type.encode(prepare(type, message)).finish();
  const prepare = createPreparer(lookup('google.protobuf.Any'), (url, message) =>
    encode(lookup(typeOfUrl(url)), message),
  );
  const plain = (type: protobuf.Type, message: protobuf.Message): object =>
    type.toObject(message, { longs: String, enums: String });

  const protos: Protos = {
    encode(name, message) {
      const pooled = encode(lookup(name), message);
      const own = Buffer.allocUnsafeSlow(pooled.length);
      own.set(pooled);
      return own;
    },
    // The generated interface of a name describes what its descriptor decodes to.
    decode: <Name extends string>(name: Name, bytes: Uint8Array) =>
      plain(lookup(name), lookup(name).decode(bytes)) as MessageOf<Name>,
    unpack: (name, { value = new Uint8Array() }) =>
      value instanceof Uint8Array ? protos.decode(name, value) : (value as MessageOf<typeof name>),
    toJson: (name, bytes) => protojson.toJson(lookup(name), lookup(name).decode(bytes)) as Json,
    fromJson: <Name extends string>(name: Name, json: Json) =>
      plain(lookup(name), protojson.fromJson(lookup(name), json)) as MessageOf<Name>,
    has(name) {
      try {
        return lookup(name) !== undefined;
      } catch {
        return false;
      }
    },
  };
  return protos;
}
