import { afterEach, beforeEach, expect, test } from 'vitest';
import { FakeClock } from '../testing/fake-clock.ts';
import { connectEtcd, type EtcdConnection } from './connection.ts';
import { keysUnder } from './keys.ts';
import { ListWatch, type ListWatchOptions } from './list-watch.ts';
import { type FakeEtcd, type FakeWatch, startFakeEtcd } from './testing/fake-etcd.ts';

/** Knows for how long the list and watch waits: all but its deadlines. */
class WatchedClock extends FakeClock {
  readonly waits: number[] = [];

  override after(ms: number, fn: () => void): () => void {
    if (ms !== 5_000 && ms !== 60_000) this.waits.push(ms);
    return super.after(ms, fn);
  }
}

let etcd: FakeEtcd;
let connection: EtcdConnection;
let clock: WatchedClock;
let ending: AbortController;
/** What the server was asked, and what the sink was told. */
let log: string[];
/** The newest stream. */
let stream: FakeWatch | undefined;
let running: Promise<void> | undefined;

beforeEach(async () => {
  [clock, ending, log, stream, running] = [new WatchedClock(), new AbortController(), [], undefined, undefined];
  newest = 0n;
  etcd = await startFakeEtcd();
  etcd.answers = {
    range: () => ({ ...header(5n), kvs: [kv('p/a', 3n)], count: 1n }),
    watch: ({ create }, opened) => {
      log.push(`watch ${create?.startRevision}`);
      opened.send({ ...header(5n), created: true });
      stream = opened;
    },
  };
  connection = await connectEtcd({ access: { endpoints: [etcd.url] }, clock, random: () => 1 }, ending);
  clock.waits.length = 0;
});
afterEach(async () => {
  ending.abort();
  await running;
  connection.close();
  etcd.stop();
  expect(clock.pending).toBe(0);
});

/** The store never goes back. */
let newest = 0n;
function header(revision: bigint) {
  if (revision > newest) newest = revision;
  return { header: { clusterId: 1n, revision: newest } };
}
const kv = (key: string, modRevision: bigint, value = 'v') => ({ key, modRevision, value: Buffer.from(value) });

function follow(more: Partial<ListWatchOptions<string>> = {}): ListWatch<string> {
  const listWatch = new ListWatch<string>({
    ...{ keys: keysUnder('p/'), mostKeys: 10, mostBytes: 1_000, clock, random: () => 1 },
    sink: {
      read: ({ value }) => Buffer.from(value).toString(),
      replace: (entries) => void log.push(`= ${[...entries.keys()].join(' ')}`),
      upsert: (key) => void log.push(`+ ${key}`),
      delete: (key) => void log.push(`- ${key}`),
    },
    ...more,
  });
  running = listWatch.run(connection, ending);
  return listWatch;
}

/** Until it waits for that long; and that is over. */
async function waited(ms: number): Promise<void> {
  await expect.poll(() => clock.waits).toEqual([ms]);
  clock.waits.length = 0;
  await clock.advance(ms);
}

/** Until the log is this; no time passes. */
async function logged(...lines: readonly string[]): Promise<void> {
  await expect.poll(() => log).toEqual(lines);
  log.length = 0;
}

test('a watch that etcd ends is resumed behind what was told last, soon, and later each time', async () => {
  const listWatch = follow();
  await logged('= p/a', 'watch 6');
  stream!.send({ ...header(8n), events: [{ kv: kv('p/b', 8n) }] });
  await logged('+ p/b');
  stream!.end();
  await waited(50);
  await logged('watch 9');
  stream!.end();
  await waited(100);
  await logged('watch 9');
  expect(listWatch.stats()).toMatchObject({ lists: 1, watches: 3, errors: 0 });
});

test('a watch that was open for a while is resumed soon again', async () => {
  follow();
  await logged('= p/a', 'watch 6');
  for (let i = 0; i < 3; i++) {
    await clock.advance(5_000);
    stream!.end();
    await waited(50);
    await logged('watch 6');
  }
});

