import { Buffer } from 'node:buffer';
import { bytesOf } from './bytes-of.ts';
import { PREFIX } from './deframer.ts';
import type { NodePart, Part } from '../store/resource.ts';
import type { Batch, Served } from '../store/served.ts';
import { SLICE_BYTES, SliceWriter, slicesOf } from './slice-writer.ts';

/** A response as sent over the wire, with the gRPC message prefix; shared by all streams that get the same. */
export interface Frame {
  readonly nonce: number;
  /** Version of the content, in state of the world: equal content has an equal version, whichever replica serves it. */
  readonly version: string;
  /** Each at most {@link SLICE_BYTES} long. */
  readonly slices: readonly Uint8Array[];
  readonly length: number;
}

export interface FrameContent {
  readonly typeUrl: string;
  readonly delta: boolean;
  readonly batches: readonly Batch[];
  readonly removed: readonly string[];
  /** Identifies this process to the client; absent: it is not told. */
  readonly controlPlane?: string;
}

/** Memory kept for streams that may get the same, in bytes: all of it is dropped when it is used up. */
export const FRAME_LIMITS = {
  /** For frames, besides what they share: publications clear them, streams that ask for different things fill them. */
  frames: 64 * 1024 * 1024,
  /**
   * For batches laid out for the wire, and once for what they have in common. The resources of one type for a mesh of
   * 10,000 services take about 10 MB.
   */
  layouts: 192 * 1024 * 1024,
};
/** What a frame takes besides its bytes. */
const FRAME_OVERHEAD = 1024;

/** What a slice takes in a layout, wherever its bytes are. */
const REFERENCE_BYTES = 8;

/** Parts of at least this length are not copied into frames: frames refer to them. */
const SHARED_BYTES = 4096;

/** The bytes of parts worth sharing, most of which tables have in common. */
class SharedParts {
  /** How many bytes were copied for them. */
  copied = 0;
  readonly #bytes = new WeakMap<NodePart, Uint8Array>();

  of(part: Part): Uint8Array {
    if ('bytes' in part) return part.bytes;
    let bytes = this.#bytes.get(part);
    if (bytes === undefined) {
      this.#bytes.set(part, (bytes = bytesOf(part)));
      this.copied += bytes.length;
    }
    return bytes;
  }
}

/** A batch as sent over the wire; without slices if it is too small to be shared. */
interface Layout {
  readonly size: number;
  readonly slices?: readonly Uint8Array[];
}

type Layouts = WeakMap<Batch, Layout>;

interface CachedFrame extends Frame {
  readonly content: FrameContent;
  /** Bytes that are in no layout. */
  readonly own: number;
}

/**
 * Assembles responses from the bytes of resources, without an encoder. Within one push, most streams get the same: a
 * frame is made once, nonce included (nonces increase across all streams, so they are unique in each), and what
 * different frames have in common is laid out once.
 */
export class Frames {
  #nonce = 0;
  readonly #frames = new Map<number, CachedFrame[]>();
  /** By kind of stream (delta or not) and batch. */
  #layouts: readonly [Layouts, Layouts] = [new WeakMap(), new WeakMap()];
  #parts = new SharedParts();
  readonly #limits: typeof FRAME_LIMITS;
  /** How much of the limits is used; of the latter, besides {@link SharedParts.copied}. */
  #kept = 0;
  #laidOut = 0;

  constructor(limits = FRAME_LIMITS) {
    this.#limits = limits;
  }

