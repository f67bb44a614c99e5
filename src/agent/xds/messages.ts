import protobuf from 'protobufjs/minimal.js';

/**
 * The few parts of xDS messages that an agent reads and writes. The rest passes through as bytes. Source: Envoy
 * service/discovery/v3/discovery.proto. Readers throw if the bytes are not such a message.
 */

export interface Resource {
  readonly name: string;
  readonly version: string;
  /** The message in its Any. */
  readonly value: Uint8Array;
}

export interface DeltaResponse {
  readonly typeUrl: string;
  readonly nonce: string;
  readonly resources: readonly Resource[];
  readonly removed: readonly string[];
}

/** Type and nonce of a `DeltaDiscoveryResponse`: what decides where it goes. */
export function readEnvelope(bytes: Uint8Array): { readonly typeUrl: string; readonly nonce: string } {
  let [typeUrl, nonce] = ['', ''];
  eachField(bytes, (field, reader) => {
    if (field === 4) typeUrl = reader.string();
    else if (field === 5) nonce = reader.string();
    else return false;
    return true;
  });
  return { typeUrl, nonce };
}

/** `resources` 2, `type_url` 4, `nonce` 5, `removed_resources` 6. */
export function readDeltaResponse(bytes: Uint8Array): DeltaResponse {
  let [typeUrl, nonce] = ['', ''];
  const resources: Resource[] = [];
  const removed: string[] = [];
  eachField(bytes, (field, reader) => {
    if (field === 2) resources.push(readResource(reader.bytes()));
    else if (field === 4) typeUrl = reader.string();
    else if (field === 5) nonce = reader.string();
    else if (field === 6) removed.push(reader.string());
    else return false;
    return true;
  });
  return { typeUrl, nonce, resources, removed };
}

/** As {@link readDeltaResponse}, with each resource left as it is: a `Resource`, encoded. */
export function readRawResponse(bytes: Uint8Array): RawResponse {
  let [typeUrl, nonce] = ['', ''];
  const resources: (readonly [name: string, resource: Uint8Array])[] = [];
  const removed: string[] = [];
  eachField(bytes, (field, reader) => {
    if (field === 2) {
      const resource = reader.bytes();
      resources.push([nameOf(resource), resource]);
    } else if (field === 4) typeUrl = reader.string();
    else if (field === 5) nonce = reader.string();
    else if (field === 6) removed.push(reader.string());
    else return false;
    return true;
  });
  return { typeUrl, nonce, resources, removed };
}

export interface RawResponse {
  readonly typeUrl: string;
  readonly nonce: string;
  readonly resources: readonly (readonly [name: string, resource: Uint8Array])[];
  readonly removed: readonly string[];
}

export function writeRawResponse({ typeUrl, nonce, resources, removed }: RawResponse): Buffer {
  const writer = protobuf.Writer.create();
  for (const [, resource] of resources) writer.uint32(tag(2)).bytes(resource);
  writer.uint32(tag(4)).string(typeUrl).uint32(tag(5)).string(nonce);
  for (const name of removed) writer.uint32(tag(6)).string(name);
  return Buffer.from(writer.finish());
}

function nameOf(resource: Uint8Array): string {
  let name = '';
  eachField(resource, (field, reader) => {
    if (field !== 3) return false;
    name = reader.string();
    return true;
  });
  return name;
}

/** `version` 1, `resource` 2 (an Any), `name` 3. */
function readResource(bytes: Uint8Array): Resource {
  let [name, version] = ['', ''];
  let value: Uint8Array = new Uint8Array();
  eachField(bytes, (field, reader) => {
    if (field === 1) version = reader.string();
    else if (field === 2) value = readAny(reader.bytes());
    else if (field === 3) name = reader.string();
    else return false;
    return true;
  });
  return { name, version, value };
}

/** `value` 2. */
function readAny(bytes: Uint8Array): Uint8Array {
  let value: Uint8Array = new Uint8Array();
  eachField(bytes, (field, reader) => {
    if (field !== 2) return false;
    value = reader.bytes();
    return true;
  });
  return value;
}

export interface DeltaRequest {
  readonly typeUrl: string;
  readonly subscribe?: readonly string[];
  /** What the client has: name -> version. */
  readonly versions?: ReadonlyMap<string, string>;
  /** Of the response that this answers. */
  readonly nonce?: string;
  /** Why that response is rejected. */
  readonly error?: string;
}

