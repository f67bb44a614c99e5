import { expect, test } from 'vitest';
import type { ClientCertificate } from '../ads/transport/secure-port.ts';
import { createAuthenticator } from './authenticator.ts';

test('tokens from one address leave room for those from others', async () => {
  const waiting: (() => void)[] = [];
  const authenticate = createAuthenticator({
    trustDomain: () => 'cluster.local',
    review: () => new Promise((resolve) => waiting.push(() => resolve({ kind: 'invalid' }))),
    isOurCluster: () => true,
    now: () => 0,
    date: () => new Date(0),
  });
  const ask = async (address: string, token: string) => {
    const found = await authenticate({ address, certificate: { kind: 'none' }, token, cluster: '' });
    return 'reason' in found ? found.reason : 'known';
  };
  const many = Array.from({ length: 2_100 }, (_, i) => ask('10.0.0.1', `bad ${i}`));
  const other = ask('10.0.0.2', 'token');
  let done = false;
  const all = Promise.all([...many, other]).finally(() => (done = true));
  while (!done) {
    for (const answer of waiting.splice(0)) answer();
    await new Promise((resolve) => setImmediate(resolve));
  }
  const reasons = await all;
  expect(reasons.at(-1)).toBe('token');
  expect(reasons.filter((reason) => reason === 'busy')).toHaveLength(2_100 - 1_010);
});

const SHOP = 'URI:spiffe://cluster.local/ns/shop/sa/cart';

test.each<[string, readonly string[], string]>([
  ['one identity', [SHOP], 'shop/cart'],
  ['one identity and other names', ['DNS:cart.shop', SHOP], 'shop/cart'],
  ['another trust domain', ['URI:spiffe://other.example/ns/shop/sa/cart'], 'trust_domain'],
  ['two identities', [SHOP, 'URI:spiffe://cluster.local/ns/shop/sa/admin'], 'certificate'],
  ['an identity and another URI', [SHOP, 'URI:https://example.com'], 'certificate'],
  ['the identity as a DNS name', [SHOP.replace('URI:', 'DNS:')], 'certificate'],
  ['no identity', ['DNS:cart.shop'], 'certificate'],
  ['no names', [], 'certificate'],
])('a certificate with %s says who its owner is, or is refused', async (_, names, expected) => {
  expect(await whoIs({ kind: 'valid', names })).toBe(expected);
});

test('a certificate that is not accepted is refused, also with a good token', async () => {
  expect(await whoIs({ kind: 'none' })).toBe('shop/cart');
  expect(await whoIs({ kind: 'invalid', problem: 'CERT_HAS_EXPIRED' })).toBe('certificate');
});

/** A caller with a good token. Its account, or why it is refused. */
async function whoIs(certificate: ClientCertificate): Promise<string> {
  const authenticate = createAuthenticator({
    trustDomain: () => 'cluster.local',
    review: async () => ({
      kind: 'valid',
      username: 'system:serviceaccount:shop:cart',
      groups: ['system:serviceaccounts'],
    }),
    isOurCluster: () => true,
    now: () => 0,
    date: () => new Date(0),
  });
  const found = await authenticate({ address: '10.0.0.1', certificate, token: 'good', cluster: '' });
  return 'reason' in found ? found.reason : `${found.namespace}/${found.serviceAccount}`;
}
