import { expect, test } from 'vitest';
import type { KubeApi } from '../client/client.ts';
import { list } from './list.ts';

/** What comes of a list that always goes on, and how many pages were read. */
async function listOf(tokenAfter: (page: number) => string): Promise<{ error: unknown; pages: number }> {
  let pages = 0;
  const get = (): Promise<unknown> =>
    Promise.resolve({ metadata: { resourceVersion: '1', continue: tokenAfter(++pages) }, items: [] });
  const error: unknown = await list({
    api: { get } as Partial<KubeApi> as KubeApi,
    path: '/api/v1/pods',
    pageSize: 500,
    signal: AbortSignal.timeout(20_000),
    onItem: () => {},
    onRestart: () => {},
    onSmaller: () => {},
  }).catch((error: unknown) => error);
  return { error, pages };
}

test.each([
  ['the token again', () => 'a', 2],
  ['a round of tokens', (page: number) => 'abc'[page % 3]!, 8],
  ['a round that is reached late', (page: number) => (page < 100 ? `${page}` : 'abc'[page % 3]!), 132],
  ['ever new tokens', (page: number) => `${page}`, 10_001],
])('a list is not read for ever: %s', async (_, tokenAfter, pages) => {
  expect(await listOf(tokenAfter)).toMatchObject({
    error: { reason: 'EndlessList', retryable: true, message: 'GET /api/v1/pods: the list does not end' },
    pages,
  });
});
