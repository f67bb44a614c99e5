import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { framed } from '../../../test/harness/byte-streams.ts';
import { collect } from '../../testing/memory.ts';
import { BufferPool } from './buffer-pool.ts';
import { Deframer } from './deframer.ts';

const MAX = 100_000;

const deframerOf = (maxLength = MAX): Deframer => new Deframer(maxLength, new BufferPool(1_000_000));

/** All messages of some chunks; there is room for those that are longer than a limit. */
function messagesOf(chunks: readonly Buffer[], deframer = deframerOf(), limit = Infinity): Buffer[] {
  let reserved = false;
  return chunks.flatMap((chunk) => {
    deframer.add(chunk);
    const messages: Buffer[] = [];
    for (let message = deframer.next(); message !== undefined; message = deframer.next()) {
      messages.push(Buffer.from(message));
      reserved = false;
    }
    if (!reserved && deframer.expected > limit) {
      reserved = true;
      deframer.reserve();
    }
    return messages;
  });
}

test('messages are the same wherever their bytes are cut', () => {
  const message = fc
    .tuple(fc.nat(255), fc.oneof(fc.nat(20), fc.nat(MAX)))
    .map(([fill, length]) => Buffer.alloc(length, fill));
  fc.assert(
    fc.property(
      fc.array(message, { maxLength: 5 }),
      fc.array(fc.oneof(fc.nat(20), fc.nat(MAX)), { maxLength: 20 }),
      (messages, lengths) => {
        let rest = Buffer.concat(messages.map(framed));
        const chunks: Buffer[] = [];
        for (const length of lengths) {
          chunks.push(rest.subarray(0, length));
          rest = rest.subarray(length);
        }
        expect(messagesOf([...chunks, rest])).toEqual(messages);
        expect(messagesOf([...chunks, rest], deframerOf(), 50)).toEqual(messages);
      },
    ),
  );
});

test('a message may come byte by byte', () => {
  const message = Buffer.from(Array.from({ length: 20_000 }, (_, i) => i));
  const bytes = framed(message);
  const deframer = deframerOf();
  const chunks = Array.from(bytes, (_, i) => bytes.subarray(i, i + 1));
  expect(messagesOf(chunks, deframer)).toEqual([message]);
});

test('what a message was said to be long is known while it is being received', () => {
  const deframer = deframerOf();
  expect(messagesOf([framed(Buffer.alloc(7)).subarray(0, 6)], deframer)).toEqual([]);
  expect(deframer.expected).toBe(7);
  expect(messagesOf([Buffer.alloc(6)], deframer)).toEqual([Buffer.alloc(7)]);
  expect(deframer.expected).toBe(0);
});

test.each([
  ['too long', framed(Buffer.alloc(MAX + 1))],
  ['compressed', Buffer.from([1, 0, 0, 0, 0])],
])('a message that is %s is not read, nor waited for', (reason, bytes) => {
  for (const cut of [5, 3]) {
    expect(() => messagesOf([bytes.subarray(0, cut), bytes.subarray(cut, 5)])).toThrow(
      expect.objectContaining({ reason }),
    );
  }
});

describe('of a message that has begun', () => {
  /** Its pieces of so many bytes come with more of other streams; how many of what came so are still there. */
  function unfinished(length: number): { readonly deframer: Deframer; readonly alive: () => number } {
    const deframer = deframerOf(10_000_000);
    deframer.add(framed(Buffer.alloc(9_000_000)).subarray(0, 5));
    const arrived = Array.from({ length: 100 }, () => {
      const { buffer } = Buffer.allocUnsafeSlow(65_536);
      deframer.add(Buffer.from(buffer, 0, length));
      expect(deframer.next()).toBeUndefined();
      return new WeakRef(buffer);
    });
    const alive = (): number => {
      collect();
      return arrived.filter((each) => each.deref() !== undefined).length;
    };
    return { deframer, alive };
  }

  test.each([5_000, 65_536])('nothing else is kept alive by pieces of %d bytes', async (length) => {
    const { deframer, alive } = unfinished(length);
    await expect.poll(alive).toBe(0);
    expect(deframer.expected).toBe(9_000_000);
  });

  test('nothing is kept when it is cleared', async () => {
    const { deframer, alive } = unfinished(65_536);
    await expect.poll(alive).toBe(0);
    const kept = process.memoryUsage().arrayBuffers;
    deframer.clear();
    await expect.poll(() => (collect(), kept - process.memoryUsage().arrayBuffers)).toBeGreaterThan(6_000_000);
    expect(deframer.expected).toBe(0);
  });
});

/** Counts what is in use. */
class CountingPool extends BufferPool {
  inUse = 0;

  override take(length: number): Buffer {
    const buffer = super.take(length);
    this.inUse += buffer.length;
    return buffer;
  }

  override give(buffer: Buffer): void {
    this.inUse -= buffer.length;
    super.give(buffer);
  }
}

test('what has come of a message takes less than twice its bytes before there is room for all of it', () => {
  const pieces = fc.array(fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 16_384 })), {
    maxLength: 30,
  });
  fc.assert(
    fc.property(fc.integer({ min: 100_000, max: 600_000 }), pieces, (announced, lengths) => {
      const pool = new CountingPool(1_000_000);
      const deframer = new Deframer(announced, pool);
      deframer.add(framed(Buffer.alloc(announced)).subarray(0, 5));
      for (const length of lengths) {
        if (deframer.received + length >= announced) break;
        deframer.add(Buffer.alloc(length));
        expect(deframer.next()).toBeUndefined();
        expect(pool.inUse).toBeLessThanOrEqual(Math.max(1_024, 2 * deframer.received - 1));
      }
      deframer.reserve();
      expect(pool.inUse).toBeLessThan(2 * announced);
      deframer.clear();
      expect(pool.inUse).toBe(0);
    }),
  );
});
