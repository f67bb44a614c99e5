import protobuf from 'protobufjs/minimal.js';
import { HOST, HOST_FIELDS } from '../../model/named-host.ts';
import type { HostAddresses } from './names.ts';

/**
 * The few messages of delta xDS that the agent needs, written and read field by field: Envoy's descriptors would take
 * more memory than all the rest of the agent. Sources: envoy/service/discovery/v3/discovery.proto,
 * envoy/config/core/v3/base.proto, google/protobuf/struct.proto.
 */

/** Who the agent is: the node of its proxy. */
export interface AgentNode {
  readonly id: string;
  readonly cluster: string;
  /** JSON. */
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly locality?: { readonly region: string; readonly zone: string; readonly subZone: string };
}

/** The first request of a stream: for all hosts. */
export function firstRequest(node: AgentNode, versions: ReadonlyMap<string, string>): Uint8Array {
  const writer = protobuf.Writer.create();
  writer.uint32(bytesField(1)).fork();
  writeNode(writer, node);
  writer.ldelim();
  writer.uint32(bytesField(2)).string(HOST);
  for (const [name, version] of versions) {
    writer.uint32(bytesField(5)).fork();
    writer.uint32(bytesField(1)).string(name);
    writer.uint32(bytesField(2)).string(version);
    writer.ldelim();
  }
  return writer.finish();
}

/** @param error why the response is refused; absent: it is accepted. */
export function answerRequest(nonce: string, error?: string): Uint8Array {
  const writer = protobuf.Writer.create();
  writer.uint32(bytesField(2)).string(HOST);
  writer.uint32(bytesField(6)).string(nonce);
  if (error !== undefined) {
    writer.uint32(bytesField(7)).fork();
    writer.uint32(1 << 3).int32(INVALID_ARGUMENT);
    writer.uint32(bytesField(2)).string(error);
    writer.ldelim();
  }
  return writer.finish();
}

const INVALID_ARGUMENT = 3;

function writeNode(writer: protobuf.Writer, { id, cluster, metadata, locality }: AgentNode): void {
  writer.uint32(bytesField(1)).string(id);
  writer.uint32(bytesField(2)).string(cluster);
  writer.uint32(bytesField(3)).fork();
  writeStruct(writer, metadata);
  writer.ldelim();
  if (locality !== undefined) {
    writer.uint32(bytesField(4)).fork();
    writer.uint32(bytesField(1)).string(locality.region);
    writer.uint32(bytesField(2)).string(locality.zone);
    writer.uint32(bytesField(3)).string(locality.subZone);
    writer.ldelim();
  }
  writer.uint32(bytesField(6)).string('fairlead-agent');
}

function writeStruct(writer: protobuf.Writer, object: object): void {
  for (const [key, value] of Object.entries(object)) {
    if (value === undefined) continue;
    writer.uint32(bytesField(1)).fork();
    writer.uint32(bytesField(1)).string(key);
    writer.uint32(bytesField(2)).fork();
    writeValue(writer, value);
    writer.ldelim().ldelim();
  }
}

function writeValue(writer: protobuf.Writer, value: unknown): void {
  if (typeof value === 'number') writer.uint32((2 << 3) | 1).double(value);
  else if (typeof value === 'string') writer.uint32(bytesField(3)).string(value);
  else if (typeof value === 'boolean') writer.uint32(4 << 3).bool(value);
  else if (Array.isArray(value)) {
    writer.uint32(bytesField(6)).fork();
    for (const element of value) {
      writer.uint32(bytesField(1)).fork();
      writeValue(writer, element);
      writer.ldelim();
    }
    writer.ldelim();
  } else if (typeof value === 'object' && value !== null) {
    writer.uint32(bytesField(5)).fork();
    writeStruct(writer, value);
    writer.ldelim();
  } else writer.uint32(1 << 3).int32(0);
}

/** A host, with the version to name when the agent connects again. */
export interface ReceivedHost {
  readonly name: string;
  readonly version: string;
  readonly addresses: HostAddresses;
}

export interface HostsResponse {
  readonly nonce: string;
  readonly hosts: readonly ReceivedHost[];
  readonly removed: readonly string[];
  /** Why it cannot be used; then there are no hosts. */
  readonly error?: string;
}

/** Throws if it is not a message at all. */
export function readResponse(bytes: Uint8Array): HostsResponse {
  const hosts: ReceivedHost[] = [];
  const removed: string[] = [];
  let nonce = '';
  let error: string | undefined;
  readFields(bytes, {
    2: (reader) => {
      const host = readResource(reader.bytes());
      if (typeof host === 'string') error ??= host;
      else hosts.push(host);
    },
    5: (reader) => (nonce = reader.string()),
    6: (reader) => removed.push(reader.string()),
  });
  return error === undefined ? { nonce, hosts, removed } : { nonce, hosts: [], removed: [], error };
}

/** Or what is wrong with it. */
function readResource(bytes: Uint8Array): ReceivedHost | string {
  let [name, version, typeUrl] = ['', '', ''];
  let body: Uint8Array = NONE;
  readFields(bytes, {
    1: (reader) => (version = reader.string()),
    2: (reader) =>
      readFields(reader.bytes(), {
        1: (any) => (typeUrl = any.string()),
        2: (any) => (body = any.bytes()),
      }),
    3: (reader) => (name = reader.string()),
  });
  if (typeUrl !== HOST) return `${JSON.stringify(name)} is a ${typeUrl}, not a ${HOST}`;
  let [v4, v6, isShort] = [NONE, NONE, false];
  readFields(body, {
    [HOST_FIELDS.v4]: (reader) => (v4 = own(reader.bytes())),
    [HOST_FIELDS.v6]: (reader) => (v6 = own(reader.bytes())),
    [HOST_FIELDS.isShort]: (reader) => (isShort = reader.bool()),
  });
  if (v4.length % 4 !== 0 || v6.length % 16 !== 0) return `${JSON.stringify(name)} has a part of an address`;
  return { name, version, addresses: { v4, v6, isShort } };
}

const NONE: Uint8Array = new Uint8Array();

/** Kept for long: not a part of a whole response. */
const own = (bytes: Uint8Array): Uint8Array => (bytes.length === 0 ? NONE : Uint8Array.from(bytes));

/** Skips fields without a handler. */
function readFields(bytes: Uint8Array, handlers: Readonly<Record<number, (reader: protobuf.Reader) => unknown>>): void {
  const reader = protobuf.Reader.create(bytes);
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    const handler = handlers[tag >>> 3];
    if (handler === undefined) reader.skipType(tag & 7);
    else handler(reader);
  }
}

const bytesField = (field: number): number => (field << 3) | 2;
