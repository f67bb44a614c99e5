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

test('a good token is good for a minute without being asked for, and not at all once it has expired', () => {
  let [now, date] = [0, 0];
  const cache = new TokenCache({ most: 10, now: () => now, date: () => new Date(date) });
  const review = { kind: 'valid', namespace: 'a', serviceAccount: 'b' } as const;
  cache.add('token', review, `a.${Buffer.from('{"exp":90}').toString('base64url')}.b`);
  cache.add('without an end', review, `a.${Buffer.from('{}').toString('base64url')}.b`);
  const known = (): unknown[] => [cache.fresh('token'), cache.stale('token')];
  expect(known()).toEqual([review, review]);
  now = date = 60_000;
  expect(known()).toEqual([undefined, review]);
  date = 90_000;
  expect(known()).toEqual([undefined, undefined]);
  now = 0;
  expect(known()).toEqual([undefined, undefined]);
  expect([cache.fresh('without an end'), cache.stale('without an end')]).toEqual([undefined, undefined]);
});
