import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Localized } from './localized.ts';

const PREFACE = frame(4, 0, Buffer.alloc(6, 1));
const TEXT = 'at 10.244.0.17, 110.244.1.2 and 10.244.10.244.1; not 10.243.1, 10.24';

test('addresses are local, wherever frames and pieces end', () => {
  const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 8 });
  fc.assert(
    fc.property(sizes, sizes, fc.array(fc.integer({ min: 0, max: TEXT.length })), (frames, pieces, lengths) => {
      const messages = [TEXT.length, ...lengths].map((length) => TEXT.slice(0, length));
      const sent = cut(Buffer.concat(messages.map(message)), frames);
      const wanted = messages.map((text) => text.replaceAll('10.244.', '127.77.'));
      const localized = new Localized();
      const got = cut(connection(sent), pieces).map((piece) => localized.push(piece));
      expect(Buffer.concat(got)).toEqual(connection(cut(Buffer.concat(wanted.map(message)), frames)));
    }),
  );
});

test('what only looks like the beginning of an address does not wait once its message has ended', () => {
  const bytes = frame(0, 1, message('10.24'));
  expect(new Localized().push(Buffer.from(bytes))).toEqual(bytes);
});

test('an address that comes in two frames waits for its rest, and so does what follows the first', () => {
  const [first, second] = [message('10.244.1.1').subarray(0, 10), message('10.244.1.1').subarray(10)];
  const localized = new Localized();
  expect(localized.push(frame(0, 1, first)).toString('latin1')).toBe('');
  expect(localized.push(frame(0, 3, message('other'))).toString('latin1')).toBe('');
  expect(localized.push(frame(0, 1, second)).toString('latin1')).toContain('other');
});

/** Frames of the stream, among those of others. */
function connection(frames: readonly Buffer[]): Buffer {
  const other = frame(0, 3, message('10.244.9.9').fill('-', 5));
  return Buffer.concat([PREFACE, ...frames.flatMap((bytes) => [frame(0, 1, bytes), other])]);
}

function frame(type: number, stream: number, bytes: Buffer): Buffer {
  const header = Buffer.alloc(9);
  header.writeUIntBE(bytes.length, 0, 3);
  header.writeUInt8(type, 3);
  header.writeUInt32BE(stream, 5);
  return Buffer.concat([header, bytes]);
}

function message(text: string): Buffer {
  const header = Buffer.alloc(5);
  header.writeUInt32BE(text.length, 1);
  return Buffer.concat([header, Buffer.from(text)]);
}

/** Pieces of these sizes, over and over. */
function cut(bytes: Buffer, sizes: readonly number[]): Buffer[] {
  const pieces: Buffer[] = [];
  for (let at = 0, i = 0; at < bytes.length; at += sizes[i++ % sizes.length]!)
    pieces.push(Buffer.from(bytes.subarray(at, at + sizes[i % sizes.length]!)));
  return pieces;
}
