import { expect, test } from 'vitest';
import { canonicalAddress, isAddress } from './address.ts';

test.each([
  ['10.0.0.1', true],
  ['2001:db8::1', true],
  ['fe80::1%eth0', false],
  ['10.0.0.1/8', false],
  ['a', false],
  ['', false],
])('%j is an address: %j', (text, expected) => {
  expect(isAddress(text)).toBe(expected);
});

test.each([
  ['0:0:0:0:0:0:0:1', '::1'],
  ['2001:DB8:0:0::1', '2001:db8::1'],
  ['10.0.0.1', '10.0.0.1'],
  ['fe80::1%eth0', 'fe80::1%eth0'],
  ['a.example.com', 'a.example.com'],
])('%s is written %s', (text, expected) => {
  expect(canonicalAddress(text)).toBe(expected);
});
