import { Buffer } from 'node:buffer';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ContentHasher, SetHash, viewOf } from './content-hash.ts';
import { NameIndex } from './name-index.ts';
import { NameSets, type RequestedNames } from './name-set.ts';

const hasher = new ContentHasher([1, 2]);

function has(index: NameIndex, name: string, by = hasher): boolean {
  const bytes = Buffer.from(`>${name}<`);
  by.bytes(viewOf(bytes), 1, bytes.length - 1);
  return index.has(by, viewOf(bytes), 1, bytes.length - 1);
}

test('an index has the bytes of its names, and no others', () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.string({ unit: 'binary' })),
      fc.array(fc.string({ unit: 'binary' })),
      (names, others) => {
        const set = new Set(names.map((name) => name.toWellFormed()));
        const index = NameIndex.of(set, hasher)!;
        for (const name of set) expect(has(index, name)).toBe(true);
        for (const name of others.map((other) => other.toWellFormed())) expect(has(index, name)).toBe(set.has(name));
      },
    ),
  );
});

class Colliding extends ContentHasher {
  override bytes(): void {
    this.a = this.b = 7;
  }
  override text(): void {
    this.bytes();
  }
}

test('names whose hashes collide are told apart, and many of them have no index', () => {
  const colliding = new Colliding([1, 2]);
  const index = NameIndex.of(new Set(['ab', 'ac', 'b']), colliding)!;
  expect(['ab', 'ac', 'b', 'ad', 'c', ''].map((name) => has(index, name, colliding))).toEqual([
    ...[true, true, true],
    ...[false, false, false],
  ]);
  expect(NameIndex.of(new Set(Array.from({ length: 100 }, (_, i) => `${i}`)), colliding)).toBeUndefined();
});

test('a set whose names collide is found all the same', () => {
  const sets = new NameSets(new Colliding([1, 2]));
  const names = Array.from({ length: 100 }, (_, i) => `${i}`);
  const requested = (all: readonly string[]): RequestedNames => ({
    count: all.length,
    digest: () => all.join(),
    strings: () => all,
    hash: (by, index) => ({
      hash: Object.assign(new SetHash(), { a: 1, b: 2, count: all.length }),
      areIn: index !== undefined && all.every((name) => has(index, name, by)),
    }),
  });
  expect(sets.of(requested(names.toReversed()))).toBe(sets.of(requested(names)));
});
