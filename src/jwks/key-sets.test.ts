import { beforeEach, expect, test } from 'vitest';
import type { FetchedKeySet } from '../model/key-set.ts';
import { keySet, keys } from '../reconcilers/security/testing/keys.ts';
import { FakeClock } from '../testing/fake-clock.ts';
import { FetchError } from './fetch-text.ts';
import { KeySets } from './key-sets.ts';

const [SECOND, MINUTE, DAY] = [1_000, 60_000, 24 * 3_600_000];
const URI = 'https://k.example.com/keys';
const source = (more: object = {}) => ({ issuer: 'i', uri: URI, timeout: 5 * SECOND, ...more });
const jwks = keySet({ kty: 'EC', kid: '1', crv: 'P-256', x: keys.p256.x, y: keys.p256.y });
const other = keySet({ kty: 'RSA', n: keys.rsa.n, e: keys.rsa.e });

let clock: FakeClock;
let end: AbortController;
/** What a server answers; an error: it fails; undefined: it does not answer. */
let answers: Record<string, string | Error | undefined>;
let asked: { readonly url: string; readonly at: number; readonly signal: AbortSignal }[];
let running: number;
let written: [string, FetchedKeySet | undefined][];
let sets: KeySets;

beforeEach(() => {
  [clock, end, answers, asked, written, running] = [new FakeClock(), new AbortController(), { [URI]: jwks }, [], [], 0];
  sets = new KeySets({
    fetchText: async (url, { signal, mostBytes }) => {
      expect(mostBytes).toBe(256 * 1024);
      asked.push({ url, at: clock.now(), signal });
      running++;
      try {
        const answer = answers[url];
        if (answer instanceof Error) throw answer;
        if (answer !== undefined) return answer;
        signal.throwIfAborted();
        return await new Promise<string>((_, reject) =>
          signal.addEventListener('abort', () => reject(signal.reason as Error)),
        );
      } finally {
        running--;
      }
    },
    write: (key, found) => written.push([key, found]),
    clock,
    random: () => 0.5,
    signal: end.signal,
  });
});

const times = () => asked.map(({ at }) => at);
const last = () => written.at(-1)?.[1];

async function want(more: object = {}): Promise<void> {
  sets.want('a', { source: source(more), namespace: 'shop' });
  await clock.settle();
}

test('keys are fetched at once, and then every 20 minutes', async () => {
  await want();
  expect(written).toEqual([['a', { jwks }]]);
  await clock.advance(60 * MINUTE);
  expect(times()).toEqual([0, 20 * MINUTE, 40 * MINUTE, 60 * MINUTE]);
  // Nothing else is written as long as they are the same.
  expect(written).toHaveLength(1);
  answers[URI] = other;
  await clock.advance(20 * MINUTE);
  expect(written.slice(1)).toEqual([['a', { jwks: other }]]);
});

test('a server that fails is asked again, after ever longer, up to an hour', async () => {
  answers[URI] = new FetchError('HTTP status 500');
  await want();
  expect(written).toEqual([['a', { problem: 'HTTP status 500' }]]);
  await clock.advance(20 * 3_600_000);
  const waits = times()
    .slice(1)
    .map((at, i) => at - times()[i]!);
  expect(waits.slice(0, 13)).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3600].map((s) => s * SECOND));
  expect(new Set(waits.slice(12))).toEqual(new Set([3_600 * SECOND]));
  expect(written).toHaveLength(1);
  answers[URI] = jwks;
  await clock.advance(3_600 * SECOND);
  expect(last()).toEqual({ jwks });
  // Then it begins anew.
  answers[URI] = new FetchError('HTTP status 500');
  const before = asked.length;
  await clock.advance(20 * MINUTE + 3 * SECOND);
  expect(
    times()
      .slice(before, before + 3)
      .map((at) => at - times()[before]!),
  ).toEqual([0, SECOND, 3 * SECOND]);
});

