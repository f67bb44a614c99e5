import { expect, test } from 'vitest';
import { blockOf, canonicalCidr, covers, leadingBits, parseCidr } from './cidr.ts';

test.each([
  ['10.0.0.1', { address: '10.0.0.1', length: 32 }],
  ['10.1.2.3/8', { address: '10.1.2.3', length: 8 }],
  ['2001:db8::/48', { address: '2001:db8::', length: 48 }],
  ['::1', { address: '::1', length: 128 }],
  ['0.0.0.0/0', { address: '0.0.0.0', length: 0 }],
])('%s is a range', (text, range) => {
  expect(parseCidr(text)).toEqual(range);
});

test.each(['', 'x', '10.0.0.0/33', '::/129', '10.0.0.0/', '10.0.0.0/8/8', '10.0.0.0/-1', 'fe80::1%eth0', '10.0.0/8'])(
  '%j is none',
  (text) => {
    expect(parseCidr(text)).toBeUndefined();
  },
);

test.each([
  ['10.1.2.3/8', '10.9.9.9/8'],
  ['10.1.2.129/25', '10.1.2.200/25'],
  ['2001:db8:1::/48', '2001:0db8:0001:ffff::1/48'],
  ['::ffff:10.0.0.1', '0:0:0:0:0:ffff:0a00:0001/128'],
  ['1.2.3.4/0', '0.0.0.0/0'],
])('%s and %s are the same addresses', (a, b) => {
  expect(canonicalCidr(a)).toBe(canonicalCidr(b));
});

test.each([
  ['10.0.0.0/8', '10.0.0.0/9'],
  ['10.1.2.1/25', '10.1.2.200/25'],
  ['::1', '::2'],
  ['0.0.0.0/0', '::/0'],
])('%s and %s are not', (a, b) => {
  expect(canonicalCidr(a)).not.toBe(canonicalCidr(b));
});

test.each([
  ['10.96.0.0/12', '10.111.255.255', '10.112.0.0'],
  ['10.1.2.128/25', '10.1.2.129', '10.1.2.127'],
  ['10.1.2.3/32', '10.1.2.3', '10.1.2.2'],
  ['0.0.0.0/0', '192.0.2.1', '::1'],
  ['fd00::/108', 'fd00::f:ffff', 'fd00::10:0'],
  ['::/0', '2001:db8::1', '10.0.0.1'],
])('%s covers %s and not %s', (text, inside, outside) => {
  const range = parseCidr(text)!;
  expect([covers(range, inside), covers(range, outside)]).toEqual([true, false]);
});

test.each([
  ['10.1.2.3', 8, '10.1.2.0/24'],
  ['10.1.2.3', 128, '0.0.0.0/0'],
  ['10.1.2.0/24', 16, '10.1.0.0/16'],
  ['2001:db8::1:2', 16, '2001:db8:0:0:0:0:1:0/112'],
  ['2001:db8::1', 128, '0:0:0:0:0:0:0:0/0'],
  ['example.com', 8, undefined],
])('around %s the block of 2^%i is %s', (text, bits, block) => {
  expect(blockOf(text, bits)).toBe(block);
});

test.each([
  ['10.9.0.0/8', '00001010'],
  ['10.128.0.0/9', '000010101'],
  ['0.0.0.0/0', ''],
  ['1.2.3.4', '00000001000000100000001100000100'],
  ['2001:db8::/17', '00100000000000010'],
])('addresses of %s begin with %j', (text, bits) => {
  expect(leadingBits(parseCidr(text)!)).toBe(bits);
});
