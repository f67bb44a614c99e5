import { expect, test } from 'vitest';
import { reviewToken } from './token-review.ts';

const signal = new AbortController().signal;

/** What is made of the answer of an API server. */
function review(user: object, status: object = {}) {
  const answer = { status: { authenticated: true, audiences: ['istio-ca'], user, ...status } };
  const api = { post: () => Promise.resolve(answer) };
  return reviewToken(api as unknown as Parameters<typeof reviewToken>[0], 'token', signal);
}

const groups = ['system:serviceaccounts'];

test('a token is one of a service account, or nobody', async () => {
  expect(await review({ username: 'system:serviceaccount:shop:a.b-c', groups })).toEqual({
    ...{ kind: 'valid', namespace: 'shop', serviceAccount: 'a.b-c' },
  });
  const long = 'a'.repeat(64);
  for (const username of [
    ...['', 'admin', 'system:serviceaccount:shop', 'system:serviceaccount:shop:a:b', 'system:node:shop:a'],
    // What would be another identity in a SPIFFE ID.
    ...['system:serviceaccount:shop/sa/x:a', 'system:serviceaccount:shop:../a', 'system:serviceaccount:..:a'],
    ...[`system:serviceaccount:${long}:a`, `system:serviceaccount:shop:${'a'.repeat(254)}`],
    ...[
      'system:serviceaccount:shop:a\n',
      'system:serviceaccount:Shop:a',
      `system:serviceaccount:shop:a${'.a'.repeat(9_999)}`,
    ],
  ])
    expect(await review({ username, groups }), username).toEqual({ kind: 'invalid' });
});

test.each([
  ['without the group of service accounts', {}, []],
  ['for another audience', { audiences: ['other'] }, groups],
  ['of a server that knows no audiences', { audiences: undefined }, groups],
  ['that is not authenticated', { authenticated: 'true' }, groups],
])('a token %s is nobody', async (_, status, of) => {
  expect(await review({ username: 'system:serviceaccount:shop:a', groups: of }, status)).toEqual({ kind: 'invalid' });
});
