import fc from 'fast-check';
import { expect, test } from 'vitest';
import { hostsFor, intersectHosts } from './gateway.ts';
import { isSubsetOf } from './host.ts';

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

test('what is in common is the more specific one of each pair', () => {
  const list = fc.array(
    fc.constantFrom('*', '*.com', '*.a.com', '*-x.a.com', 'a.com', 'b.a.com', 'b-x.a.com', 'c.net'),
  );
  fc.assert(
    fc.property(list, list, (a, b) => {
      const pairs = a.flatMap((left) =>
        b.flatMap((right) => (isSubsetOf(left, right) ? [left] : isSubsetOf(right, left) ? [right] : [])),
      );
      expect(new Set(intersectHosts(a, b))).toEqual(new Set(pairs));
    }),
  );
});

test('thousands of hosts do not multiply', () => {
  const hosts = Array.from({ length: 50_000 }, (_, i) => `h${i}.example.com`);
  expect(intersectHosts(hosts, hosts)).toHaveLength(50_000);
});

test('a host with a namespace is for VirtualServices of that namespace', () => {
  const hosts = [
    { namespace: '*', host: 'a' },
    { namespace: 'x', host: 'b' },
  ];
  expect(hostsFor({ hosts }, 'x')).toEqual(['a', 'b']);
  expect(hostsFor({ hosts }, 'y')).toEqual(['a']);
});
