import { expect, test } from 'vitest';
import { readInjectionPath } from './injection-path.ts';

test.each([
  ['', { env: {} }],
  ['/', { env: {} }],
  ['/cluster/east/net/blue', { cluster: 'east', network: 'blue', env: {} }],
  ['/cluster/a--slash--b', { cluster: 'a/b', env: {} }],
  ['/isTio_meta_x/a%20b', { env: { ISTIO_META_X: 'a b' } }],
])('the path %s gives parameters', (path, parameters) => {
  expect(readInjectionPath(path)).toEqual({ parameters });
});

test.each([
  ['/cluster', 'the last key has no value'],
  ['/a%ZZ/b', 'percent-encoded'],
  ['/a-b/c', 'not a valid name for a variable'],
  ['/a=b/c', 'not a valid name for a variable'],
  ['/a/b'.repeat(21), 'more than 20 keys'],
])('the path %s is refused', (path, sentence) => {
  expect(readInjectionPath(path)).toEqual({ problem: expect.stringContaining(sentence) as string });
});
