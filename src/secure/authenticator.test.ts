import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { ClientCertificate } from '../ads/transport/secure-port.ts';
import type { PeerIdentity } from '../ads/types.ts';
import { FakeClock } from '../testing/fake-clock.ts';
import { type AuthenticatorOptions, createAuthenticator, unitOf } from './authenticator.ts';
import type { TokenReview } from './token-cache.ts';
import type { TokenIssuer } from './token-issuer.ts';

const DEFAULT: TokenReview = { kind: 'valid', namespace: 'shop', serviceAccount: 'default' };
const NEVER = new Promise<never>(() => undefined);

/** A token that does not expire. */
const TOKEN = `a.${Buffer.from('{"exp":9e12}').toString('base64url')}.b`;

function issuer(cluster: string, review: TokenIssuer['review']): TokenIssuer {
  return { cluster, review };
}

/** A mesh of the cluster `own`, and others by their ids. */
function authenticatorOf(
  own: TokenIssuer['review'],
  others: Readonly<Record<string, TokenIssuer['review'] | 'unread'>> = {},
  changes: Partial<AuthenticatorOptions> = {},
) {
  const issuers = new Map(
    Object.entries(others).map(([id, review]) => [id, review === 'unread' ? review : issuer(id, review)]),
  );
  const authenticate = createAuthenticator({
    clusterId: 'own',
    aliases: { orient: 'east', mine: 'own' },
    trustDomainOf: (cluster) => (cluster === 'own' ? 'cluster.local' : issuers.has(cluster) ? 'west.local' : undefined),
    own: issuer('own', own),
    others: { issuerOf: (cluster) => issuers.get(cluster) },
    now: () => 0,
    date: () => new Date(0),
    ...changes,
  });
  const ask = async (cluster: string, token = TOKEN, address = '10.0.0.1'): Promise<string> =>
    print(await authenticate({ address, certificate: { kind: 'none' }, token, cluster }));
  const show = async (uri: string, ...units: readonly string[]): Promise<string> => {
    const certificate = { kind: 'valid', names: [`URI:${uri}`], units } as const;
    return print(await authenticate({ address: '10.0.0.1', certificate, token: undefined, cluster: 'own' }));
  };
  return { ask, show, issuers };
}

function print(found: PeerIdentity | { readonly reason: string }): string {
  if ('reason' in found) return found.reason;
  return `${found.cluster}: ${found.trustDomain}/${found.namespace}/${found.serviceAccount}`;
}

test('tokens from one address leave room for those from others', async () => {
  const waiting: (() => void)[] = [];
  const { ask } = authenticatorOf(() => new Promise((resolve) => waiting.push(() => resolve({ kind: 'invalid' }))));
  const many = Array.from({ length: 2_100 }, (_, i) => ask('', `bad ${i}`));
  const other = ask('', 'token', '10.0.0.2');
  let done = false;
  const all = Promise.all([...many, other]).finally(() => (done = true));
  while (!done) {
    for (const answer of waiting.splice(0)) answer();
    await setImmediate();
  }
  const reasons = await all;
  expect(reasons.at(-1)).toBe('token');
  expect(reasons.filter((reason) => reason === 'busy')).toHaveLength(2_100 - 1_010);
});

test('a token is reviewed next, however many from another address wait', async () => {
  const asked: string[] = [];
  const answers: (() => void)[] = [];
  const { ask } = authenticatorOf((token) => {
    asked.push(token);
    return new Promise((resolve) => answers.push(() => resolve({ kind: 'invalid' })));
  });
  const many = Array.from({ length: 500 }, (_, i) => ask('', `bad ${i}`));
  await setImmediate();
  const other = ask('', 'good', '10.0.0.2');
  for (const answer of answers.splice(0)) answer();
  await setImmediate();
  expect(asked.indexOf('good')).toBeLessThan(20);
  expect(asked).toContain('good');
  const all = Promise.all([...many, other]);
  for (let left = 100; left > 0; left--) {
    for (const answer of answers.splice(0)) answer();
    await setImmediate();
  }
  expect(new Set(await all)).toEqual(new Set(['token']));
});

