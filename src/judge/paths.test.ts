import { expect, test } from 'vitest';
import { normalizedPath } from './paths.ts';

test.each([
  ['/a/../b?x=/..', '/b?x=/..', '/b?x=/..'],
  ['/a/%2e%2e/%41', '/A', '/A'],
  ['/a%2fb', '/a%2fb', '/a/b'],
  ['/a\\b%5cc', '/a/b%5cc', '/a/b/c'],
  ['//a//b/', '//a//b/', '/a/b/'],
  ['//', '//', '//'],
  ['/..', '/', '/'],
  ['/x/..;a/b', '/b', '/b'],
  ['/x/.;/b', '/x/b', '/x/b'],
  ['/x/%2e%2e;/b', '/x/..;/b', '/x/..;/b'],
  ['/a"b|c^d', '/a%22b%7Cc%5Ed', '/a%22b%7Cc%5Ed'],
  ['/%zz%', '/%zz%', '/%zz%'],
])('%s is %s, and %s where slashes are decoded and merged', (path, base, merged) => {
  expect(normalizedPath(path, 'NONE')).toBe(path);
  expect(normalizedPath(path, 'BASE')).toBe(base);
  expect(normalizedPath(path, 'DECODE_AND_MERGE_SLASHES')).toBe(merged);
});
