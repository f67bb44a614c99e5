import { expect, test } from 'vitest';
import { parseSpiffeId, spiffeId } from './spiffe.ts';

test('an identity that was written can be read', () => {
  expect(parseSpiffeId(spiffeId('cluster.local', 'shop', 'cart'))).toEqual({
    trustDomain: 'cluster.local',
    namespace: 'shop',
    serviceAccount: 'cart',
  });
});

test.each([
  ['', 'nothing'],
  ['spiffe://td/ns/shop/sa/', 'an empty account'],
  ['spiffe:///ns/shop/sa/cart', 'an empty trust domain'],
  ['spiffe://td/ns//sa/cart', 'an empty namespace'],
  ['spiffe://td/ns/shop/sa/cart/', 'a slash at the end'],
  ['spiffe://td/ns/shop/sa/cart/x', 'one more segment'],
  ['spiffe://td/sa/cart/ns/shop', 'another order'],
  ['spiffe://td/workload/cart', 'a path that is not of Kubernetes'],
  ['SPIFFE://td/ns/shop/sa/cart', 'an upper-case scheme'],
  ['https://td/ns/shop/sa/cart', 'another scheme'],
  ['spiffe://td:80/ns/shop/sa/cart', 'a port'],
  ['spiffe://user@td/ns/shop/sa/cart', 'a user'],
  ['spiffe://td/ns/shop/sa/cart?x', 'a query'],
  ['spiffe://td/ns/shop/sa/cart#x', 'a fragment'],
  ['spiffe://td/ns/shop/sa/c%61rt', 'an escape'],
  ['spiffe://td/ns/../sa/cart', 'a parent segment'],
  ['spiffe://td/ns/shop/sa/.', 'a dot segment'],
  ['spiffe://td/ns/shop/sa/cart\n', 'a line break'],
  [' spiffe://td/ns/shop/sa/cart', 'a space'],
  [`spiffe://td/ns/shop/sa/${'a'.repeat(2048)}`, 'more than 2048 characters'],
])('%j is not an identity: %s', (text) => {
  expect(parseSpiffeId(text)).toBeUndefined();
});
