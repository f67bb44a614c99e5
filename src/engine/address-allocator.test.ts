import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { AddressClaim, AllocatedAddress } from '../model/address-claim.ts';
import { AddressAllocator, allocateAll } from './address-allocator.ts';

const claim = (name: string, age: number, more: Partial<AddressClaim> = {}): AddressClaim => ({
  name,
  namespace: 'shop',
  createdAt: `2026-01-01T00:00:${String(age).padStart(2, '0')}Z`,
  hosts: [`${name}.example.com`],
  held: [],
  fixed: [],
  ...more,
});

const update = (allocator: AddressAllocator, changes: Readonly<Record<string, AddressClaim | undefined>>) =>
  [...allocator.update(new Map(Object.entries(changes)))].sort();

const valuesOf = (allocator: AddressAllocator, key: string): string[] => allocator.of(key).map(({ value }) => value);

test('each host has an address of each family, in the ranges that Istio uses', () => {
  const allocator = new AddressAllocator();
  update(allocator, { a: claim('a', 1, { hosts: ['one.com', 'two.com'] }) });
  const given = allocator.of('a');
  expect(given.map(({ host }) => host)).toEqual(['one.com', 'one.com', 'two.com', 'two.com']);
  expect(given[0]!.value).toMatch(/^240\.240\.\d+\.\d+$/);
  expect(given[1]!.value).toMatch(/^2001:2::[\da-f:]+$/);
  expect(new Set(given.map(({ value }) => value)).size).toBe(4);
});

test('what a status has stays, and what it lacks is added', () => {
  const allocator = new AddressAllocator();
  const held = [{ host: 'a.example.com', value: '240.240.9.9' }];
  update(allocator, { a: claim('a', 1, { held }) });
  expect(valuesOf(allocator, 'a')).toEqual(['240.240.9.9', expect.stringMatching(/^2001:2::/)]);
});

test('of two with the same address, the older keeps it', () => {
  const held = (name: string): AllocatedAddress[] => [{ host: `${name}.example.com`, value: '240.240.9.9' }];
  const allocator = new AddressAllocator();
  update(allocator, { young: claim('young', 2, { held: held('young') }) });
  expect(valuesOf(allocator, 'young')[0]).toBe('240.240.9.9');
  expect(update(allocator, { old: claim('old', 1, { held: held('old') }) })).toEqual(['old', 'young']);
  expect(valuesOf(allocator, 'old')[0]).toBe('240.240.9.9');
  expect(valuesOf(allocator, 'young')[0]).not.toBe('240.240.9.9');
});

test('an address that somebody writes is given to nobody', () => {
  const allocator = new AddressAllocator();
  const held = [{ host: 'a.example.com', value: '240.240.9.9' }];
  update(allocator, { a: claim('a', 1, { held }) });
  const fixed = claim('b', 2, { hosts: [], fixed: ['240.240.9.9'] });
  expect(update(allocator, { b: fixed })).toEqual(['a', 'b']);
  expect(valuesOf(allocator, 'a')[0]).not.toBe('240.240.9.9');
  update(allocator, { b: undefined, a: claim('a', 1, { held }) });
  expect(valuesOf(allocator, 'a')[0]).toBe('240.240.9.9');
});

test('an entry that no longer qualifies, or is gone, has none, and others may have them', () => {
  const allocator = new AddressAllocator();
  update(allocator, { a: claim('a', 1) });
  const held = [...allocator.of('a')];
  expect(update(allocator, { a: claim('a', 1, { hosts: [], held }) })).toEqual(['a']);
  expect(allocator.of('a')).toEqual([]);
  const again = held.map(({ value }) => ({ value, host: 'b.example.com' }));
  update(allocator, { b: claim('b', 2, { held: again }) });
  expect(allocator.of('b')).toEqual(again);
  expect(update(allocator, { b: undefined })).toEqual(['b']);
  expect(allocator.of('b')).toEqual([]);
});