  /** The frame of a response. Its nonce is above `after`, the stream's last of any type: nonces show the order. */
  of(content: FrameContent, after: number): Frame {
    const key = printOf(content);
    const known = this.#frames.get(key);
    const index = known?.findIndex((frame) => sameContent(frame.content, content)) ?? -1;
    if (known !== undefined && index >= 0 && known[index]!.nonce > after) return known[index]!;
    const layouts = content.batches.map((batch) => this.#layout(batch, content.delta));
    const frame = this.#build(content, layouts);
    if (known !== undefined && index >= 0) known[index] = frame;
    else if (content.batches.every((batch) => batch.items.every((item) => item.holders > 0))) this.#keep(key, frame);
    return frame;
  }

  /** The frame of a response that only one client gets: nothing of it is kept. */
  once(content: FrameContent): Frame {
    const layouts = content.batches.map((batch) => this.#layOut(batch, content.delta, batchSize(batch, content.delta)));
    return this.#build(content, layouts);
  }

  #keep(key: number, frame: CachedFrame): void {
    this.#kept += frame.own + FRAME_OVERHEAD;
    if (this.#kept > this.#limits.frames) this.outdate();
    const known = this.#frames.get(key);
    if (known === undefined) this.#frames.set(key, [frame]);
    else known.push(frame);
  }

  /** What was shared is now about former versions. */
  outdate(): void {
    this.#frames.clear();
    this.#kept = 0;
  }

  /** Nothing that could be shared is under way any more. */
  clear(): void {
    this.outdate();
    this.#layouts = [new WeakMap(), new WeakMap()];
    this.#laidOut = 0;
    this.#parts = new SharedParts();
  }

  #build(content: FrameContent, layouts: readonly Layout[]): CachedFrame {
    const { typeUrl, delta, batches, removed, controlPlane } = content;
    const nonce = ++this.#nonce;
    const version = delta ? '' : versionOf(batches);
    const size = sum(layouts.map((layout) => layout.size)) + headSize(content, nonce, version);
    const shared = sum(layouts.map(({ slices, size: whole }) => (slices === undefined ? 0 : whole)));
    const own = size + PREFIX - shared;
    const writer = new SliceWriter(own);
    writer.byte(0);
    writer.bigEndian(size);
    // The fields of a message may come in any order: what differs goes first, followed by what is shared.
    if (!delta) writer.string(SOTW.version, version);
    writer.string(delta ? DELTA.typeUrl : SOTW.typeUrl, typeUrl);
    writer.string(delta ? DELTA.nonce : SOTW.nonce, String(nonce));
    for (const name of removed) writer.string(DELTA.removed, name);
    if (controlPlane !== undefined) {
      writer.field(delta ? DELTA.controlPlane : SOTW.controlPlane, stringSize(controlPlane));
      writer.string(CONTROL_PLANE.identifier, controlPlane);
    }
    batches.forEach((batch, i) => {
      const { slices } = layouts[i]!;
      if (slices !== undefined) writer.append(slices);
      else for (const item of batch.items) writeResource(writer, this.#parts, item, delta);
    });
    return { nonce, version, slices: writer.finish(), length: size + PREFIX, content, own };
  }

  #layout(batch: Batch, delta: boolean): Layout {
    const known = this.#layouts[delta ? 1 : 0].get(batch);
    if (known !== undefined) return known;
    const size = batchSize(batch, delta);
    if (size < SHARED_BYTES) return { size };
    if (this.#laidOut + this.#parts.copied > this.#limits.layouts) this.clear();
    const layout = this.#layOut(batch, delta, size);
    // Thousands of tables may have nearly everything in common.
    this.#laidOut += size - sharedSize(batch) + REFERENCE_BYTES * layout.slices.length;
    this.#layouts[delta ? 1 : 0].set(batch, layout);
    return layout;
  }

  #layOut(batch: Batch, delta: boolean, size: number): Required<Layout> {
    const writer = new SliceWriter(size - sharedSize(batch));
    for (const item of batch.items) writeResource(writer, this.#parts, item, delta);
    return { size, slices: writer.finish() };
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}

/** Field numbers of `envoy.service.discovery.v3.DiscoveryResponse`. */
const SOTW = { version: 1, resources: 2, typeUrl: 4, nonce: 5, controlPlane: 6 };
/** Field numbers of `envoy.service.discovery.v3.DeltaDiscoveryResponse`. */
const DELTA = { resources: 2, typeUrl: 4, nonce: 5, removed: 6, controlPlane: 7 };
/** Field numbers of `envoy.config.core.v3.ControlPlane`. */
const CONTROL_PLANE = { identifier: 1 };
/** Field numbers of `envoy.service.discovery.v3.Resource`. */
const RESOURCE = { version: 1, resource: 2, name: 3 };
/** Field numbers of `google.protobuf.Any`. */
const ANY = { typeUrl: 1, value: 2 };

/** Hash of names and versions, in any order. Clients keep it; a collision would only mislead someone comparing two. */
function versionOf(batches: readonly Batch[]): string {
  let [a, b, count] = [0, 0, 0];
  for (const { versionHash } of batches) {
    [a, b, count] = [(a + versionHash.a) | 0, (b + versionHash.b) | 0, count + versionHash.count];
  }
  return [a, b, count].map((number) => (number >>> 0).toString(16).padStart(8, '0')).join('');
}

function headSize(content: FrameContent, nonce: number, version: string): number {
  const { typeUrl, delta, removed, controlPlane } = content;
  let size = stringSize(typeUrl) + fieldSize(String(nonce).length);
  if (controlPlane !== undefined) size += fieldSize(stringSize(controlPlane));
  if (!delta) size += fieldSize(version.length);
  for (const name of removed) size += stringSize(name);
  return size;
}

function batchSize(batch: Batch, delta: boolean): number {
  let size = 0;
  for (const item of batch.items) size += fieldSize(resourceSize(item, delta));
  return size;
}

/** Size of the parts that are not copied. */
function sharedSize(batch: Batch): number {
  let size = 0;
  for (const item of batch.items) for (const part of topOf(item.resource.body)) size += sharedSizeOf(part);
  return size;
}

function sharedSizeOf(part: Part): number {
  if (isShared(part)) return part.length;
  if (part.length < SHARED_BYTES || 'bytes' in part) return 0;
  let size = 0;
  for (const child of part.children) size += sharedSizeOf(child);
  return size;
}

/** If a part is longer than a slice, its children are shared instead, unless they are too short. */
function isShared(part: Part): boolean {
  if (part.length < SHARED_BYTES) return false;
  return part.length <= SLICE_BYTES || 'bytes' in part || part.children.every(({ length }) => length < SHARED_BYTES);
}

function resourceSize(item: Served, delta: boolean): number {
  const any = anySize(item);
  return delta ? stringSize(item.version) + stringSize(item.name) + fieldSize(any) : any;
}

function anySize(item: Served): number {
  return stringSize(item.resource.typeUrl) + fieldSize(item.resource.body.length);
}

/** Size of a length-delimited field with a one-byte tag. */
function fieldSize(length: number): number {
  return 1 + varintSize(length) + length;
}

function stringSize(text: string): number {
  return fieldSize(Buffer.byteLength(text));
}

function varintSize(value: number): number {
  let size = 1;
  for (; value >= 128; value = Math.floor(value / 128)) size++;
  return size;
}

/** The field has the same number in both kinds of responses. */
function writeResource(writer: SliceWriter, parts: SharedParts, item: Served, delta: boolean): void {
  const { typeUrl, body } = item.resource;
  writer.field(DELTA.resources, resourceSize(item, delta));
  if (delta) {
    writer.string(RESOURCE.version, item.version);
    writer.string(RESOURCE.name, item.name);
    writer.field(RESOURCE.resource, anySize(item));
  }
  writer.string(ANY.typeUrl, typeUrl);
  writer.field(ANY.value, body.length);
  for (const part of topOf(body)) writePart(writer, parts, part);
}

/** A whole resource is shared with its name and version; only the parts below it can be shared with others. */
function topOf(body: Part): readonly Part[] {
  return 'bytes' in body ? [body] : body.children;
}

function writePart(writer: SliceWriter, parts: SharedParts, part: Part): void {
  if (isShared(part)) {
    writer.append(slicesOf(parts.of(part)));
  } else if ('bytes' in part) {
    writer.bytes(part.bytes);
  } else {
    for (const child of part.children) writePart(writer, parts, child);
  }
}

function printOf({ typeUrl, delta, batches, removed }: FrameContent): number {
  let print = typeUrl.length * 2 + (delta ? 1 : 0);
  for (const batch of batches) print = (Math.imul(print, 31) + batch.cacheKey) | 0;
  return (Math.imul(print, 31) + removed.length) | 0;
}

function sameContent(a: FrameContent, b: FrameContent): boolean {
  if (a.typeUrl !== b.typeUrl || a.delta !== b.delta) return false;
  if (a.batches.length !== b.batches.length || a.removed.length !== b.removed.length) return false;
  return (
    a.batches.every((batch, i) => batch.equals(b.batches[i]!)) && a.removed.every((name, i) => name === b.removed[i])
  );
}
