import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { FakeClock } from '../testing/fake-clock.ts';
import { connectEtcd } from './connection.ts';
import { keysUnder } from './keys.ts';
import { type FakeWatch, startFakeEtcd } from './testing/fake-etcd.ts';
import { watch } from './watch.ts';

/** Work takes time on it. */
class WorkClock extends FakeClock {
  worked = 0;

  override now(): number {
    return super.now() + this.worked;
  }
}

test('changes without end, on several streams, leave time for other things', async () => {
  const [clock, ending, etcd] = [new WorkClock(), new AbortController(), await startFakeEtcd()];
  const header = { clusterId: 1n, revision: 1n };
  const streams: FakeWatch[] = [];
  etcd.answers = {
    watch(_, stream) {
      stream.send({ header, created: true });
      streams.push(stream);
    },
  };
  const connection = await connectEtcd({ access: { endpoints: [etcd.url] }, clock, random: () => 1 }, ending);
  let [opened, taken] = [0, 0];
  const watches = ['a', 'b'].map((prefix) =>
    watch({
      ...{ connection, keys: keysUnder(prefix), from: 1n, clock, signal: ending.signal },
      onOpen: () => opened++,
      onEvents() {
        taken++;
        clock.worked += 100;
      },
    }),
  );
  await expect.poll(() => [opened, streams.length]).toEqual([2, 2]);
  for (const stream of streams)
    for (let i = 0; i < 3; i++) stream.send({ header, events: [{ kv: { key: 'a', modRevision: 1n } }] });
  for (let i = 1; i <= 6; i++) {
    await expect.poll(() => taken).toBe(i);
    await clock.advance(299);
    for (let turn = 0; turn < 50; turn++) await setImmediate();
    expect(taken).toBe(i);
    await clock.advance(1);
  }
  ending.abort();
  await Promise.allSettled(watches);
  connection.close();
  etcd.stop();
});
