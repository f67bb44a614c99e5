import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import type { EtcdConnection } from '../../src/etcd/connection.ts';
import { Leases } from '../../src/etcd/leases.ts';
import { int64, message } from '../../src/etcd/codec.ts';
import { leaseKeepAlive, put, range } from '../../src/etcd/messages.ts';
import { leaseRevoke } from '../../src/etcd/testing/messages.ts';
import { FakeClock } from '../../src/testing/fake-clock.ts';
import { type RunningEtcd, startEtcd } from '../peers/etcd.ts';
import { printLogOnFailure, withPeers } from '../peers/with-peers.ts';

const TTL = 900;

withPeers(['etcd'], 'leases of a real etcd', () => {
  let etcd: RunningEtcd;
  let connection: EtcdConnection;
  let clock: FakeClock;
  let leases: Leases;
  let lost: (readonly string[])[];
  let ending: AbortController;

  const hold = (key: string) => leases.hold(key, connection, ending);
  const write = async (key: string): Promise<bigint> => {
    const lease = await hold(key);
    await connection.call(put, { key, value: Buffer.from('x'), lease }, ending);
    return lease;
  };
  /** Of the lease, as etcd has it: seconds that are left; 0: it is gone. Does not keep it alive. */
  const timeToLive = async (id: bigint): Promise<number> => {
    const { response } = leaseKeepAlive;
    const request = message({ id: int64(1) });
    const { ttl } = await connection.call(
      { path: '/etcdserverpb.Lease/LeaseTimeToLive', request, response },
      { id },
      ending,
    );
    return Number(ttl);
  };

  beforeAll(async () => void (etcd = await startEtcd()));
  beforeEach(async () => {
    [clock, lost, ending] = [new FakeClock(), [], new AbortController()];
    connection = await etcd.connect('root');
    leases = new Leases({ ttl: TTL, mostKeys: 2, onLost: (keys) => lost.push(keys), clock, random: () => 1 });
  });
  afterEach(() => {
    ending.abort();
    connection.close();
  });
  afterAll(() => etcd?.stop());
  printLogOnFailure(() => etcd);

  test('keys share a lease until it is full; a key that is deleted makes room', async () => {
    const [a, b, c] = await Promise.all(['a', 'b', 'c'].map(hold));
    expect([a, c === a, await hold('a')]).toEqual([b, false, a]);
    leases.release('b');
    expect(await hold('d')).toBe(a);
    expect(await hold('e')).toBe(c);
    expect(await timeToLive(a!)).toBeGreaterThan(0);
  });

  test('they are kept alive, and one that is gone says which keys it had', async () => {
    const lease = await write('a');
    await write('b');
    const other = await write('c');
    let answers = 0;
    const open = connection.open.bind(connection);
    connection.open = (procedure, { signal, onMessage }) =>
      open(procedure, {
        signal,
        onMessage(message) {
          onMessage(message);
          answers++;
        },
      });
    const running = leases.run(connection, ending);
    for (let i = 1; i <= 10; i++) {
      // What was sent must be answered before more time passes.
      await expect.poll(() => answers).toBe(2 * i);
      await clock.advance((TTL / 3) * 1_000);
    }
    expect(lost).toEqual([]);
    await connection.call(leaseRevoke, { id: lease }, ending);
    await clock.advance((TTL / 3) * 1_000);
    await expect.poll(() => lost).toEqual([['a', 'b']]);
    expect((await connection.call(range, { key: 'a' }, ending)).kvs).toEqual([]);
    // The other one has room.
    expect(await write('a')).toBe(other);
    ending.abort();
    await running;
  });

  test('without a connection for too long, they count as gone', async () => {
    await write('a');
    await clock.advance(TTL * 1_000);
    void leases.run(connection, ending);
    expect(lost).toEqual([['a']]);
  });

  test('they outlive a connection, and not the store', async () => {
    const lease = await write('a');
    const before = leases.run(connection, ending);
    await etcd.restart();
    await before;
    connection = await etcd.connect('root');
    void leases.run(connection, ending);
    expect([await hold('a'), lost]).toEqual([lease, []]);
    await etcd.restart({ wiped: true });
    connection = await etcd.connect('root');
    const refused = connection.call(put, { key: 'a', value: Buffer.from('x'), lease }, ending);
    await expect(refused).rejects.toMatchObject({ reason: 'NotFound' });
    void leases.run(connection, ending);
    await expect.poll(() => lost).toEqual([['a']]);
    expect(await hold('a')).not.toBe(lease);
  });
});