test('the last good keys stay, with their age, and are dropped after a week', async () => {
  await want();
  await clock.advance(DAY);
  const fetchedAt = '2030-01-02T00:00:00Z';
  answers[URI] = new FetchError('HTTP status 500');
  await clock.advance(20 * MINUTE);
  expect(last()).toEqual({ jwks, problem: 'HTTP status 500', fetchedAt });
  answers[URI] = new FetchError('HTTP status 404');
  await clock.advance(6 * DAY);
  expect(last()).toEqual({ jwks, problem: 'HTTP status 404', fetchedAt });
  // Until the next time that it fails.
  await clock.advance(DAY + 3_600 * SECOND);
  expect(last()).toEqual({ problem: 'HTTP status 404', fetchedAt });
  answers[URI] = jwks;
  await clock.advance(3_600 * SECOND);
  expect(last()).toEqual({ jwks });
});

test('a server that hangs is given up after its time, and asked again', async () => {
  answers[URI] = undefined;
  await want();
  expect(written).toEqual([]);
  await clock.advance(5 * SECOND);
  expect(last()).toEqual({ problem: 'no answer within 5000 ms' });
  expect(running).toBe(0);
  await clock.advance(SECOND);
  expect(times()).toEqual([0, 6 * SECOND]);
});

test.each([
  ['', 'the answer is not JSON'],
  ['<html>', 'the answer is not JSON'],
  ['{"token":"secret"}', 'the answer is not a key set: it needs a list "keys"'],
  ['{"keys":[]}', 'the answer has no key that can verify a token'],
  ['x'.repeat(300_000), 'the answer is longer than 256 KiB'],
])('a bad answer is refused, and not repeated (%#)', async (answer, problem) => {
  await want();
  answers[URI] = answer;
  await clock.advance(20 * MINUTE);
  expect(last()).toEqual({ jwks, problem, fetchedAt: '2030-01-01T00:00:00Z' });
});

test('of an answer, only what verifies tokens is kept', async () => {
  answers[URI] = keySet({ ...keys.private, note: 'secret' }).replace(/\}$/, ',"secret":1}');
  await want();
  expect(last()!.jwks).toBe(keySet({ kty: 'EC', crv: 'P-256', x: keys.p256.x, y: keys.p256.y }));
});

test.each<[Error, string]>([
  [Object.assign(new Error('connect ECONNREFUSED 10.0.0.1:80 secret'), { code: 'ECONNREFUSED' }), 'ECONNREFUSED'],
  [new Error('secret'), 'the connection failed'],
  [new FetchError('a'.repeat(300)), 'a'.repeat(200)],
])('of an error no more is told than is safe (%#)', async (error, problem) => {
  answers[URI] = error;
  await want();
  expect(last()).toEqual({ problem });
});

const CONFIGURATION = 'https://i.example.com/.well-known/openid-configuration';

test.each(['https://i.example.com', 'https://i.example.com/'])(
  'keys of the issuer %s are discovered',
  async (issuer) => {
    answers[CONFIGURATION] = JSON.stringify({ issuer, jwks_uri: URI });
    await want({ issuer, uri: '' });
    expect(asked.map(({ url }) => url)).toEqual([CONFIGURATION, URI]);
    expect(last()).toEqual({ jwks });
  },
);

test.each([
  ['x', 'the OpenID configuration is not JSON'],
  ['null', 'the OpenID configuration has no jwks_uri'],
  ['{}', 'the OpenID configuration has no jwks_uri'],
  ['{"jwks_uri":1}', 'the OpenID configuration has no jwks_uri'],
  ['{"jwks_uri":"/keys"}', 'the OpenID configuration has no jwks_uri'],
])('the OpenID configuration %s leads nowhere', async (text, problem) => {
  answers[CONFIGURATION] = text;
  await want({ issuer: 'https://i.example.com', uri: '' });
  expect(last()).toEqual({ problem });
  expect(asked).toHaveLength(1);
});

