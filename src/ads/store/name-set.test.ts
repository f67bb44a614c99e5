import { afterEach, describe, expect, test, vi } from 'vitest';
import { ContentHasher, SetHash, viewOf } from './content-hash.ts';
import { NameBudget } from './name-budget.ts';
import type { NameIndex } from './name-index.ts';
import { MAX_DIFFERENCES, type NameSet, NameSets, type RequestedNames } from './name-set.ts';

const hasher = new ContentHasher([1, 2]);

function requested(...names: string[]): RequestedNames {
  const hash = (by: ContentHasher, index?: NameIndex) => {
    const sum = new SetHash();
    let areIn = index !== undefined;
    for (const name of names) {
      const bytes = Buffer.from(name);
      by.bytes(viewOf(bytes), 0, bytes.length);
      sum.add(by);
      areIn &&= index!.has(by, viewOf(bytes), 0, bytes.length);
    }
    return { hash: sum, areIn };
  };
  return { count: names.length, digest: () => names.join(), strings: () => names, hash };
}

const sorted = (set: NameSet): string[] => [...set.names].sort();

test('equal sets are one object, however they came about', () => {
  const sets = new NameSets(hasher);
  const abc = sets.of(requested('a', 'b', 'c'));
  expect(sets.of(requested('c', 'b', 'a'))).toBe(abc);
  const ab = sets.without(abc, ['c', 'x']);
  expect(sorted(ab)).toEqual(['a', 'b']);
  expect(sets.with(ab, ['c', 'c', 'a'])).toBe(abc);
  expect(sets.of(requested('a', 'b'))).toBe(ab);
  const one = sets.with(sets.empty, ['a']);
  expect(sets.with(one, ['b'])).toBe(ab);
  expect(sets.without(one, ['a'])).toBe(sets.empty);
});

test('names that a set in use has cost no strings, in whatever order they come', () => {
  const sets = new NameSets(hasher);
  const set = sets.of(requested('a', 'b'));
  for (const names of [
    ['b', 'a'],
    ['a', 'b'],
    ['b', 'a'],
  ]) {
    const again: RequestedNames = {
      ...requested(...names),
      strings: () => {
        throw new Error('strings were made');
      },
    };
    expect(sets.of(again)).toBe(set);
  }
});

test('where others have named the same in other orders, a client that names them only once costs no digest', () => {
  const sets = new NameSets(hasher);
  const set = sets.of(requested('a', 'b', 'c'), '', false);
  expect(sets.of(requested('c', 'b', 'a'), '', false)).toBe(set);
  let digests = 0;
  const digest = (): string => `${digests++}`;
  expect(sets.of({ ...requested('b', 'c', 'a'), digest }, '', false)).toBe(set);
  expect(sorted(sets.of({ ...requested('b', 'c', 'd'), digest }, '', false))).toEqual(['b', 'c', 'd']);
  expect(digests).toBe(0);
  expect(sets.of({ ...requested('b', 'a', 'c'), digest })).toBe(set);
  expect(digests).toBe(1);
});

test('names that make no difference are not kept', () => {
  const sets = new NameSets(hasher);
  const abc = sets.of(requested('a', 'b', 'c'));
  expect(sorted(sets.without(abc, ['c', 'x', 'y']))).toEqual(['a', 'b']);
  expect(abc.next).toBeUndefined();
  expect(sorted(sets.with(abc, ['a', 'b', 'd']))).toEqual(['a', 'b', 'c', 'd']);
  expect(abc.next).toBeUndefined();
  sets.without(abc, ['c']);
  expect(abc.next?.names).toEqual(['c']);
});

test('a set of as many names as one that is known in several orders is another one', () => {
  const sets = new NameSets(hasher);
  const ab = sets.of(requested('a', 'b'));
  expect(sets.of(requested('b', 'a'))).toBe(ab);
  expect(sorted(sets.of(requested('c', 'a')))).toEqual(['a', 'c']);
  expect(sorted(sets.of(requested('a', 'a')))).toEqual(['a']);
  for (let i = 0; i < 2; i++) sets.release(ab);
  expect(sorted(sets.of(requested('b', 'a')))).toEqual(['a', 'b']);
});

