import { constants, zstdDecompressSync } from 'node:zlib';
import protobuf from 'protobufjs/minimal.js';
import type { SliceEndpoint } from '../api/core.ts';
import { Wrong } from './member.ts';

/**
 * The bytes of an EndpointSlice of another cluster: protobuf, compressed with zstd. Only the fields that are used; its
 * parts are those of discovery.k8s.io/v1. Source: Cilium pkg/clustermesh/types/endpointslice, `ClusterEndpointSlice`.
 */
export interface WireSlice {
  readonly cluster: string;
  readonly clusterId: number;
  readonly namespace: string;
  readonly name: string;
  readonly labels: ReadonlyMap<string, string>;
  readonly addressType: string;
  readonly endpoints: readonly SliceEndpoint[];
  readonly ports: readonly WirePort[];
}

export interface WirePort {
  readonly name: string;
  readonly protocol: string;
  readonly port: number | undefined;
}

/** In bytes, compressed: what an etcd takes unless it is told otherwise. */
const LONGEST_VALUE = 1.5 * 1024 * 1024;
/** In bytes, decompressed. Cilium has the same limit. */
const LONGEST_SLICE = 16 << 20;
/** log2 of how far back compressed data may refer, for which memory is allocated at once: 16 MiB. */
const LARGEST_WINDOW = 24;
/** Of all messages together: 16 MiB could have eight million. */
const MOST_FIELDS = 200_000;
/** An API server allows as many endpoints and addresses. */
const MOST_ENDPOINTS = 1_000;
const MOST_ADDRESSES = 100;
const MOST_PORTS = 1_000;
const MOST_LABELS = 1_000;

/** Throws {@link Wrong}, and nothing else, if the bytes are not such a slice. */
export function readSlice(bytes: Uint8Array): WireSlice {
  if (bytes.length > LONGEST_VALUE) throw new Wrong(`has more than ${LONGEST_VALUE} bytes`);
  const message = decompress(bytes);
  try {
    return sliceOf(message, { left: MOST_FIELDS });
  } catch (error) {
    throw error instanceof Wrong ? error : new Wrong('is not a protobuf message');
  }
}

function decompress(bytes: Uint8Array): Buffer {
  try {
    const params = { [constants.ZSTD_d_windowLogMax]: LARGEST_WINDOW };
    return zstdDecompressSync(bytes, { maxOutputLength: LONGEST_SLICE, params });
  } catch (error) {
    const isLong = (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE';
    throw new Wrong(isLong ? `has more than ${LONGEST_SLICE} bytes when decompressed` : 'is not compressed with zstd');
  }
}

/** `cluster` 1, `clusterID` 2, `namespace` 3, `name` 4, `labels` 5, `addressType` 7, `endpoints` 8, `ports` 9. */
function sliceOf(bytes: Uint8Array, fields: Budget): WireSlice {
  const labels = new Map<string, string>();
  const endpoints: SliceEndpoint[] = [];
  const ports: WirePort[] = [];
  let [cluster, clusterId, namespace, name, addressType] = ['', 0, '', '', ''];
  eachField(bytes, fields, (tag, reader) => {
    if (tag === lengthTag(1)) cluster = reader.string();
    else if (tag === numberTag(2)) clusterId = reader.uint32();
    else if (tag === lengthTag(3)) namespace = reader.string();
    else if (tag === lengthTag(4)) name = reader.string();
    else if (tag === lengthTag(5)) {
      labels.set(...mapEntryOf(reader.bytes(), fields));
      atMost(MOST_LABELS, labels.size, 'labels');
    } else if (tag === lengthTag(7)) addressType = reader.string();
    else if (tag === lengthTag(8)) {
      endpoints.push(endpointOf(reader.bytes(), fields));
      atMost(MOST_ENDPOINTS, endpoints.length, 'endpoints');
    } else if (tag === lengthTag(9)) {
      ports.push(portOf(reader.bytes(), fields));
      atMost(MOST_PORTS, ports.length, 'ports');
    } else return false;
    return true;
  });
  return { cluster, clusterId, namespace, name, labels, addressType, endpoints, ports };
}

/** `addresses` 1, `conditions` 2, `hostname` 3, `nodeName` 6, `zone` 7. */
function endpointOf(bytes: Uint8Array, fields: Budget): SliceEndpoint {
  const addresses: string[] = [];
  let conditions: Conditions | undefined;
  let [hostname, nodeName, zone] = ['', '', ''];
  eachField(bytes, fields, (tag, reader) => {
    if (tag === lengthTag(1)) {
      addresses.push(reader.string());
      atMost(MOST_ADDRESSES, addresses.length, 'addresses of one endpoint');
    } else if (tag === lengthTag(2)) conditions = conditionsOf(reader.bytes(), fields);
    else if (tag === lengthTag(3)) hostname = reader.string();
    else if (tag === lengthTag(6)) nodeName = reader.string();
    else if (tag === lengthTag(7)) zone = reader.string();
    else return false;
    return true;
  });
  return {
    addresses,
    ...(conditions && { conditions }),
    ...(hostname && { hostname }),
    ...(nodeName && { nodeName }),
    ...(zone && { zone }),
  };
}

type Conditions = NonNullable<SliceEndpoint['conditions']>;

/** `ready` 1, `serving` 2, `terminating` 3. */
function conditionsOf(bytes: Uint8Array, fields: Budget): Conditions {
  let conditions: Conditions = {};
  eachField(bytes, fields, (tag, reader) => {
    if (tag === numberTag(1)) conditions = { ...conditions, ready: reader.bool() };
    else if (tag === numberTag(2)) conditions = { ...conditions, serving: reader.bool() };
    else if (tag === numberTag(3)) conditions = { ...conditions, terminating: reader.bool() };
    else return false;
    return true;
  });
  return conditions;
}

/** `name` 1, `protocol` 2, `port` 3. */
function portOf(bytes: Uint8Array, fields: Budget): WirePort {
  let [name, protocol] = ['', ''];
  let port: number | undefined;
  eachField(bytes, fields, (tag, reader) => {
    if (tag === lengthTag(1)) name = reader.string();
    else if (tag === lengthTag(2)) protocol = reader.string();
    else if (tag === numberTag(3)) port = reader.int32();
    else return false;
    return true;
  });
  return { name, protocol, port };
}

function mapEntryOf(bytes: Uint8Array, fields: Budget): [key: string, value: string] {
  let [key, value] = ['', ''];
  eachField(bytes, fields, (tag, reader) => {
    if (tag === lengthTag(1)) key = reader.string();
    else if (tag === lengthTag(2)) value = reader.string();
    else return false;
    return true;
  });
  return [key, value];
}

/** How many fields may still be read. */
interface Budget {
  left: number;
}

/** Calls `take` for each field; what it does not take is skipped. */
function eachField(bytes: Uint8Array, fields: Budget, take: (tag: number, reader: protobuf.Reader) => boolean): void {
  const reader = protobuf.Reader.create(bytes);
  while (reader.pos < reader.len) {
    if (fields.left-- === 0) throw new Wrong(`has more than ${MOST_FIELDS} fields`);
    const tag = reader.uint32();
    if (!take(tag, reader)) reader.skipType(tag & 7);
  }
}

const numberTag = (field: number): number => field << 3;
const lengthTag = (field: number): number => (field << 3) | 2;

function atMost(most: number, found: number, what: string): void {
  if (found > most) throw new Wrong(`has more than ${most} ${what}`);
}
