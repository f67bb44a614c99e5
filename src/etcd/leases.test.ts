import { beforeEach, expect, test } from 'vitest';
import { FakeClock } from '../testing/fake-clock.ts';
import type { EtcdConnection } from './connection.ts';
import { Leases } from './leases.ts';

let clock: FakeClock;
let lost: (readonly string[])[];
/** What the next grants say. */
let granted: { id: bigint; ttl: bigint; error: string };
let grants: number;
let leases: Leases;
const ending = new AbortController();

/** Grants leases, and nothing else. */
const connection = {
  ended: new Promise(() => undefined),
  call: () => {
    grants++;
    return Promise.resolve(granted);
  },
} as unknown as EtcdConnection;

const hold = (key: string): Promise<bigint> => leases.hold(key, connection, ending);

beforeEach(() => {
  [clock, lost, grants, granted] = [new FakeClock(), [], 0, { id: 1n, ttl: 900n, error: '' }];
  leases = new Leases({ ttl: 900, mostKeys: 1, onLost: (keys) => lost.push(keys), clock, random: () => 1 });
});

test('an etcd that forgets its leases again and again is asked for others more and more slowly', async () => {
  for (let i = 0; i < 2; i++) leases.lose(await hold('a'));
  for (const delay of [1_000, 2_000, 4_000]) {
    const before = grants;
    const next = hold('a');
    await clock.advance(delay - 1);
    expect(grants).toBe(before);
    await clock.advance(1);
    leases.lose(await next);
  }
  expect(lost).toHaveLength(5);
  await clock.advance(60_000);
  expect(await hold('a')).toBe(1n);
});

test.each([
  ['none', { id: 0n }, 'no lease: no reason given'],
  ['with an error', { error: 'full' }, 'no lease: full'],
  ['that ends too early', { ttl: 1n }, 'a lease for 1 s instead of 900 s'],
  ['that ends at once', { ttl: 0n }, 'a lease for 0 s instead of 900 s'],
])('a lease is refused: %s', async (_, answer, message) => {
  granted = { ...granted, ...answer };
  await expect(hold('a')).rejects.toThrow(message);
});

test('one lease is not granted twice', async () => {
  await hold('a');
  await expect(hold('b')).rejects.toThrow('a lease was granted twice');
});
