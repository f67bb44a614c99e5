import { beforeEach, expect, test } from 'vitest';
import { FakeClock } from '../testing/fake-clock.ts';
import { AccessReviews } from './access-reviews.ts';

let clock: FakeClock;
let end: AbortController;
let answer: (account: string) => Promise<boolean>;
let asked: string[];
let written: [string, boolean | undefined][];
let reviews: AccessReviews;

beforeEach(() => {
  [clock, end, asked, written] = [new FakeClock(), new AbortController(), [], []];
  answer = () => Promise.resolve(true);
  reviews = new AccessReviews({
    review: ({ namespace, name }) => {
      asked.push(`${namespace}/${name}`);
      return answer(`${namespace}/${name}`);
    },
    write: (account, found) => written.push([account, found?.allowed]),
    clock,
    random: () => 0.5,
    signal: end.signal,
  });
});

test('an account is reviewed when it is wanted, and again within a minute; only changes are written', async () => {
  reviews.want('edge/router');
  reviews.want('edge/router');
  await clock.settle();
  expect([asked, written]).toEqual([['edge/router'], [['edge/router', true]]]);
  await clock.advance(59_000);
  expect(asked).toHaveLength(2);
  expect(written).toHaveLength(1);
  answer = () => Promise.resolve(false);
  await clock.advance(60_000);
  expect(written.slice(1)).toEqual([['edge/router', false]]);
});

test('while it cannot be found out the last answer counts, and it is tried again soon', async () => {
  answer = () => Promise.reject(new Error('away'));
  reviews.want('edge/router');
  await clock.settle();
  expect(written).toEqual([]);
  answer = () => Promise.resolve(true);
  await clock.advance(2_000);
  expect(written).toEqual([['edge/router', true]]);
  answer = () => Promise.reject(new Error('away'));
  await clock.advance(3_600_000);
  expect(written).toHaveLength(1);
});

test('eight are asked for at a time', async () => {
  const open: (() => void)[] = [];
  answer = () => new Promise((resolve) => open.push(() => resolve(true)));
  for (let i = 0; i < 20; i++) reviews.want(`edge/${i}`);
  await clock.settle();
  expect(asked).toHaveLength(8);
  // One that nobody needs any more is not asked for.
  reviews.unwant('edge/8');
  for (const each of open.splice(0)) each();
  await clock.settle();
  expect(asked).toHaveLength(16);
  expect(asked).not.toContain('edge/8');
});

test('what nobody needs any more is taken back, and a late answer to it does not count', async () => {
  let late: (() => void) | undefined;
  answer = () => new Promise((resolve) => (late = () => resolve(true)));
  reviews.want('edge/router');
  await clock.settle();
  reviews.unwant('edge/router');
  reviews.unwant('edge/router');
  late!();
  await clock.settle();
  expect(written).toEqual([['edge/router', undefined]]);
  expect(clock.pending).toBe(0);
});

test('it waits for nothing after the end', async () => {
  reviews.want('edge/router');
  await clock.settle();
  end.abort();
  reviews.want('edge/other');
  await clock.settle();
  expect([asked.length, clock.pending]).toEqual([1, 0]);
});
