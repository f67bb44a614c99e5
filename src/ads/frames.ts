import { Buffer } from 'node:buffer';
import type { Part } from './resource.ts';
import type { Batch, Served } from './served.ts';

/** The largest buffer that is handed to a socket at once: with TLS a connection keeps one as large as that for ever. */
export const SLICE_BYTES = 65_536;

/** A response as it goes over the wire, prefix of the gRPC message included; shared by all streams that get the same. */
export interface Frame {
  readonly nonce: number;
  /** Each at most {@link SLICE_BYTES} long. */
  readonly slices: readonly Uint8Array[];
  readonly length: number;
}

export interface FrameContent {
  readonly typeUrl: string;
  readonly delta: boolean;
  readonly batches: readonly Batch[];
  readonly removed: readonly string[];
}

/** A large batch as it goes over the wire. */
interface Layout {
  readonly size: number;
  readonly slices: readonly Uint8Array[];
}

type Layouts = WeakMap<Batch, Layout>;

interface CachedFrame extends Frame {
  readonly content: FrameContent;
}

/**
 * Puts responses together from the bytes of resources, without an encoder. Within one push most streams get the same:
 * a frame is made once, nonce included (nonces grow over all streams, so they are unique in each), and what is common
 * to different frames is laid out once.
 */
export class Frames {
  #nonce = 0;
  readonly #frames = new Map<number, CachedFrame[]>();
  /** By kind of stream (delta or not) and batch. */
  #layouts: readonly [Layouts, Layouts] = [new WeakMap(), new WeakMap()];

  /** The frame of a response. Its nonce is higher than `after`, the stream's last. */
  of(content: FrameContent, after: number): Frame {
    const key = printOf(content);
    const known = this.#frames.get(key);
    const index = known?.findIndex((frame) => sameContent(frame.content, content)) ?? -1;
    if (known !== undefined && index >= 0 && known[index]!.nonce > after) return known[index]!;
    const frame = this.#build(content);
    const lasting = content.batches.every((batch) => batch.items.every((item) => item.holders > 0));
    if (known === undefined) {
      if (lasting) this.#frames.set(key, [frame]);
    } else if (index >= 0) {
      known[index] = frame;
    } else if (lasting) {
      known.push(frame);
    }
    return frame;
  }

  /** What was shared is about former versions now. */
  outdate(): void {
    this.#frames.clear();
  }

  /** Nothing is under way any more that could be shared. */
  clear(): void {
    this.#frames.clear();
    this.#layouts = [new WeakMap(), new WeakMap()];
  }

  #build(content: FrameContent): CachedFrame {
    const { typeUrl, delta, batches, removed } = content;
    const nonce = ++this.#nonce;
    const layouts = batches.map((batch) => this.#layout(batch, delta));
    const sizes = batches.map((batch, i) => layouts[i]?.size ?? batchSize(batch, delta));
    const size = sum(sizes) + headSize(content, nonce);
    const shared = sum(layouts.map((layout) => layout?.size ?? 0));
    const writer = new SliceWriter(size + GRPC_PREFIX - shared);
    writer.byte(0);
    writer.bigEndian(size);
    // Fields of a message may come in any order: what differs goes first, what is shared behind.
    if (!delta) writer.string(SOTW.version, String(nonce));
    writer.string(delta ? DELTA.typeUrl : SOTW.typeUrl, typeUrl);
    writer.string(delta ? DELTA.nonce : SOTW.nonce, String(nonce));
    for (const name of removed) writer.string(DELTA.removed, name);
    batches.forEach((batch, i) => {
      const layout = layouts[i];
      if (layout !== undefined) writer.append(layout.slices);
      else for (const item of batch.items) writeResource(writer, item, delta);
    });
    return { nonce, slices: writer.finish(), length: size + GRPC_PREFIX, content };
  }

  /** Of a batch that is worth it. */
  #layout(batch: Batch, delta: boolean): Layout | undefined {
    const layouts = this.#layouts[delta ? 1 : 0];
    const known = layouts.get(batch);
    if (known !== undefined) return known;
    const size = batchSize(batch, delta);
    if (size < SLICE_BYTES) return undefined;
    const writer = new SliceWriter(size);
    for (const item of batch.items) writeResource(writer, item, delta);
    const layout = { size, slices: writer.finish() };
    layouts.set(batch, layout);
    return layout;
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}

