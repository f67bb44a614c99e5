import { expect, test } from 'vitest';
import { hostsFor, intersectHosts } from './gateway.ts';

test.each([
  [['foo.com', 'bar.com'], ['*.com'], ['foo.com', 'bar.com']],
  [['*.com'], ['foo.com', '*.foo.com'], ['foo.com', '*.foo.com']],
  [['*.example.com'], ['*'], ['*.example.com']],
  [['*'], ['*'], ['*']],
  [['a.com'], ['b.com'], []],
  [['*.com'], ['*.net'], []],
  [['a.com', '*.com'], ['a.com'], ['a.com']],
])('%j and %j have %j in common', (a, b, common) => {
  expect(intersectHosts(a, b)).toEqual(common);
  expect(new Set(intersectHosts(b, a))).toEqual(new Set(common));
});

test('a host with a namespace is for VirtualServices of that namespace', () => {
  const hosts = [
    { namespace: '*', host: 'a' },
    { namespace: 'x', host: 'b' },
  ];
  expect(hostsFor({ hosts }, 'x')).toEqual(['a', 'b']);
  expect(hostsFor({ hosts }, 'y')).toEqual(['a']);
});
