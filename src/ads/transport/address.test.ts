import { expect, test } from 'vitest';
import { addressOfPeer } from './address.ts';

test.each([
  ['10.0.0.7:40112', '10.0.0.7'],
  ['::ffff:10.0.0.7:40112', '10.0.0.7'],
  ['fd00::7:40112', 'fd00::7'],
  ['::1:40112', '::1'],
  ['unknown', 'unknown'],
])('the address of %s is %s', (peer, address) => {
  expect(addressOfPeer(peer)).toBe(address);
});
