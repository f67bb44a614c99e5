import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { connectEtcd } from '../etcd/connection.ts';
import { type FakeWatch, startFakeEtcd } from '../etcd/testing/fake-etcd.ts';
import { FakeClock } from '../testing/fake-clock.ts';
import { clusterConfigKey } from './keys.ts';
import { Session } from './session.ts';

test('a cluster that changes its id all the time is followed now and then', async () => {
  const [clock, ending, etcd] = [new FakeClock(), new AbortController(), await startFakeEtcd()];
  const key = clusterConfigKey('east');
  const header = { clusterId: 1n, revision: 1n };
  const config = (id: number) => ({ key, value: Buffer.from(JSON.stringify({ id })) });
  const { promise: watched, resolve: watch } = Promise.withResolvers<FakeWatch>();
  etcd.answers = {
    range: (request) => ({ header, kvs: request.key === key ? [config(2)] : [] }),
    watch({ create }, stream) {
      stream.send({ header, created: true });
      if (create?.key === key) watch(stream);
    },
  };
  const connection = await connectEtcd({ access: { endpoints: [etcd.url] }, clock, random: () => 1 }, ending);
  const admitted: number[] = [];
  const session = new Session({
    ...{ name: 'east', own: { name: 'own', id: 1, limit: 255 }, connection, clock, random: () => 1 },
    admit: ({ id }) => void admitted.push(id),
    sinkOf: () => undefined,
  });
  const running = session.run(ending);
  const stream = await watched;
  await expect.poll(() => admitted).toEqual([2]);
  for (let id = 3; id <= 100; id++) {
    stream.send({ header, events: [{ kv: config(id) }] });
    await setImmediate();
  }
  await expect.poll(() => session.config?.id).toBe(100);
  expect(admitted).toEqual([2]);
  await clock.advance(30_000);
  expect(admitted).toEqual([2, 100]);
  ending.abort();
  await running;
  connection.close();
  etcd.stop();
});
