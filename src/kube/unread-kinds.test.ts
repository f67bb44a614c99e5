import { expect, test } from 'vitest';
import { FakeCluster } from './testing/fake-cluster.ts';
import { RecordingLog } from './testing/recording-log.ts';
import { warnOfUnreadKinds } from './unread-kinds.ts';

const policies = '/apis/security.istio.io/v1/authorizationpolicies';
const filters = '/apis/networking.istio.io/v1alpha3/envoyfilters';

function cluster(...names: readonly string[]): FakeCluster {
  const made = new FakeCluster().install(policies, 'AuthorizationPolicy').install(filters, 'EnvoyFilter');
  for (const name of names) made.apply(policies, { metadata: { name, namespace: 'shop' } });
  return made;
}

async function said(api: FakeCluster, signal = new AbortController().signal): Promise<RecordingLog['lines']> {
  const log = new RecordingLog();
  await warnOfUnreadKinds({ api, log, signal });
  return log.lines;
}

test('warns of objects of a kind that is not read, and what that means', async () => {
  expect(await said(cluster('a', 'b'))).toEqual([
    {
      level: 'warn',
      message: 'Objects of a kind that Fairlead does not read',
      fields: {
        kind: 'AuthorizationPolicy',
        group: 'security.istio.io',
        objects: expect.any(Number) as number,
        consequence: 'it is NOT enforced, and requests that it denies are let through',
      },
    },
  ]);
});

test('reads one object of each kind, in the version that the server has', async () => {
  const api = cluster('a', 'b');
  await said(api);
  const answered = api.requests.filter(({ path }) => path === policies || path === filters);
  expect(answered).toMatchObject([{ query: { limit: '1' } }, { query: { limit: '1' } }]);
});

test('says nothing of kinds without objects, or that are not installed', async () => {
  expect(await said(cluster())).toEqual([]);
  expect(await said(new FakeCluster())).toEqual([]);
});

test('says what it could not look for, and goes on', async () => {
  const api = cluster();
  api.denied.add(policies);
  api.apply(filters, { metadata: { name: 'a', namespace: 'shop' } });
  expect(await said(api)).toMatchObject([
    { level: 'info', fields: { kind: 'AuthorizationPolicy', err: { code: 403 } } },
    { level: 'warn', fields: { kind: 'EnvoyFilter' } },
  ]);
});

test('says nothing when it is told to end', async () => {
  expect(await said(cluster('a'), AbortSignal.abort())).toEqual([]);
});
