import { expect, test } from 'vitest';
import { SLICE_BYTES, SliceWriter } from './slice-writer.ts';

test('what was announced is written into slices of bounded size', () => {
  const writer = new SliceWriter(SLICE_BYTES + 10);
  writer.bytes(new Uint8Array(SLICE_BYTES).fill(1));
  writer.append([Uint8Array.of(7)]);
  writer.bytes(new Uint8Array(10).fill(2));
  expect(writer.finish().map((slice) => slice.length)).toEqual([SLICE_BYTES, 1, 10]);
});

test.each([
  ['a byte', (writer: SliceWriter) => writer.byte(1)],
  ['bytes', (writer: SliceWriter) => writer.bytes(Uint8Array.of(1))],
  ['text', (writer: SliceWriter) => writer.string(1, 'a')],
  ['a length that has no end', (writer: SliceWriter) => writer.field(1, Infinity)],
])('%s beyond what was announced is an error, not an endless loop', (_, write) => {
  for (const announced of [0, 3, SLICE_BYTES]) {
    const writer = new SliceWriter(announced);
    writer.bytes(new Uint8Array(announced));
    expect(() => write(writer)).toThrow(`more is written than the ${announced} bytes announced`);
  }
});

test('less than what was announced is an error: the length in front of the message would be wrong', () => {
  const writer = new SliceWriter(4);
  writer.bytes(Uint8Array.of(1, 2, 3));
  writer.append([Uint8Array.of(4)]);
  expect(() => writer.finish()).toThrow('1 of 4 bytes announced were not written');
});