test('no more orders are remembered than there were holders at a time', () => {
  const sets = new NameSets(hasher);
  const names = Array.from({ length: 20 }, (_, i) => `${i}`);
  let set: NameSet | undefined;
  for (let i = 0; i < 20; i++) {
    const next = sets.of(requested(...names.slice(i), ...names.slice(0, i)));
    if (set !== undefined) sets.release(set);
    set = next;
    expect(set.digests.length).toBeLessThanOrEqual(2);
  }
});

test('names that only collide with those of a set in use are another set', () => {
  const sets = new NameSets(hasher);
  const set = sets.of(requested('a', 'b'));
  const [ab, ac] = [requested('a', 'b'), requested('a', 'c')];
  const collides = {
    ...ac,
    hash: (...to: Parameters<typeof ac.hash>) => ({ ...ac.hash(...to), hash: ab.hash(hasher).hash }),
  };
  const other = sets.of(collides);
  expect(sorted(other)).toEqual(['a', 'c']);
  expect(sorted(set)).toEqual(['a', 'b']);
});

test('names that come twice count once', () => {
  const sets = new NameSets(hasher);
  const set = sets.of(requested('a', 'a', 'b'));
  expect(set.size).toBe(2);
  expect(set).toBe(sets.of(requested('a', 'b')));
});

test('a set is forgotten with the last who holds it', () => {
  const sets = new NameSets(hasher);
  const first = sets.of(requested('a'));
  const second = sets.of(requested('a'));
  sets.release(first);
  expect(sets.size).toBe(1);
  sets.release(second);
  expect(sets.size).toBe(0);
  expect(sets.of(requested('a'))).not.toBe(first);
  sets.release(sets.without(sets.of(requested('a')), ['a']));
  expect(sets.of(requested())).toBe(sets.empty);
});

describe('a client who makes hashes collide', () => {
  const name = 'outbound|8080||reviews.bookshop.svc.cluster.local';
  /** The hash does not see these four bits change, whatever came before, under about every fourth seed. */
  const disguised = [
    [3, 0x40],
    [9, 0x20],
    [15, 0x40],
    [21, 0x20],
  ].reduce((bytes, [at, bit]) => {
    bytes[at!]! ^= bit!;
    return bytes;
  }, Buffer.from(name));
  const other = disguised.toString('latin1');
  const colliding = Array.from({ length: 100 }, (_, seed) => new ContentHasher([seed, -seed])).find((each) => {
    each.text(name);
    const { a, b } = each;
    each.text(other);
    return each.a === a && each.b === b;
  })!;

  test('changes no set but his own', () => {
    const sets = new NameSets(colliding);
    const his = sets.of(requested(other, 'x'));
    const set = sets.of(requested(name, 'x'));
    expect(sorted(set)).toEqual(sorted(set).filter((each) => each !== other));
    expect(sets.of(requested(name, 'x'))).toBe(set);
    expect(sorted(his)).toContain(other);
  });

  test('changes none that grows or shrinks', () => {
    const sets = new NameSets(colliding);
    sets.with(sets.of(requested('x')), [other]);
    const grown = sets.with(sets.of(requested('x')), [name]);
    expect(sorted(grown)).toEqual([name, 'x']);
    sets.without(sets.of(requested('x', 'y', name)), [name]);
    const shrunk = sets.without(sets.of(requested('x', 'y', other)), [other]);
    expect(sorted(shrunk)).toEqual(['x', 'y']);
    expect(sets.without(sets.of(requested(name, other)), [name]).has(other)).toBe(true);
  });
});