const GRPC_PREFIX = 5;
/** Field numbers of `envoy.service.discovery.v3.DiscoveryResponse`. */
const SOTW = { version: 1, resources: 2, typeUrl: 4, nonce: 5 };
/** Field numbers of `envoy.service.discovery.v3.DeltaDiscoveryResponse`. */
const DELTA = { resources: 2, typeUrl: 4, nonce: 5, removed: 6 };
/** Field numbers of `envoy.service.discovery.v3.Resource`. */
const RESOURCE = { version: 1, resource: 2, name: 3 };
/** Field numbers of `google.protobuf.Any`. */
const ANY = { typeUrl: 1, value: 2 };

function headSize({ typeUrl, delta, removed }: FrameContent, nonce: number): number {
  const digits = String(nonce).length;
  let size = stringSize(typeUrl) + fieldSize(digits);
  if (!delta) size += fieldSize(digits);
  for (const name of removed) size += stringSize(name);
  return size;
}

function batchSize(batch: Batch, delta: boolean): number {
  let size = 0;
  for (const item of batch.items) size += fieldSize(resourceSize(item, delta));
  return size;
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

function writeResource(writer: SliceWriter, item: Served, delta: boolean): void {
  const { typeUrl, body } = item.resource;
  writer.field(DELTA.resources, resourceSize(item, delta));
  if (delta) {
    writer.string(RESOURCE.version, item.version);
    writer.string(RESOURCE.name, item.name);
    writer.field(RESOURCE.resource, anySize(item));
  }
  writer.string(ANY.typeUrl, typeUrl);
  writer.field(ANY.value, body.length);
  writePart(writer, body);
}

function writePart(writer: SliceWriter, part: Part): void {
  if ('bytes' in part) writer.bytes(part.bytes);
  else for (const child of part.children) writePart(writer, child);
}

/** Writes into slices of bounded size; the sum of what is written (not appended) must be known. */
class SliceWriter {
  readonly #slices: Uint8Array[] = [];
  #left: number;
  #slice: Buffer;
  #from = 0;
  #at = 0;

  constructor(size: number) {
    this.#left = size;
    this.#slice = Buffer.allocUnsafeSlow(Math.min(size, SLICE_BYTES));
  }

  byte(value: number): void {
    if (this.#at === this.#slice.length) this.#next();
    this.#slice[this.#at++] = value;
  }

  bigEndian(value: number): void {
    for (let shift = 24; shift >= 0; shift -= 8) this.byte((value >>> shift) & 0xff);
  }

  field(number: number, length: number): void {
    this.byte(number * 8 + 2);
    for (; length >= 128; length = Math.floor(length / 128)) this.byte((length % 128) | 0x80);
    this.byte(length);
  }

  string(number: number, text: string): void {
    const length = Buffer.byteLength(text);
    this.field(number, length);
    if (this.#slice.length - this.#at >= length) this.#at += this.#slice.write(text, this.#at);
    else this.bytes(Buffer.from(text));
  }

  bytes(bytes: Uint8Array): void {
    for (let from = 0; from < bytes.length;) {
      if (this.#at === this.#slice.length) this.#next();
      const count = Math.min(bytes.length - from, this.#slice.length - this.#at);
      this.#slice.set(from === 0 && count === bytes.length ? bytes : bytes.subarray(from, from + count), this.#at);
      this.#at += count;
      from += count;
    }
  }

  /** Slices that were laid out before. */
  append(slices: readonly Uint8Array[]): void {
    this.#cut();
    this.#slices.push(...slices);
  }

  finish(): readonly Uint8Array[] {
    this.#cut();
    return this.#slices;
  }

  #cut(): void {
    if (this.#at > this.#from) this.#slices.push(this.#slice.subarray(this.#from, this.#at));
    this.#left -= this.#at - this.#from;
    this.#from = this.#at;
  }

  #next(): void {
    this.#cut();
    this.#slice = Buffer.allocUnsafeSlow(Math.min(this.#left, SLICE_BYTES));
    this.#from = this.#at = 0;
  }
}

function printOf({ typeUrl, delta, batches, removed }: FrameContent): number {
  let print = typeUrl.length * 2 + (delta ? 1 : 0);
  for (const batch of batches) print = (Math.imul(print, 31) + batch.print) | 0;
  return (Math.imul(print, 31) + removed.length) | 0;
}

function sameContent(a: FrameContent, b: FrameContent): boolean {
  if (a.typeUrl !== b.typeUrl || a.delta !== b.delta) return false;
  if (a.batches.length !== b.batches.length || a.removed.length !== b.removed.length) return false;
  return (
    a.batches.every((batch, i) => batch.equals(b.batches[i]!)) && a.removed.every((name, i) => name === b.removed[i])
  );
}