test('a list that fails is tried again, later each time, up to a minute', async () => {
  const { answers } = etcd;
  etcd.answers = { range: () => Promise.reject({ code: 14, details: 'etcdserver: no leader' }) };
  const listWatch = follow();
  for (let delay = 50; delay < 60_000; delay *= 2) await waited(delay);
  await expect.poll(() => listWatch.stats().errors).toBe(12);
  expect(listWatch.stats()).toMatchObject({ synced: false, trouble: { error: { reason: 'Unavailable' } } });
  etcd.answers = answers;
  await expect.poll(() => clock.pending).toBe(1);
  await clock.advance(60_000);
  await logged('= p/a', 'watch 6');
  expect(listWatch.stats()).not.toHaveProperty('trouble');
});

test('a watch resumes behind whole revisions only', async () => {
  follow();
  await logged('= p/a', 'watch 6');
  stream!.send({ ...header(7n), fragment: true, events: [{ kv: kv('p/b', 7n) }] });
  await logged('+ p/b');
  stream!.end();
  await waited(50);
  await logged('watch 6');
});

test('what was not asked for is dropped and counted', async () => {
  etcd.answers.range = () => ({ ...header(5n), kvs: [kv('p/a', 3n), kv('q', 3n), kv('r', 3n)], count: 3n });
  const listWatch = follow();
  await logged('= p/a', 'watch 6');
  stream!.send({
    ...header(7n),
    events: [{ kv: kv('o', 7n) }, { type: 1, kv: kv('q', 7n) }, {}, { kv: kv('p/b', 7n) }],
  });
  await logged('+ p/b');
  stream!.send({
    ...header(8n),
    events: [
      { type: 1, kv: kv('p/never', 8n) },
      { type: 1, kv: kv('p/b', 8n) },
    ],
  });
  await logged('- p/never', '- p/b');
  expect(listWatch.stats()).toMatchObject({ strays: 4, events: 6, keys: 1, bytes: 4 });
});

test.each([
  ['are not in order', { kvs: [kv('p/b', 1n), kv('p/a', 1n)] }, 'keys of a list are not in order'],
  ['never end', { kvs: [], more: true }, 'a page of a list is empty, and there are more'],
])('pages that %s are not believed', async (_, page, message) => {
  etcd.answers.range = () => ({ ...header(5n), ...page });
  const listWatch = follow();
  await expect.poll(() => listWatch.stats().trouble?.error.message).toBe(message);
  expect(log).toEqual([]);
});

test('a list without end is read as far as it is wanted; later it is looked at again', async () => {
  let asked = 0;
  etcd.answers.range = ({ key }) => {
    asked++;
    const next = key === 'p/' ? 'p/a' : `${key.replace('\0', '')}a`;
    return { ...header(5n), kvs: [kv(next, 1n)], more: true, count: 1_000n };
  };
  const listWatch = follow({ mostKeys: 3 });
  await logged('= p/a p/aa p/aaa', 'watch 6');
  expect(clock.waits.splice(0)).toEqual([300_000]);
  expect([asked, listWatch.stats()]).toMatchObject([4, { keys: 3, beyond: 997 }]);
  etcd.answers.range = () => ({ ...header(6n), kvs: [kv('p/x', 3n)], count: 1n });
  await clock.advance(300_000);
  await waited(50);
  await logged('= p/x', 'watch 7');
  expect(listWatch.stats()).toMatchObject({ keys: 1, beyond: 0 });
});

test('what a sink did not take is told again', async () => {
  let throws = true;
  const listWatch = follow({
    sink: {
      read: () => 'v',
      replace: () => undefined,
      upsert() {
        if (throws) throw new Error('a bug');
        log.push('taken');
      },
      delete: () => undefined,
    },
  });
  await logged('watch 6');
  await expect.poll(() => clock.pending).toBe(1);
  stream!.send({ ...header(7n), events: [{ kv: kv('p/b', 7n) }] });
  await expect.poll(() => listWatch.stats().trouble?.error.reason).toBe('InternalError');
  throws = false;
  await waited(50);
  await logged('watch 8');
  expect(listWatch.stats()).toMatchObject({ lists: 2, watches: 2 });
});

test('it ends with the connection, and says that it is not current', async () => {
  const listWatch = follow();
  await logged('= p/a', 'watch 6');
  await expect.poll(() => listWatch.stats()).toMatchObject({ synced: true, current: true });
  etcd.stop();
  await running;
  expect(listWatch.stats()).toMatchObject({ synced: true, current: false, keys: 1 });
});
