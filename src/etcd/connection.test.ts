import { afterEach, beforeEach, expect, test } from 'vitest';
import { FakeClock } from '../testing/fake-clock.ts';
import { connectEtcd, type EtcdConnection, LONGEST_MESSAGE } from './connection.ts';
import { EtcdError, printable } from './error.ts';
import { keysUnder } from './keys.ts';
import { type Event, range } from './messages.ts';
import { type FakeAnswers, type FakeEtcd, startFakeEtcd } from './testing/fake-etcd.ts';
import { watch } from './watch.ts';

let etcd: FakeEtcd;
let connection: EtcdConnection;
let clock: FakeClock;
let ending: AbortController;

beforeEach(async () => {
  [clock, ending] = [new FakeClock(), new AbortController()];
  etcd = await startFakeEtcd();
  connection = await connectEtcd({ access: { endpoints: [etcd.url] }, clock, random: () => 0 }, ending);
});
afterEach(() => {
  connection.close();
  etcd.stop();
  expect(clock.pending).toBe(0);
});

const header = (clusterId: bigint, revision: bigint) => ({ header: { clusterId, revision } });
const get = (signal = ending.signal): Promise<string> => outcome(connection.call(range, { key: 'a' }, { signal }));

async function outcome(answer: Promise<unknown>): Promise<string> {
  try {
    await answer;
    return 'ok';
  } catch (error) {
    return error instanceof EtcdError ? `${error.reason}: ${error.message}` : String(error);
  }
}

/** Of a watch, what it has told and how it ended. */
async function watched(answers: FakeAnswers['watch']): Promise<readonly string[]> {
  etcd.answers = { ...etcd.answers, ...(answers && { watch: answers }) };
  const told: string[] = [];
  const ended = watch({
    ...{ connection, keys: keysUnder('a'), from: 5n, clock, signal: ending.signal },
    onOpen: () => told.push('open'),
    onEvents: (events, isWhole) => told.push(`${events.map(shown).join(' ')}${isWhole ? '' : ' ...'}`),
  });
  const end = await outcome(ended);
  return [...told, end];
}

const shown = ({ type, kv }: Event): string => `${type === 0 ? '+' : '-'}${kv?.key}`;

const BIG = 14_443_903_163_313_418_560n;

test('every answer must be of the same etcd', async () => {
  etcd.answers = { range: () => header(BIG, 1n) };
  expect([await get(), connection.clusterId]).toEqual(['ok', BIG]);
  etcd.answers = { range: () => header(BIG + 1n, 1n) };
  const reason = `OtherCluster: another etcd answers: cluster_id ${BIG + 1n} instead of ${BIG}`;
  expect(await get()).toBe(reason);
  expect((await connection.ended).reason).toBe('OtherCluster');
  etcd.answers = { range: () => header(BIG, 1n) };
  expect(await get()).toBe(reason);
});

test('an answer without a header ends the connection', async () => {
  etcd.answers = { range: () => ({}) };
  expect(await get()).toBe('OtherCluster: an answer has no cluster_id');
  expect((await connection.ended).reason).toBe('OtherCluster');
});

test('a message of a watch that is of another etcd ends everything', async () => {
  etcd.answers = {
    range: () => header(1n, 9n),
    watch: (_, { send }) => {
      send({ ...header(1n, 9n), created: true });
      send({ ...header(2n, 9n), events: [{ kv: { key: 'a' } }] });
    },
  };
  await get();
  expect(await watched(etcd.answers.watch)).toEqual([
    'open',
    'OtherCluster: another etcd answers: cluster_id 2 instead of 1',
  ]);
  expect(connection.failure?.reason).toBe('OtherCluster');
});

test('a store that went back ends the connection, for an answer and for a watch', async () => {
  etcd.answers = { range: () => header(1n, 9n) };
  expect(await get()).toBe('ok');
  etcd.answers = { range: () => header(1n, 8n) };
  expect(await get()).toBe('WentBack: the store was replaced by an older one: revision 8 after 9');
});

test('answers to calls that are under way at once may overtake each other', async () => {
  const answers = [Promise.withResolvers<bigint>(), Promise.withResolvers<bigint>()];
  let calls = 0;
  etcd.answers = { range: async () => header(1n, await answers[calls++]!.promise) };
  const [first, second] = [get(), get()];
  answers[1]!.resolve(9n);
  expect(await Promise.race([first, second])).toBe('ok');
  answers[0]!.resolve(8n);
  expect([await first, await second, connection.failure]).toEqual(['ok', 'ok', undefined]);
});