/** `type_url` 2, `resource_names_subscribe` 3, `initial_resource_versions` 5, `response_nonce` 6, `error_detail` 7. */
export function writeDeltaRequest({ typeUrl, subscribe = [], versions, nonce, error }: DeltaRequest): Buffer {
  const writer = protobuf.Writer.create().uint32(tag(2)).string(typeUrl);
  for (const name of subscribe) writer.uint32(tag(3)).string(name);
  for (const [name, version] of versions ?? [])
    writer.uint32(tag(5)).fork().uint32(tag(1)).string(name).uint32(tag(2)).string(version).ldelim();
  if (nonce !== undefined) writer.uint32(tag(6)).string(nonce);
  // google.rpc.Status: code 1 (INVALID_ARGUMENT), message 2.
  if (error !== undefined) writer.uint32(tag(7)).fork().uint32(8).int32(3).uint32(tag(2)).string(error).ldelim();
  return Buffer.from(writer.finish());
}

/** What a client of the state of the world, or of differences, says. */
export interface AnyRequest {
  readonly typeUrl: string;
  readonly names: readonly string[];
  /** Empty in the first request of a stream. */
  readonly nonce: string;
  readonly error: string | undefined;
}

/** `DiscoveryRequest`: `resource_names` 3, `type_url` 4, `response_nonce` 5, `error_detail` 6. */
export const readRequest = (bytes: Uint8Array): AnyRequest => readAnyRequest(bytes, 4, 5, 6);
/** `DeltaDiscoveryRequest`: `type_url` 2, `resource_names_subscribe` 3, `response_nonce` 6, `error_detail` 7. */
export const readDeltaRequest = (bytes: Uint8Array): AnyRequest => readAnyRequest(bytes, 2, 6, 7);

function readAnyRequest(bytes: Uint8Array, typeField: number, nonceField: number, errorField: number): AnyRequest {
  const names: string[] = [];
  let [typeUrl, nonce] = ['', ''];
  let error: string | undefined;
  eachField(bytes, (field, reader) => {
    if (field === 3) names.push(reader.string());
    else if (field === typeField) typeUrl = reader.string();
    else if (field === nonceField) nonce = reader.string();
    else if (field === errorField) error = readStatus(reader.bytes());
    else return false;
    return true;
  });
  return { typeUrl, names, nonce, error };
}

/** `message` 2. */
function readStatus(bytes: Uint8Array): string {
  let message = '';
  eachField(bytes, (field, reader) => {
    if (field !== 2) return false;
    message = reader.string();
    return true;
  });
  return message;
}

export interface Answer {
  readonly typeUrl: string;
  readonly version: string;
  /** Messages of that type, by name. */
  readonly resources: readonly (readonly [name: string, value: Uint8Array])[];
}

/** `DiscoveryResponse`: `version_info` 1, `resources` 2, `type_url` 4, `nonce` 5. The version is the nonce. */
export function writeResponse({ typeUrl, version, resources }: Answer): Buffer {
  const writer = protobuf.Writer.create().uint32(tag(1)).string(version);
  for (const [, value] of resources) writeAny(writer.uint32(tag(2)).fork(), typeUrl, value).ldelim();
  return Buffer.from(writer.uint32(tag(4)).string(typeUrl).uint32(tag(5)).string(version).finish());
}

/** `DeltaDiscoveryResponse`: as {@link readDeltaResponse} has it. */
export function writeDeltaResponse({ typeUrl, version, resources }: Answer): Buffer {
  const writer = protobuf.Writer.create();
  for (const [name, value] of resources) {
    const inner = writer.uint32(tag(2)).fork().uint32(tag(1)).string(version);
    writeAny(inner.uint32(tag(2)).fork(), typeUrl, value)
      .ldelim()
      .uint32(tag(3))
      .string(name)
      .ldelim();
  }
  return Buffer.from(writer.uint32(tag(4)).string(typeUrl).uint32(tag(5)).string(version).finish());
}

const writeAny = (writer: protobuf.Writer, typeUrl: string, value: Uint8Array): protobuf.Writer =>
  writer.uint32(tag(1)).string(typeUrl).uint32(tag(2)).bytes(value);

/** Of a field with a length. */
const tag = (field: number): number => (field << 3) | 2;

/** Calls `take` for each field with a length; what it does not take is skipped, like all other fields. */
export function eachField(bytes: Uint8Array, take: (field: number, reader: protobuf.Reader) => boolean): void {
  const reader = protobuf.Reader.create(bytes);
  while (reader.pos < reader.len) {
    const key = reader.uint32();
    if ((key & 7) !== 2 || !take(key >>> 3, reader)) reader.skipType(key & 7);
  }
}