test('a token is reviewed by the cluster that the caller names, and proves an account of this cluster', async () => {
  const asked: string[] = [];
  const by = (cluster: string) => (): Promise<TokenReview> => {
    asked.push(cluster);
    return Promise.resolve(DEFAULT);
  };
  const { ask } = authenticatorOf(by('own'), { east: by('east'), west: by('west'), north: 'unread' });
  // The same token: what one cluster says of it is not what another one says.
  const found: string[] = [];
  for (const name of ['', 'own', 'mine', 'east', 'orient', 'west', 'north', 'nowhere', '__proto__'])
    found.push(await ask(name));
  expect(found).toEqual([
    ...Array.from({ length: 3 }, () => 'own: cluster.local/shop/default'),
    ...Array.from({ length: 2 }, () => 'east: west.local/shop/default'),
    'west: west.local/shop/default',
    ...Array.from({ length: 3 }, () => 'cluster'),
  ]);
  expect(asked).toEqual(['own', 'east', 'west']);
});

test('an answer is forgotten with the connection to the cluster that gave it', async () => {
  const { ask, issuers } = authenticatorOf(() => NEVER, { east: () => Promise.resolve(DEFAULT) });
  expect(await ask('east')).toBe('east: west.local/shop/default');
  issuers.set(
    'east',
    issuer('east', () => Promise.resolve({ kind: 'invalid' })),
  );
  expect(await ask('east')).toBe('token');
});

test('an API server that does not answer holds up nobody of other clusters, and its own for a time', async () => {
  const clock = new FakeClock();
  const hanging: (() => void)[] = [];
  const hang = () => new Promise<never>((_, reject) => hanging.push(() => reject(new Error('timeout'))));
  const { ask } = authenticatorOf(() => Promise.resolve(DEFAULT), { east: hang }, { now: () => clock.now() });
  const waiting = Array.from({ length: 200 }, (_, i) => ask('east', `t${i}`));
  await setImmediate();
  expect(hanging).toHaveLength(10);
  expect(await ask('own')).toBe('own: cluster.local/shop/default');
  await clock.advance(10_001);
  for (const end of hanging) end();
  expect(new Set(await Promise.all(waiting))).toEqual(new Set(['api_server']));
  // Those who had waited too long were not asked about.
  expect(hanging).toHaveLength(10);
});

test('a certificate that was signed for an account of another cluster proves nothing in this one', async () => {
  const { show } = authenticatorOf(() => NEVER, { east: () => NEVER });
  const units = (cluster: string): readonly string[] => [unitOf(cluster, 'own') ?? []].flat();
  const uri = 'spiffe://west.local/ns/shop/sa/default';
  expect(await show('spiffe://cluster.local/ns/shop/sa/default', ...units('own'))).toBe(
    'own: cluster.local/shop/default',
  );
  expect(await show(uri, ...units('east'))).toBe('east: west.local/shop/default');
  expect(await show(uri, ...units('gone'))).toBe('cluster');
  expect(await show(uri, 'east', 'own')).toBe('cluster');
  expect(await show('spiffe://cluster.local/ns/shop/sa/default', ...units('east'))).toBe('trust_domain');
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
  expect(await whoIs({ kind: 'valid', names, units: [] })).toBe(expected);
});

test('a certificate that is not accepted is refused, also with a good token', async () => {
  expect(await whoIs({ kind: 'none' })).toBe('shop/cart');
  expect(await whoIs({ kind: 'invalid', problem: 'CERT_HAS_EXPIRED' })).toBe('certificate');
});

/** A caller with a good token. Its account, or why it is refused. */
async function whoIs(certificate: ClientCertificate): Promise<string> {
  const authenticate = createAuthenticator({
    ...{ clusterId: 'own', aliases: {}, trustDomainOf: () => 'cluster.local' },
    own: issuer('own', () => Promise.resolve({ kind: 'valid', namespace: 'shop', serviceAccount: 'cart' })),
    others: { issuerOf: () => undefined },
    now: () => 0,
    date: () => new Date(0),
  });
  const found = await authenticate({ address: '10.0.0.1', certificate, token: TOKEN, cluster: '' });
  return 'reason' in found ? found.reason : `${found.namespace}/${found.serviceAccount}`;
}
