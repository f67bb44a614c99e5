import { expect, test } from 'vitest';
import { ContentHasher, SetHash } from './content-hash.ts';
import { NameSets, type RequestedNames } from './name-set.ts';

const hasher = new ContentHasher([1, 2]);

function requested(...names: string[]): RequestedNames {
  const hash = new SetHash();
  for (const name of names) {
    hasher.text(name);
    hash.add(hasher);
  }
  return { hash, strings: () => names };
}

test('equal sets are one object, however they came about', () => {
  const sets = new NameSets(hasher);
  const abc = sets.of(requested('a', 'b', 'c'));
  expect(sets.of(requested('c', 'b', 'a'))).toBe(abc);
  const ab = sets.without(abc, ['c', 'x']);
  expect([...ab.names].sort()).toEqual(['a', 'b']);
  expect(sets.with(ab, ['c', 'c', 'a'])).toBe(abc);
  expect(sets.of(requested('a', 'b'))).toBe(ab);
});

test('a known set costs no strings', () => {
  const sets = new NameSets(hasher);
  const set = sets.of(requested('a', 'b'));
  const again: RequestedNames = {
    ...requested('b', 'a'),
    strings: () => {
      throw new Error('strings were made');
    },
  };
  expect(sets.of(again)).toBe(set);
});

test('names that come twice count once', () => {
  const sets = new NameSets(hasher);
  expect(sets.of(requested('a', 'a', 'b'))).toBe(sets.of(requested('a', 'b')));
});

test('a set is forgotten with the last who holds it', () => {
  const sets = new NameSets(hasher);
  const first = sets.of(requested('a'));
  const second = sets.of(requested('a'));
  sets.release(first);
  expect(sets.size).toBe(1);
  sets.release(second);
  expect(sets.size).toBe(0);
  sets.release(sets.without(sets.of(requested('a')), ['a']));
  expect(sets.of(requested())).toBe(sets.empty);
});
