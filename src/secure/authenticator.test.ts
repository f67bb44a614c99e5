import { expect, test } from 'vitest';
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
