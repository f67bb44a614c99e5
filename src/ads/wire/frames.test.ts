import { expect, test } from 'vitest';
import { createProtos } from '../../envoy/encode/proto.ts';
import { ContentHasher } from '../store/content-hash.ts';
import { FRAME_LIMITS, type Frame, Frames } from './frames.ts';
import { SLICE_BYTES } from './slice-writer.ts';
import type { EncodedResource, Part } from '../store/resource.ts';
import { Batch, Served } from '../store/served.ts';

const protos = createProtos();
const hasher = new ContentHasher([1, 2]);
let ids = 0;

function leaf(size: number, fill: number): Part {
  return { bytes: new Uint8Array(size).fill(fill), length: size, hash: `${size}-${fill}`, clusters: [], origins: [] };
}

function join(...children: readonly Part[]): Part {
  const length = children.reduce((sum, child) => sum + child.length, 0);
  return { children, length, hash: children.map((child) => child.hash).join() };
}

function served(name: string, body: Part): Served {
  const resource: EncodedResource = { typeUrl: 'type/caf\u00e9', name, version: body.hash, body };
  const item = new Served(resource, ++ids, hasher);
  item.holders = 1;
  return item;
}

const body = (slices: readonly Uint8Array[]): Buffer => {
  const frame = Buffer.concat(slices);
  expect(frame[0]).toBe(0);
  expect(frame.readUInt32BE(1)).toBe(frame.length - 5);
  return frame.subarray(5);
};
const content = (batches: Batch[], delta: boolean, removed: string[] = []) => ({
  typeUrl: 'type/caf\u00e9',
  delta,
  batches,
  removed,
});

const node = join(leaf(10, 1), join(leaf(70_000, 2), leaf(0, 3)));
const small = new Batch([served('a', leaf(3, 1)), served('\u{1f600}', leaf(300, 2)), served('empty', leaf(0, 0))]);
const large = new Batch(Array.from({ length: 200 }, (_, i) => served(`n${i}`, leaf(1000, i % 256))));
const huge = new Batch([served('table', node)]);
const shared = join(join(leaf(3000, 1), leaf(2000, 2)), leaf(5, 3), join(leaf(40_000, 4), join(leaf(30_000, 5))));
const sharing = new Batch([served('a', shared), served('b', join(leaf(1, 6), shared)), served('c', leaf(5000, 7))]);

test.each([
  ['nothing', []],
  ['a few resources', [small]],
  ['more than a slice', [large]],
  ['a resource of several slices', [huge, small]],
  ['resources with parts in common', [sharing]],
  ['everything', [small, large, sharing, huge]],
])('a response with %s is what the encoder would have written', (_, batches) => {
  const frames = new Frames();
  const items = batches.flatMap((batch) => batch.items);
  const value = (item: Served): Buffer => {
    const flat = (part: Part): Uint8Array[] => ('bytes' in part ? [part.bytes] : part.children.flatMap(flat));
    return Buffer.concat(flat(item.resource.body));
  };
  for (let round = 0; round < 2; round++) {
    const delta = frames.of(content(batches, true, ['gone', 'caf\u00e9']), round);
    const decoded = protos.decode('envoy.service.discovery.v3.DeltaDiscoveryResponse', body(delta.slices));
    expect(decoded).toMatchObject({
      typeUrl: 'type/caf\u00e9',
      nonce: String(delta.nonce),
      removedResources: ['gone', 'caf\u00e9'],
    });
    expect((decoded.resources ?? []).map(({ name, version }) => [name, version])).toEqual(
      items.map((item) => [item.name, item.version]),
    );
    (decoded.resources ?? []).forEach(({ resource }, i) => {
      expect(resource?.typeUrl).toBe('type/caf\u00e9');
      expect(value(items[i]!).equals((resource?.value ?? new Uint8Array()) as Uint8Array)).toBe(true);
    });
    const state = frames.of(content(batches, false), round);
    const full = protos.decode('envoy.service.discovery.v3.DiscoveryResponse', body(state.slices));
    expect(full).toMatchObject({ versionInfo: state.version, nonce: String(state.nonce) });
    (full.resources ?? []).forEach((any, i) =>
      expect(value(items[i]!).equals((any.value ?? new Uint8Array()) as Uint8Array)).toBe(true),
    );
    for (const slice of [...delta.slices, ...state.slices]) expect(slice.length).toBeLessThanOrEqual(SLICE_BYTES);
    expect(delta.length).toBe(Buffer.concat(delta.slices).length);
  }
});

