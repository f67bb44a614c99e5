import { expect, test } from 'vitest';
import { type HostChange, Names } from './names.ts';

const host = (byte: number, isShort = false) => ({ v4: Uint8Array.of(10, 0, 0, byte), v6: new Uint8Array(), isShort });

const hosts: readonly HostChange[] = [
  ['reviews.shop.svc.cluster.local', host(1, true)],
  ['db-0.db.shop.svc.cluster.local', host(2, true)],
  ['db.other.svc.cluster.local', host(3, true)],
  ['api.example.com', host(4)],
  ['*.wild.example.com', host(5)],
  ['*.example.org', host(6)],
  ['entry.shop.svc.cluster.local', host(7)],
];

function namesOf(search = 'shop.svc.cluster.local'): Names {
  const names = new Names({ namespace: 'shop', domain: 'cluster.local', search });
  names.apply(hosts);
  return names;
}

test.each<[name: string, byte: number | undefined, alias?: string]>([
  ['reviews.shop.svc.cluster.local', 1],
  ['reviews', 1],
  ['reviews.shop', 1],
  ['reviews.shop.svc', 1],
  ['db-0.db', 2],
  ['db-0.db.shop', 2],
  // In the own namespace only.
  ['db', undefined],
  ['db.other', 3],
  ['db.other.svc', 3],
  ['api.example.com', 4],
  ['api.example.com.shop.svc.cluster.local', 4, 'api.example.com'],
  ['reviews.shop.svc.cluster.local.shop.svc.cluster.local', 1, 'reviews.shop.svc.cluster.local'],
  ['reviews.shop.shop.svc.cluster.local', 1, 'reviews.shop'],
  ['a.b.wild.example.com', 5],
  ['wild.example.com', undefined],
  ['a.b.wild.example.com.shop.svc.cluster.local', 5, 'a.b.wild.example.com'],
  ['x.example.org', 6],
  ['example.org', undefined],
  ['a.example.com', undefined],
  // A ServiceEntry has no short forms, whatever its host looks like.
  ['entry', undefined],
  ['entry.shop.svc.cluster.local', 7],
  ['', undefined],
  ['.', undefined],
])('%j', (name, byte, alias) => {
  const found = namesOf().lookup(name);
  expect(found && found.v4[3]).toBe(byte);
  expect(found?.alias).toBe(alias);
});

test('without a search list, names are as they are', () => {
  expect(namesOf('').lookup('api.example.com.shop.svc.cluster.local')).toBeUndefined();
});

test('changes replace and remove hosts; before the first, there is no table', () => {
  const names = new Names({ namespace: 'shop', domain: 'cluster.local', search: '' });
  expect(names.isLoaded).toBe(false);
  names.apply([]);
  expect(names.isLoaded).toBe(true);
  names.apply([['*.a.com', host(1)]]);
  names.apply([['*.a.com', host(2)]]);
  expect(names.lookup('x.a.com')?.v4[3]).toBe(2);
  names.apply([['*.a.com', undefined]]);
  expect(names.lookup('x.a.com')).toBeUndefined();
  expect(names.size).toBe(0);
});
