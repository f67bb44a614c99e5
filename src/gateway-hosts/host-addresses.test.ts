import { beforeEach, expect, test } from 'vitest';
import { FakeClock } from '../testing/fake-clock.ts';
import { GatewayHosts, type HostAddresses, type LookedUp, mostHosts } from './host-addresses.ts';

const SECOND = 1_000;

let clock: FakeClock;
let end: AbortController;
/** What a name server answers; undefined: it does not. */
let answers: Record<string, LookedUp | Error | undefined>;
let asked: [string, number][];
let written: [string, HostAddresses | undefined][];
let hosts: GatewayHosts;

beforeEach(() => {
  [clock, end, answers, asked, written] = [new FakeClock(), new AbortController(), {}, [], []];
  hosts = new GatewayHosts({
    lookUp: async (host, signal) => {
      asked.push([host, clock.now() / SECOND]);
      const answer = answers[host];
      if (answer instanceof Error) throw answer;
      if (answer !== undefined) return answer;
      return await new Promise<LookedUp>((_, reject) =>
        signal.addEventListener('abort', () => reject(new Error('cancelled'))),
      );
    },
    write: (host, found) => written.push([host, found]),
    clock,
    random: () => 0.5,
    signal: end.signal,
  });
});

const notFound = () => Object.assign(new Error(), { code: 'ENOTFOUND' });

test('a name is looked up at once, and again when its answer is too old', async () => {
  answers = { a: { addresses: ['192.0.2.2', '192.0.2.1', 'nonsense'], ttl: 100 } };
  hosts.want('a');
  await clock.advance(250 * SECOND);
  expect(written).toEqual([['a', { addresses: ['192.0.2.1', '192.0.2.2'] }]]);
  expect(asked.map(([, at]) => at)).toEqual([0, 100, 200]);
});

test.each([
  [0, [0, 30, 60, 90]],
  [1e9, [0]],
])('an answer that is good for %d s is asked for again within bounds', async (ttl, times) => {
  answers = { a: { addresses: ['192.0.2.1'], ttl } };
  hosts.want('a');
  await clock.advance(100 * SECOND);
  expect(asked.map(([, at]) => at)).toEqual(times);
  await clock.advance(3_600 * SECOND);
  expect(asked.length).toBeGreaterThan(times.length);
});

test('the last good answer is kept while there is none', async () => {
  answers = { a: { addresses: ['192.0.2.1'], ttl: 30 } };
  hosts.want('a');
  await clock.settle();
  answers = { a: notFound() };
  await clock.advance(40 * SECOND);
  expect(written.at(-1)).toEqual(['a', { addresses: ['192.0.2.1'], problem: 'ENOTFOUND' }]);
  answers = { a: { addresses: ['192.0.2.1'], ttl: 30 } };
  await clock.advance(60 * SECOND);
  expect(written.at(-1)).toEqual(['a', { addresses: ['192.0.2.1'] }]);
});

test('a name that cannot be resolved is tried less and less often', async () => {
  answers = { a: notFound() };
  hosts.want('a');
  await clock.advance(200 * SECOND);
  expect(asked.map(([, at]) => at)).toEqual([0, 1, 3, 7, 15, 31, 63, 123, 183]);
  expect(written).toEqual([['a', { addresses: [], problem: 'ENOTFOUND' }]]);
});

test('names that are not answered hold up no others for long', async () => {
  answers = { good: { addresses: ['192.0.2.1'], ttl: 60 } };
  for (let i = 0; i < 20; i++) hosts.want(`bad-${i}`);
  hosts.want('good');
  await clock.advance(30 * SECOND);
  expect(written).toContainEqual(['good', { addresses: ['192.0.2.1'] }]);
  expect(written).toContainEqual(['bad-0', { addresses: [], problem: 'no answer within 10000 ms' }]);
});

test('what nobody wants is not asked for', async () => {
  answers = { a: { addresses: ['192.0.2.1'], ttl: 60 } };
  hosts.want('a');
  await clock.settle();
  hosts.unwant('a');
  await clock.advance(200 * SECOND);
  expect(asked).toHaveLength(1);
  expect(written.at(-1)).toEqual(['a', undefined]);
  expect(clock.pending).toBe(0);
});

test('with too many names, one more waits until another is gone', async () => {
  for (let i = 0; i < mostHosts; i++) hosts.want(`h${i}`);
  hosts.want('late');
  await clock.settle();
  expect(written.at(-1)?.[1]?.problem).toContain('more than');
  answers = { late: { addresses: ['192.0.2.1'], ttl: 60 } };
  hosts.unwant('h0');
  for (let i = 1; i < mostHosts; i++) hosts.unwant(`h${i}`);
  await clock.settle();
  expect(written.at(-1)).toEqual(['late', { addresses: ['192.0.2.1'] }]);
});

test('nothing runs after the end', async () => {
  answers = { a: { addresses: ['192.0.2.1'], ttl: 60 } };
  hosts.want('a');
  hosts.want('b');
  await clock.settle();
  end.abort();
  await clock.advance(100 * SECOND);
  expect(clock.pending).toBe(0);
  expect(asked).toHaveLength(2);
});
