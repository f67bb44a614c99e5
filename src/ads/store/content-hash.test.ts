import { expect, test } from 'vitest';
import { ContentHasher, hashKey, SetHash } from './content-hash.ts';

const hasher = new ContentHasher([123456, -99999]);

test.each([3, 4, 5, 7, 8, 9, 12, 15, 16, 23, 40])(
  'names of %i characters that differ a little have different hashes',
  (length) => {
    const count = 30_000;
    const keys = new Set<number>();
    const lanes = [new Set<number>(), new Set<number>()] as const;
    for (let i = 0; i < count; i++) {
      hasher.text(i.toString(36).padStart(length, '0'));
      keys.add(hashKey(hasher));
      lanes[0].add(hasher.a);
      lanes[1].add(hasher.b);
    }
    const distinct = Math.min(count, 36 ** length);
    expect(keys.size).toBe(distinct);
    // By chance 0.1 of 30,000 share 32 bits.
    for (const lane of lanes) expect(lane.size).toBeGreaterThan(distinct - 4);
  },
);

test('a pair is not the pair of the same characters split elsewhere', () => {
  const of = (name: string, version: string): number => {
    hasher.textPair(name, version);
    return hashKey(hasher);
  };
  const keys = [of('ab', 'c'), of('a', 'bc'), of('', 'abc'), of('abc', ''), of('c', 'ab')];
  expect(new Set(keys).size).toBe(keys.length);
});

test('bytes and text have the same hash', () => {
  const text = 'outbound|80||caf\u00e9.\u{1f600}.svc';
  const bytes = Buffer.from(`xx${text}`);
  hasher.textPair(text, 'xx');
  const { a, b } = hasher;
  hasher.pair(new DataView(bytes.buffer, bytes.byteOffset, bytes.length), 2, bytes.length, 0, 2);
  expect([hasher.a, hasher.b]).toEqual([a, b]);
});

test('the hash of a set does not depend on order, and follows removals', () => {
  const of = (names: readonly string[]): SetHash => {
    const set = new SetHash();
    for (const name of names) {
      hasher.text(name);
      set.add(hasher);
    }
    return set;
  };
  const set = of(['a', 'b', 'c']);
  expect(set.equals(of(['c', 'a', 'b']))).toBe(true);
  hasher.text('b');
  set.remove(hasher);
  expect(set.equals(of(['c', 'a']))).toBe(true);
  expect(set.equals(of(['a', 'b']))).toBe(false);
});

test('another seed makes other hashes', () => {
  const other = new ContentHasher([1, 2]);
  hasher.text('a');
  other.text('a');
  expect(hashKey(other)).not.toBe(hashKey(hasher));
});
