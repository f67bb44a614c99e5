import { BadRequest } from '../bad-request.ts';
import { Buffer } from 'node:buffer';
import type { ConnectedProxy } from '../types.ts';
import { FieldReader } from '../wire/field-reader.ts';

const MAX_DEPTH = 64;
/** A node is kept as long as its proxy. Its annotations may be a quarter of this, and Envoy's extensions 60 KB. */
const MAX_NODE_BYTES = 1024 * 1024;

/**
 * What a node says about itself appears in log lines and labels. Bytes, for each of its texts; the longest id that
 * Kubernetes and Istio build from usual names has some 230.
 */
const MAX_TEXT_BYTES = 256;
/** Extensions that are not Envoy's own. */
const MAX_EXTENSIONS = 1_000;
/** Client features: Envoy's API defines seven. */
const MAX_FEATURES = 64;

/** A node that says too much about itself. */
export class UnfitNode extends BadRequest {}

/** `envoy.config.core.v3.Node` of a first request. */
export function readNode(bytes: Uint8Array, stream: string): ConnectedProxy {
  if (bytes.length > MAX_NODE_BYTES) throw new UnfitNode(`the node is longer than ${MAX_NODE_BYTES} bytes`, true);
  const reader = new FieldReader(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  let nodeId = '';
  let nodeCluster = '';
  let metadata: Record<string, unknown> = {};
  let locality = { region: '', zone: '', subZone: '' };
  let agent = '';
  let version = '';
  const extensions: string[] = [];
  const features: string[] = [];
  while (reader.next()) {
    switch (reader.field) {
      case 1:
        nodeId = shortText(reader, 'the node id', 'shorten it, or the names of the Pod and namespace in it');
        break;
      case 2:
        nodeCluster = shortText(reader, 'the cluster of the node');
        break;
      case 3:
        metadata = readStruct(reader.message(), 0);
        break;
      case 4:
        locality = readLocality(reader.message());
        break;
      case 6:
        agent = shortText(reader, 'the user agent name of the node');
        break;
      case 7:
        version = shortText(reader, 'the user agent version of the node');
        break;
      case 8:
        version = readBuildVersion(reader.message());
        break;
      case 9: {
        const name = readExtension(reader.message());
        if (isStock(name)) break;
        if (extensions.length === MAX_EXTENSIONS)
          throw new UnfitNode(`the node has more than ${MAX_EXTENSIONS} extensions that are not Envoy's own`);
        extensions.push(name);
        break;
      }
      case 10:
        if (features.length === MAX_FEATURES)
          throw new UnfitNode(`the node declares more than ${MAX_FEATURES} client features`);
        features.push(shortText(reader, 'a client feature of the node'));
        break;
    }
  }
  const build = version === '' ? agent : `${agent} ${version}`;
  const declared = features.length === 0 ? {} : { features };
  return { stream, nodeId, nodeCluster, metadata, locality, build, extensions, ...declared };
}

function shortText(reader: FieldReader, what: string, advice = 'shorten it'): string {
  if (reader.to - reader.from > MAX_TEXT_BYTES)
    throw new UnfitNode(`${what} is longer than ${MAX_TEXT_BYTES} bytes; ${advice}`);
  return reader.string();
}

/** Whether the extension is Envoy's own. Every node lists some five hundred of these: 40 KB per proxy. */
function isStock(extension: string): boolean {
  return extension.startsWith('envoy.');
}

function readLocality(reader: FieldReader): ConnectedProxy['locality'] {
  const locality = { region: '', zone: '', subZone: '' };
  while (reader.next()) {
    if (reader.field === 1) locality.region = shortText(reader, 'the region of the node');
    else if (reader.field === 2) locality.zone = shortText(reader, 'the zone of the node');
    else if (reader.field === 3) locality.subZone = shortText(reader, 'the sub-zone of the node');
  }
  return locality;
}

/** `BuildVersion.version` as `major.minor.patch`. */
function readBuildVersion(reader: FieldReader): string {
  const numbers = [0, 0, 0];
  while (reader.next()) {
    if (reader.field !== 1) continue;
    const semantic = reader.message();
    while (semantic.next())
      if (semantic.field <= 3 && semantic.wireType === 0) numbers[semantic.field - 1] = semantic.varint;
  }
  return numbers.join('.');
}

function readExtension(reader: FieldReader): string {
  let name = '';
  while (reader.next()) if (reader.field === 1) name = shortText(reader, 'the name of an extension of the node');
  return name;
}

/** `google.protobuf.Struct` as plain JSON. */
function readStruct(reader: FieldReader, depth: number): Record<string, unknown> {
  if (depth > MAX_DEPTH) throw new BadRequest('the node metadata is nested too deeply');
  const fields = Object.create(null) as Record<string, unknown>;
  while (reader.next()) {
    if (reader.field !== 1) continue;
    const entry = reader.message();
    let key = '';
    let value: unknown = null;
    while (entry.next()) {
      if (entry.field === 1) key = entry.string();
      else if (entry.field === 2) value = readValue(entry.message(), depth + 1);
    }
    fields[key] = value;
  }
  return { ...fields };
}

function readValue(reader: FieldReader, depth: number): unknown {
  if (depth > MAX_DEPTH) throw new BadRequest('the node metadata is nested too deeply');
  let value: unknown = null;
  while (reader.next()) {
    switch (reader.field) {
      case 2:
        if (reader.wireType !== 1) throw new BadRequest('a number in the node metadata is not a double');
        value = finite(reader.buffer.readDoubleLE(reader.from));
        break;
      case 3:
        value = reader.string();
        break;
      case 4:
        value = reader.varint !== 0;
        break;
      case 5:
        value = readStruct(reader.message(), depth + 1);
        break;
      case 6:
        value = readList(reader.message(), depth + 1);
        break;
    }
  }
  return value;
}

function readList(reader: FieldReader, depth: number): unknown[] {
  const values: unknown[] = [];
  while (reader.next()) if (reader.field === 1) values.push(readValue(reader.message(), depth));
  return values;
}

/** JSON has no other numbers. */
function finite(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}