test('what is not a message, or too long a one, fails that call alone', async () => {
  etcd.answers = { range: () => Buffer.from([0x0a, 0x7f]) };
  expect(await get()).toBe('Malformed: an answer is not a message of etcd');
  etcd.answers = { range: () => Buffer.alloc(LONGEST_MESSAGE + 1) };
  expect(await get()).toMatch(/^TooLarge: Received message larger than max/);
  etcd.answers = { range: () => header(1n, 1n) };
  expect(await get()).toBe('ok');
});

test('errors keep their words, on one line', async () => {
  etcd.answers = { range: () => Promise.reject({ code: 8, details: 'etcdserver:\nmvcc: database space exceeded' }) };
  expect(await get()).toBe('Refused: etcdserver: mvcc: database space exceeded');
  expect(printable('x'.repeat(1_000))).toHaveLength(303);
  expect(printable('\u001b[31m')).toBe('[31m');
});

test('a call that is not answered ends in time, with the signal, and with the connection', async () => {
  etcd.answers = { range: () => new Promise(() => undefined) };
  const late = get();
  await clock.until(() => clock.pending === 1, 0);
  await clock.advance(60_000);
  expect(await late).toBe('Timeout: no answer within 60 s');
  const one = new AbortController();
  const aborted = get(one.signal);
  one.abort();
  expect(await aborted).toBe('Closed: closed');
  expect(await get(one.signal)).toBe('Closed: closed');
  const last = get();
  connection.close();
  expect([await last, (await connection.ended).reason]).toEqual(['Closed: closed', 'Closed']);
});

test('a watch that never begins ends in time', async () => {
  const ended = watched(() => undefined);
  await clock.settle();
  await clock.advance(60_000);
  expect(await ended).toEqual(['Timeout: a watch has not begun within 60 s']);
});

test.each([
  ['without a reason', { canceled: true }, ['open', '+a', 'ok']],
  [
    'because it may not',
    { canceled: true, cancelReason: 'rpc error: code = PermissionDenied desc = etcdserver: permission denied' },
    ['open', '+a', 'PermissionDenied: etcdserver: permission denied'],
  ],
  [
    'behind a compaction',
    { canceled: true, compactRevision: 7n },
    ['open', '+a', 'Compacted: events are kept only from revision 7 on'],
  ],
  ['for another reason', { canceled: true, cancelReason: 'because' }, ['open', '+a', 'Refused: because']],
])('a watch that is cancelled %s', async (_, last, expected) => {
  expect(
    await watched((_, { send }) => {
      send({ ...header(1n, 5n), created: true });
      send({ ...header(1n, 5n), events: [{ kv: { key: 'a', modRevision: 5n } }] });
      send({ ...header(1n, 0n), ...last });
    }),
  ).toEqual(expected);
});

test('a watch begins once, however often etcd says so', async () => {
  expect(
    await watched((_, { send, end }) => {
      for (let i = 0; i < 3; i++) send({ ...header(1n, 5n), created: true });
      end();
    }),
  ).toEqual(['open', 'ok']);
});

test('a watch that etcd ends, and one that it divides', async () => {
  expect(
    await watched((_, { send, end }) => {
      send({ ...header(1n, 5n), created: true });
      send({ ...header(1n, 5n), fragment: true, events: [{ kv: { key: 'a' } }] });
      send({ ...header(1n, 5n), events: [{ type: 1, kv: { key: 'ab' } }] });
      end();
    }),
  ).toEqual(['open', '+a ...', '-ab', 'ok']);
});

test('a handler that throws ends its watch, and nothing else', async () => {
  etcd.answers = {
    range: () => header(1n, 5n),
    watch: (_, { send }) => send({ ...header(1n, 5n), created: true }),
  };
  const ended = watch({
    ...{ connection, keys: keysUnder('a'), from: 5n, clock, signal: ending.signal },
    onOpen: () => {
      throw new Error('a bug');
    },
    onEvents: () => undefined,
  });
  expect(await outcome(ended)).toBe('InternalError: a bug');
  expect(await get()).toBe('ok');
});

test('nothing answers where nobody listens', async () => {
  etcd.stop();
  expect((await connection.ended).reason).toBe('Unavailable');
  const again = connectEtcd({ access: { endpoints: [etcd.url] }, clock, random: () => 0 }, ending);
  expect(await outcome(again)).toMatch(/^Unavailable: http:\/\/127\.0\.0\.1:\d+: .*ECONNREFUSED/);
  const aborted = new AbortController();
  aborted.abort();
  const never = connectEtcd({ access: { endpoints: [etcd.url] }, clock, random: () => 0 }, aborted);
  expect(await outcome(never)).toBe('Closed: closed');
});