test('streams that get the same share the frame, and one that had it gets a new nonce', () => {
  const frames = new Frames();
  const first = frames.of(content([small], true), 0);
  expect(frames.of(content([new Batch([...small.items])], true), 0)).toBe(first);
  const again = frames.of(content([small], true), first.nonce);
  expect(again.nonce).toBeGreaterThan(first.nonce);
  expect(frames.of(content([small], true), 0)).toBe(again);
});

test('different responses share the slices of what is common to them', () => {
  const frames = new Frames();
  const one = frames.of(content([large, small], true), 0);
  const two = frames.of(content([large, new Batch([small.items[0]!])], true), 0);
  expect(two.slices.filter((slice) => one.slices.includes(slice)).length).toBeGreaterThan(2);
});

test('what was made for one answer only is not kept', () => {
  const frames = new Frames();
  const once = new Served({ typeUrl: 't', name: 'absent', version: '1', body: leaf(1, 1) }, ++ids, hasher);
  const first = frames.of(content([new Batch([once])], true), 0);
  expect(frames.of(content([new Batch([once])], true), 0)).not.toBe(first);
});

test.each([true, false])('a response for one client identifies the process; delta: %s', (delta) => {
  const frames = new Frames();
  for (const batches of [[small], [large, sharing, huge], []]) {
    const before = frames.of(content([large], delta), 0);
    const frame = frames.once({ ...content(batches, delta), controlPlane: 'caf\u00e9' });
    const type = `envoy.service.discovery.v3.${delta ? 'DeltaDiscoveryResponse' : 'DiscoveryResponse'}` as const;
    const decoded = protos.decode(type, body(frame.slices));
    expect(decoded).toMatchObject({ nonce: String(frame.nonce), controlPlane: { identifier: 'caf\u00e9' } });
    expect(decoded.resources ?? []).toHaveLength(batches.reduce((sum, { items }) => sum + items.length, 0));
    expect(frame.length).toBe(Buffer.concat(frame.slices).length);
    expect(frames.of(content([large], delta), 0)).toBe(before);
  }
});

test('what tables have in common is put together once for all of them', () => {
  const frames = new Frames();
  const common = join(leaf(3000, 1), leaf(2000, 2));
  const tables = [1, 2].map((own) => new Batch([served(`table ${own}`, join(leaf(10, own), common))]));
  const [first, second] = tables.map((batch) => frames.of(content([batch], true), 0).slices);
  const [bytes] = first!.filter((slice) => slice.length === common.length);
  expect(bytes).toBeDefined();
  expect(second!.includes(bytes!)).toBe(true);
});

test('short children of a part that is longer than a slice are put together once', () => {
  const long = join(...Array.from({ length: 100 }, (_, i) => leaf(1000, i)));
  const frames = new Frames();
  const of = (name: string): Frame =>
    frames.of(content([new Batch([served(name, join(long, leaf(5000, name.length)))])], true), 0);
  const [one, other] = [of('one'), of('other')];
  expect(one.slices.filter((slice) => other.slices.some(({ buffer }) => buffer === slice.buffer))).toHaveLength(2);
});

test('frames that are kept for others are bounded, however many different things streams ask for', () => {
  const frames = new Frames({ ...FRAME_LIMITS, frames: 100_000 });
  const of = (i: number): Frame => frames.of(content([], true, [`${i}`.padEnd(10_000)]), 0);
  const first = of(0);
  for (let i = 1; i < 8; i++) of(i);
  expect(of(0)).toBe(first);
  for (let i = 0; i < 40; i++) of(i);
  expect(of(0)).not.toBe(first);
  expect(of(0)).toBe(of(0));
});

test('batches that are laid out are bounded', () => {
  const tables = [Array.from({ length: 20 }, () => leaf(1000, 0)), [leaf(20_000, 0)]];
  const [own, common] = tables.map((parts) =>
    Array.from({ length: 20 }, (_, i) => new Batch([served(`n${i}`, join(leaf(10, i), ...parts))])),
  );
  const slicesWith = (frames: Frames, batches = own!): Uint8Array[][] => {
    const first = frames.of(content([large, small], true), 0);
    for (const batch of batches) frames.of(content([batch], true), 0);
    return [first, frames.of(content([large, small], true), first.nonce)].map(({ slices }) => [...slices]);
  };
  const shared = ([one, two]: Uint8Array[][]): number => one!.filter((slice) => two!.includes(slice)).length;
  expect(shared(slicesWith(new Frames()))).toBeGreaterThan(2);
  const layouts = 300_000;
  expect(shared(slicesWith(new Frames({ ...FRAME_LIMITS, layouts })))).toBe(0);
  // What they only refer to takes no room.
  expect(shared(slicesWith(new Frames({ ...FRAME_LIMITS, layouts }), common))).toBeGreaterThan(2);
});
