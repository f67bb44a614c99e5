import { expect, test } from 'vitest';
import { publishedRoots } from './published-roots.ts';
import { FakeCluster } from '../testing/fake-cluster.ts';

const PATH = '/api/v1/configmaps';
const signal = new AbortController().signal;

function cluster(maps: Readonly<Record<string, string | undefined>>): FakeCluster {
  const api = new FakeCluster().install(PATH, 'ConfigMap');
  for (const [namespace, pem] of Object.entries(maps))
    api.apply(PATH, {
      metadata: { name: 'istio-ca-root-cert', namespace },
      ...(pem !== undefined && { data: { 'root-cert.pem': pem } }),
    });
  api.apply(PATH, { metadata: { name: 'other', namespace: 'shop' }, data: { 'root-cert.pem': 'other' } });
  return api;
}

test('what the root namespace publishes decides: tenants cannot write there', async () => {
  const api = cluster({ bank: 'x', root: 'a', shop: 'y' });
  expect(await publishedRoots(api, 'root', signal)).toEqual({ own: { namespace: 'root', pem: 'a' }, others: [] });
});

test('without that, every different one counts, once', async () => {
  const api = cluster({ bank: 'a', shop: 'a', web: 'b', empty: '', none: undefined });
  expect(await publishedRoots(api, 'root', signal)).toEqual({
    others: [
      { namespace: 'bank', pem: 'a' },
      { namespace: 'web', pem: 'b' },
    ],
  });
});

test('what tenants write is bounded in number and size', async () => {
  const many = Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`tenant-${i}`, `pem ${i}`]));
  const { others } = await publishedRoots(cluster({ huge: 'x'.repeat(300_000), ...many }), 'root', signal);
  expect(others).toHaveLength(16);
  expect(others[0]).toEqual({ namespace: 'tenant-0', pem: 'pem 0' });
});
