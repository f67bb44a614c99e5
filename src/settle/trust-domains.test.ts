import { expect, test } from 'vitest';
import { trustedDomains, trustedPrincipals } from './trust-domains.ts';

const domains = ['td1', 'td2'];

test.each<[string, string[]]>([
  ['td1/ns/a/sa/b', ['td1/ns/a/sa/b', 'td2/ns/a/sa/b']],
  ['td2/ns/a/sa/b', ['td1/ns/a/sa/b', 'td2/ns/a/sa/b']],
  ['td*/ns/a/sa/*', ['td1/ns/a/sa/*', 'td2/ns/a/sa/*']],
  ['*1/ns/a/sa/b', ['*1/ns/a/sa/b', 'td2/ns/a/sa/b']],
  ['cluster.local/ns/a/sa/b', ['td1/ns/a/sa/b', 'td2/ns/a/sa/b']],
  // Another trust domain, or none.
  ['other/ns/a/sa/b', ['other/ns/a/sa/b']],
  ['*/ns/a/sa/b', ['*/ns/a/sa/b']],
  ['*', ['*']],
  ['*/sa/b', ['*/sa/b']],
  ['td1/ns/a', ['td1/ns/a']],
  ['td1/ns/a/sa/b/c', ['td1/ns/a/sa/b/c']],
  ['spiffe://td1/ns/a/sa/b', ['spiffe://td1/ns/a/sa/b']],
  ['', ['']],
])('the principal %j stands for %j', (principal, expected) => {
  expect(trustedPrincipals([principal], domains)).toEqual(expected);
});

test('principals are not compared with each other', () => {
  expect(trustedPrincipals(['td1/ns/a/sa/b', 'td2/ns/a/sa/b'], domains)).toHaveLength(4);
});

test('a pattern that ends as both keep is itself, once', () => {
  expect(trustedPrincipals(['*d/ns/a/sa/b'], ['td', 'old-td'])).toEqual(['*d/ns/a/sa/b']);
});

test.each<[string[], string[]]>([
  [['td1'], ['td1', 'td2']],
  [
    ['td2', 'td1'],
    ['td1', 'td2'],
  ],
  [
    ['other', 'td2'],
    ['other', 'td1', 'td2'],
  ],
  [['td*'], ['td*']],
  // Only principals have the name that stands for the mesh's own.
  [['cluster.local'], ['cluster.local']],
  [[], []],
])('the trust domains %j stand for %j', (values, expected) => {
  expect(trustedDomains(values, domains)).toEqual(expected);
});