test('discovery and keys have one time limit together', async () => {
  answers[CONFIGURATION] = JSON.stringify({ jwks_uri: URI });
  answers[URI] = undefined;
  await want({ issuer: 'https://i.example.com', uri: '' });
  await clock.advance(5 * SECOND);
  expect(last()).toEqual({ problem: 'no answer within 5000 ms' });
});

test('what is no longer wanted during a fetch ends it, and nothing is heard of it again', async () => {
  answers[URI] = undefined;
  await want();
  sets.unwant('a');
  await clock.settle();
  expect(running).toBe(0);
  expect(written).toEqual([['a', undefined]]);
  await clock.advance(DAY);
  expect(asked).toHaveLength(1);
  expect(clock.pending).toBe(0);
});

test('what is no longer wanted between fetches is not fetched again', async () => {
  await want();
  sets.unwant('a');
  sets.unwant('unknown');
  await clock.advance(DAY);
  expect(asked).toHaveLength(1);
  expect(written).toEqual([
    ['a', { jwks }],
    ['a', undefined],
  ]);
});

test('what is wanted again is fetched again', async () => {
  await want();
  sets.unwant('a');
  await want();
  expect(asked).toHaveLength(2);
  expect(last()).toEqual({ jwks });
});

test('wanting the same changes nothing; another time limit asks again, and keeps the keys meanwhile', async () => {
  await want();
  await want();
  expect(asked).toHaveLength(1);
  answers[URI] = new FetchError('HTTP status 500');
  await want({ timeout: SECOND });
  expect(last()).toMatchObject({ jwks, problem: 'HTTP status 500' });
  await clock.advance(SECOND);
  expect(times()).toEqual([0, 0, SECOND]);
});

test('a new time limit ends the fetch under the old one', async () => {
  answers[URI] = undefined;
  await want();
  await want({ timeout: SECOND });
  expect(running).toBe(1);
  await clock.advance(SECOND);
  expect(written).toEqual([['a', { problem: 'no answer within 1000 ms' }]]);
});

test('eight are fetched at a time; the others wait, unless they are no longer wanted', async () => {
  const uri = (i: number) => `https://k.example.com/${i}`;
  for (let i = 0; i < 20; i++)
    sets.want(`${i}`, { source: source({ uri: uri(i) }), namespace: i % 2 ? 'shop' : 'bank' });
  await clock.settle();
  expect(running).toBe(8);
  sets.unwant('8');
  await clock.advance(5 * SECOND);
  expect(asked.filter(({ at }) => at === 5 * SECOND && running <= 8).map(({ url }) => url)).toContain(uri(9));
  expect(asked.map(({ url }) => url)).not.toContain(uri(8));
  expect(running).toBe(8);
  answers = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [uri(i), jwks]));
  await clock.advance(MINUTE);
  expect(running).toBe(0);
  expect(new Set(written.filter(([, found]) => found?.jwks === jwks).map(([key]) => key)).size).toBe(19);
});

test('a namespace whose servers hang waits for itself, and others have their turn', async () => {
  for (let i = 0; i < 1_000; i++)
    sets.want(`${i}`, { source: source({ uri: `https://k.example.com/${i}` }), namespace: 'hostile' });
  await clock.settle();
  expect(running).toBe(4);
  await want();
  expect(last()).toEqual({ jwks });
});

test('the end ends everything, and nothing begins after it', async () => {
  await want();
  for (let i = 0; i < 20; i++)
    sets.want(`${i}`, { source: source({ uri: `https://k.example.com/${i}` }), namespace: 'shop' });
  await clock.settle();
  const before = asked.length;
  end.abort();
  sets.want('late', { source: source(), namespace: 'shop' });
  await clock.advance(DAY);
  expect(running).toBe(0);
  expect(clock.pending).toBe(0);
  expect(asked).toHaveLength(before);
  expect(written).toEqual([['a', { jwks }]]);
});
