import { Buffer } from 'node:buffer';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ContentHasher } from './content-hash.ts';
import { NameIndex } from './name-index.ts';

const hasher = new ContentHasher([1, 2]);

function has(index: NameIndex, name: string): boolean {
  const bytes = Buffer.from(`>${name}<`);
  return index.has(bytes, new DataView(bytes.buffer, bytes.byteOffset, bytes.length), 1, bytes.length - 1);
}

test('an index has the bytes of its names, and no others', () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.string({ unit: 'binary' })),
      fc.array(fc.string({ unit: 'binary' })),
      (names, others) => {
        const set = new Set(names.map((name) => name.toWellFormed()));
        const index = new NameIndex(set, hasher);
        for (const name of set) expect(has(index, name)).toBe(true);
        for (const name of others.map((other) => other.toWellFormed())) expect(has(index, name)).toBe(set.has(name));
      },
    ),
  );
});

test('names whose hashes collide are told apart', () => {
  class Colliding extends ContentHasher {
    override bytes(): void {
      this.a = this.b = 7;
    }
    override text(): void {
      this.bytes();
    }
  }
  const index = new NameIndex(new Set(['ab', 'ac', 'b']), new Colliding([1, 2]));
  expect(['ab', 'ac', 'b', 'ad', 'c', ''].map((name) => has(index, name))).toEqual([
    true,
    true,
    true,
    false,
    false,
    false,
  ]);
});