test('nonsense in a status is replaced', () => {
  const allocator = new AddressAllocator();
  const held = [
    { host: 'a.example.com', value: '240.240.0.0/16' },
    { host: 'other.example.com', value: '240.240.1.1' },
    { host: 'a.example.com', value: '' },
  ];
  update(allocator, { a: claim('a', 1, { held }) });
  expect(allocator.of('a')).toHaveLength(2);
  expect(valuesOf(allocator, 'a')).not.toContain('240.240.1.1');
});

test('a full range leaves hosts without an address, and ends', () => {
  const allocator = new AddressAllocator();
  const fixed = Array.from({ length: 2 ** 16 }, (_, i) => `240.240.${i >> 8}.${i & 255}`);
  update(allocator, { full: claim('full', 1, { hosts: [], fixed }), a: claim('a', 2) });
  expect(valuesOf(allocator, 'a')).toEqual([expect.stringMatching(/^2001:2::/)]);
});

test('the last free address is found, wherever the search begins', () => {
  const range = Array.from({ length: 2 ** 16 - 2 }, (_, i) => `240.240.${(i + 1) >> 8}.${(i + 1) & 255}`);
  for (const free of [range[0]!, range[40_000]!, range.at(-1)!]) {
    const allocator = new AddressAllocator();
    const fixed = range.filter((address) => address !== free);
    update(allocator, { full: claim('full', 1, { hosts: [], fixed }), a: claim('a', 2), b: claim('b', 3) });
    expect(valuesOf(allocator, 'a')[0]).toBe(free);
    expect(valuesOf(allocator, 'b')).toHaveLength(1);
    update(allocator, { a: undefined, b: claim('b', 3) });
    expect(valuesOf(allocator, 'b')[0]).toBe(free);
  }
});

const addresses = ['240.240.0.1', '240.240.0.2', '240.240.0.3'] as const;
const claims = fc.record({
  key: fc.constantFrom('a', 'b', 'c', 'd'),
  age: fc.integer({ min: 0, max: 3 }),
  isGone: fc.boolean(),
  hosts: fc.uniqueArray(fc.constantFrom('x.com', 'y.com')),
  held: fc.array(fc.record({ host: fc.constantFrom('x.com', 'y.com'), value: fc.constantFrom(...addresses) }), {
    maxLength: 3,
  }),
  fixed: fc.uniqueArray(fc.constantFrom(...addresses), { maxLength: 1 }),
});

test('whatever happens, no two hosts have the same address, and each that is to have one does', () => {
  fc.assert(
    fc.property(fc.array(fc.array(claims, { maxLength: 3 }), { maxLength: 8 }), (history) => {
      const allocator = new AddressAllocator();
      const present = new Map<string, AddressClaim>();
      for (const commit of history) {
        const changes = new Map<string, AddressClaim | undefined>();
        for (const { key, age, isGone, hosts, held, fixed } of commit)
          changes.set(key, isGone ? undefined : claim(key, age, { hosts, held, fixed: hosts.length > 0 ? [] : fixed }));
        for (const [key, value] of changes) {
          if (value === undefined) present.delete(key);
          else present.set(key, value);
        }
        allocator.update(changes);
        const fixed = [...present.values()].flatMap((each) => each.fixed);
        const given = [...present.keys()].flatMap((key) => valuesOf(allocator, key));
        expect(new Set([...given, ...fixed]).size).toBe(given.length + new Set(fixed).size);
        expect(given).toHaveLength([...present.values()].reduce((sum, { hosts }) => sum + 2 * hosts.length, 0));
        // Once written, they stay.
        const written = new Map([...present].map(([key, each]) => [key, { ...each, held: allocator.of(key) }]));
        const settled = allocateAll(written);
        for (const key of present.keys()) expect(settled.get(key) ?? []).toEqual(allocator.of(key));
      }
    }),
  );
});

test('the order in which entries come does not matter to files', () => {
  const all = Array.from({ length: 2_000 }, (_, i): [string, AddressClaim] => [`k${i}`, claim(`n${i}`, 0)]);
  expect(new Map([...allocateAll(all)].sort())).toEqual(new Map([...allocateAll([...all].reverse())].sort()));
});