describe('a large set', () => {
  const many = Array.from({ length: 20_000 }, (_, i) => `name ${i}`);
  afterEach(() => vi.restoreAllMocks());

  test('gains and loses a name at the cost of that name', () => {
    const sets = new NameSets(hasher);
    let set = sets.of(requested(...many));
    const added = vi.spyOn(Set.prototype, 'add');
    const noted = vi.spyOn(Map.prototype, 'set');
    const has = vi.spyOn(Set.prototype, 'has');
    for (let i = 0; i < 20; i++) {
      const next = i % 2 === 0 ? sets.with(set, [`new ${i}`]) : sets.without(set, [`name ${i}`]);
      sets.release(set);
      set = next;
    }
    expect(added.mock.calls.length + noted.mock.calls.length + has.mock.calls.length).toBeLessThan(1000);
    vi.restoreAllMocks();
    expect([set.size, set.has('new 4'), set.has('name 5'), set.has('name 6')]).toEqual([20_000, true, false, true]);
    expect([...set.names].length).toBe(20_000);
  });

  test('is still shared by those who change it in the same way', () => {
    const sets = new NameSets(hasher);
    const first = sets.of(requested(...many));
    const second = sets.of(requested(...many));
    const changed = sets.with(sets.without(first, ['name 1']), ['a', 'b']);
    expect(sets.without(sets.with(sets.with(second, ['b']), ['a']), ['name 1'])).toBe(changed);
    expect(sets.of(requested('a', 'b', ...many.filter((name) => name !== 'name 1')))).toBe(changed);
  });

  test('is copied when it has changed by much, and is shared all the same', () => {
    const sets = new NameSets(hasher);
    const grow = (): NameSet => {
      let set = sets.of(requested(...many));
      for (let i = 0; i <= MAX_DIFFERENCES; i++) {
        const next = sets.with(set, [`new ${i}`]);
        sets.release(set);
        set = next;
      }
      return set;
    };
    const grown = grow();
    expect(grown.size).toBe(many.length + MAX_DIFFERENCES + 1);
    expect(grown.differences.size).toBe(0);
    expect(grow()).toBe(grown);
    sets.release(grown);
    sets.release(grown);
    expect(sets.size).toBe(0);
  });
});

describe('names of which there are too many', () => {
  const names = (from: string, count: number): string[] => Array.from({ length: count }, (_, i) => `${from} ${i}`);
  const of = (sets: NameSets, address: string, from = address): NameSet =>
    sets.of(requested(...names(from, 2_000)), address);

  test('are rejected to the address that asks for them, and not to others', () => {
    const sets = new NameSets(hasher, new NameBudget(1_250_000));
    const [first] = [of(sets, 'one'), of(sets, 'one', 'more')];
    expect(() => of(sets, 'one', 'too many')).toThrow('no room left');
    expect(() => sets.with(first!, names('too many', 2_000), 'one')).toThrow('no room left');
    // What somebody else asks for costs nothing.
    const others = of(sets, 'two');
    expect(of(sets, 'one', 'two')).toBe(others);
    sets.release(first!);
    expect(of(sets, 'one', 'now there is').size).toBe(2_000);
  });

  test('are counted for as long as a set that came of them shares them', () => {
    const sets = new NameSets(hasher, new NameBudget(600_000));
    const first = of(sets, 'one');
    const next = sets.with(first, ['x'], 'one');
    sets.release(first);
    expect(() => of(sets, 'one', 'more')).toThrow('no room left');
    sets.release(next);
    expect(of(sets, 'one', 'more').size).toBe(2_000);
  });

  test('leave nothing behind when they are gone', () => {
    const sets = new NameSets(hasher, new NameBudget(600_000));
    for (let round = 0; round < 10; round++) {
      let set = of(sets, 'one', `${round}`);
      for (let i = 0; i < 5; i++) {
        const next = i % 2 === 0 ? sets.with(set, [`${i}`], 'one') : sets.without(set, names(`${round}`, i), 'one');
        sets.release(set);
        set = next;
      }
      expect(() => of(sets, 'one', 'more')).toThrow('no room left');
      sets.release(set);
    }
    expect(sets.size).toBe(0);
  });
});
