import { afterEach, expect, test } from 'vitest';
import { FakeClock } from '../../testing/fake-clock.ts';
import { Outages } from '../client/outages.ts';
import { ReplicaReports } from './replica-reports.ts';
import { FakeCluster } from '../testing/fake-cluster.ts';
import { FaultyApi } from '../testing/faulty-api.ts';
import { RecordingLog } from '../testing/recording-log.ts';

const PATH = '/apis/fairlead.dev/v1alpha1/replicareports';

const end = new AbortController();
const clock = new FakeClock();
const cluster = new FakeCluster().install(PATH, 'ReplicaReport');
const api = new FaultyApi(cluster, clock);
const log = new RecordingLog();
let following: Promise<void>;
afterEach(async () => {
  end.abort();
  for (const watch of cluster.watches()) watch.finish();
  await following;
});

test('a report that cannot be written is one outage, however often others report', async () => {
  const reports = new ReplicaReports({
    ...{ api, clock, log, outages: new Outages({ log, clock }), random: () => 0.5, signal: end.signal },
    pod: { namespace: 'istio-system', name: 'one', uid: 'u' },
    own: () => ({ servingSince: 'now' }),
    found: () => undefined,
  });
  following = reports.follow();
  await clock.settle();
  api.fault = 'refused';
  reports.changed();
  for (let i = 0; i < 10; i++) {
    await clock.advance(20_000);
    cluster.apply(PATH, { metadata: { namespace: 'istio-system', name: 'two' }, spec: { i } });
  }
  expect(log.messages()).toEqual(['API server: unreachable, retrying until it works']);
  api.fault = 'none';
  await clock.advance(60_000);
  expect(log.messages()).toHaveLength(2);
  expect(cluster.object(PATH, 'istio-system', 'one')).toMatchObject({ spec: { servingSince: 'now' } });
});
