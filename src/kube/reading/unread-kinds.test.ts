import { expect, test } from 'vitest';
import { FakeCluster } from '../testing/fake-cluster.ts';
import { RecordingLog } from '../testing/recording-log.ts';
import { warnOfUnreadKinds } from './unread-kinds.ts';

const telemetries = '/apis/telemetry.istio.io/v1/telemetries';
const filters = '/apis/networking.istio.io/v1alpha3/envoyfilters';

function cluster(...names: readonly string[]): FakeCluster {
  const made = new FakeCluster().install(telemetries, 'Telemetry').install(filters, 'EnvoyFilter');
  for (const name of names) made.apply(telemetries, { metadata: { name, namespace: 'shop' } });
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
        kind: 'Telemetry',
        group: 'telemetry.istio.io',
        objects: expect.any(Number) as number,
        consequence: 'access logs, metrics and traces stay as the mesh config sets them',
      },
    },
  ]);
});

test('reads one object of each kind, in the version that the server has', async () => {
  const api = cluster('a', 'b');
  await said(api);
  const answered = api.requests.filter(({ path }) => path === telemetries || path === filters);
  expect(answered).toMatchObject([{ query: { limit: '1' } }, { query: { limit: '1' } }]);
});

test('says nothing of kinds without objects, or that are not installed', async () => {
  expect(await said(cluster())).toEqual([]);
  expect(await said(new FakeCluster())).toEqual([]);
});

test('says what it could not look for, and goes on', async () => {
  const api = cluster();
  api.denied.add(telemetries);
  api.apply(filters, { metadata: { name: 'a', namespace: 'shop' } });
  expect(await said(api)).toMatchObject([
    { level: 'warn', fields: { kind: 'EnvoyFilter' } },
    { level: 'info', fields: { kind: 'Telemetry', err: { code: 403 } } },
  ]);
});

test('says nothing when it is told to end', async () => {
  expect(await said(cluster('a'), AbortSignal.abort())).toEqual([]);
});
