import { expect, test } from 'vitest';
import { TokenCache } from './token-cache.ts';

test('bad tokens do not displace good ones', () => {
  const cache = new TokenCache({ most: 20_000, now: () => 0, date: () => new Date(0) });
  const token = `a.${Buffer.from('{"exp":1}').toString('base64url')}.b`;
  cache.add('good', { kind: 'valid', namespace: 'a', serviceAccount: 'b' }, token);
  for (let i = 0; i < 20_001; i++) cache.add(`bad ${i}`, { kind: 'invalid' }, '');
  expect(cache.stale('good')).toHaveProperty('namespace', 'a');
  expect([cache.fresh('bad 0'), cache.fresh('bad 20000')]).toEqual([undefined, { kind: 'invalid' }]);
});
