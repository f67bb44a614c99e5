import { expect, test } from 'vitest';
import { AllowedAddresses } from './addresses.ts';

const none = new AllowedAddresses([]);

test.each([
  '8.8.8.8',
  '1.1.1.1',
  '172.15.0.1',
  '172.32.0.1',
  '100.63.255.255',
  '192.0.1.1',
  '223.255.255.255',
  '168.63.129.15',
  '192.0.3.1',
  '192.88.98.1',
  '198.51.101.1',
  '203.0.112.255',
  '2606:4700::1111',
  '2001:200::1',
  '2001:4860::8888',
  '3ffe::1',
  '::ffff:8.8.8.8',
])('%s is public', (address) => {
  expect(none.has(address)).toBe(true);
});

test.each([
  '0.0.0.0',
  '10.0.0.1',
  '100.64.0.1',
  // The metadata service of a cloud.
  '100.100.100.200',
  '127.0.0.1',
  '127.255.255.255',
  '169.254.169.254',
  '172.16.0.1',
  '172.31.255.255',
  '192.0.0.192',
  '192.168.1.1',
  '192.0.2.1',
  '192.88.99.1',
  '198.18.0.1',
  '198.51.100.1',
  '203.0.113.1',
  // What looks after machines of a cloud.
  '168.63.129.16',
  '::ffff:168.63.129.16',
  '224.0.0.1',
  '255.255.255.255',
  '::',
  '::1',
  '::ffff:127.0.0.1',
  '::FFFF:10.0.0.1',
  '::ffff:7f00:1',
  '0:0:0:0:0:ffff:127.0.0.1',
  '::127.0.0.1',
  '64:ff9b::7f00:1',
  '64:ff9b::a83f:8110',
  '64:ff9b:1::7f00:1',
  '100::1',
  '2002:7f00:1::',
  '2001::1',
  '2001:2::1',
  '2001:20::1',
  '2001:1ff::1',
  '2001:db8::1',
  '3fff::1',
  'fd00:ec2::254',
  'fe80::1',
  'fe80::1%eth0',
  'ff02::1',
])('%s is not', (address) => {
  expect(none.has(address)).toBe(false);
});

test.each(['', 'localhost', '10.0.0', '10.0.0.1/8', '010.0.0.1', '0x7f000001', '2130706433'])(
  '%j is not an address, and never allowed',
  (text) => {
    expect(new AllowedAddresses(['0.0.0.0/0', '::/0']).has(text)).toBe(false);
  },
);

test('ranges that are given are allowed, in either spelling, and nothing beside them', () => {
  const some = new AllowedAddresses(['10.96.0.0/12', '127.0.0.1', 'fd00::/8']);
  expect(
    ['10.96.0.1', '10.111.255.255', '127.0.0.1', '::ffff:10.96.0.1', 'fd12::1'].filter((a) => !some.has(a)),
  ).toEqual([]);
  expect(['10.95.255.255', '10.112.0.0', '127.0.0.2', 'fe80::1', '::1'].filter((a) => some.has(a))).toEqual([]);
  expect(some.has('8.8.8.8')).toBe(true);
});

test('a range of one family has no addresses of the other', () => {
  expect(new AllowedAddresses(['::/0']).has('127.0.0.1')).toBe(false);
  expect(new AllowedAddresses(['0.0.0.0/0']).has('::1')).toBe(false);
});
