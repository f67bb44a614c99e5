import { expect, test } from 'vitest';
import {
  joinKey,
  kindKey,
  lastOfKey,
  nameKey,
  partsOfKey,
  parseKindKey,
  parseNameKey,
  splitKey,
  splitKeyOfThree,
} from './keys.ts';
import { objectKey } from './object.ts';

test('what a key was made of is found in it again', () => {
  expect(splitKey(joinKey(80, '10.0.0.0/8'))).toEqual(['80', '10.0.0.0/8']);
  expect(splitKey(joinKey('a', 'b|c'))).toEqual(['a', 'b|c']);
  expect(splitKey('a')).toEqual(['a', '']);
  expect(splitKeyOfThree(joinKey('shop', 80, '2001:db8::/32'))).toEqual(['shop', '80', '2001:db8::/32']);
  expect(lastOfKey(joinKey('public|shop', 'reviews', 80))).toBe('80');
  expect(partsOfKey(joinKey('*.example', 'shop', '*', 3))).toEqual(['*.example', 'shop', '*', '3']);
  expect(lastOfKey('a')).toBe('a');
  expect(parseNameKey(nameKey('shop', 'reviews'))).toEqual({ namespace: 'shop', name: 'reviews' });
  const key = objectKey('east', 'shop', 'reviews');
  expect(parseKindKey(kindKey('VirtualService', key))).toEqual({ kind: 'VirtualService', key });
});
