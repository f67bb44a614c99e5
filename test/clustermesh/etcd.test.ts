import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import type { EtcdAccess } from '../../src/etcd/access.ts';
import { connectEtcd, type EtcdConnection, type EtcdOptions } from '../../src/etcd/connection.ts';
import { EtcdError } from '../../src/etcd/error.ts';
import { type KeyRange, keysUnder, singleKey } from '../../src/etcd/keys.ts';
import { list } from '../../src/etcd/list.ts';
import { ListWatch, type ListWatchOptions } from '../../src/etcd/list-watch.ts';
import { message, int64, one } from '../../src/etcd/codec.ts';
import {
  type Event,
  deleteRange,
  leaseGrant,
  put,
  range,
  responseHeader,
  type WatchResponse,
} from '../../src/etcd/messages.ts';
import { EQUAL, LEASE, leaseRevoke, txn, VERSION } from '../../src/etcd/testing/messages.ts';
import { watch } from '../../src/etcd/watch.ts';
import { type RunningEtcd, startEtcd } from '../peers/etcd.ts';
import { createAuthority } from '../peers/keys.ts';
import { freePorts } from '../../src/testing/free-ports.ts';
import { printLogOnFailure, withPeers } from '../peers/with-peers.ts';
import { type Relay, startRelay } from './relay.ts';
import { grantAsCilium } from './rights.ts';

const STATE = keysUnder('cilium/state/');

withPeers(['etcd'], 'a real etcd with the rights that Cilium grants', () => {
  let etcd: RunningEtcd;
  let admin: EtcdConnection;
  const ending = new AbortController();
  const { signal } = ending;
  const ends: (() => void)[] = [];

  const prepare = (root: EtcdConnection): Promise<void> => grantAsCilium(root, 'c1');
  const write = (key: string, value: string | Buffer = 'x', lease = 0n) =>
    admin.call(put, { key, value: Buffer.from(value), lease }, { signal });
  const remove = ({ key, end }: KeyRange) =>
    admin.call(deleteRange, { key, ...(end !== undefined && { rangeEnd: end }) }, { signal });
  /** Only root may. */
  const compact = async (): Promise<bigint> => {
    const { header } = await write('cilium/compacted');
    const revision = header?.revision ?? 0n;
    const compaction = { path: '/etcdserverpb.KV/Compact', request: message({ revision: int64(1) }) };
    const response = message({ header: one(1, responseHeader) });
    const root = await connectAs('root');
    await root.call({ ...compaction, response }, { revision }, { signal });
    return revision;
  };
  const connect = async (access: EtcdAccess, more: Partial<EtcdOptions> = {}): Promise<EtcdConnection> => {
    const connection = await connectEtcd({ access, clock: systemClock, random: Math.random, ...more }, { signal });
    ends.push(() => connection.close());
    return connection;
  };
  const connectAs = async (user: string, more: Partial<EtcdOptions> = {}): Promise<EtcdConnection> =>
    connect(await etcd.access(user), more);
  const ask = (connection: EtcdConnection, { key, end }: KeyRange) =>
    connection.call(range, { key, ...(end !== undefined && { rangeEnd: end }) }, { signal });
  const refusal = (answer: Promise<unknown>): Promise<unknown> =>
    answer.then(
      () => 'allowed',
      (error: unknown) => (error instanceof EtcdError ? `${error.reason}: ${error.message}` : error),
    );
  const follow = (
    connection: EtcdConnection,
    keys: KeyRange,
    more: Partial<ListWatchOptions<string>> = {},
  ): Followed => {
    const followed = new Followed(keys, more);
    const end = new AbortController();
    followed.run(connection, end.signal);
    ends.push(() => end.abort());
    return followed;
  };
  const relay = async (): Promise<Relay> => {
    const made = await startRelay(etcd.port);
    ends.push(() => made.stop());
    return made;
  };

  beforeAll(async () => {
    etcd = await startEtcd({ prepare });
    admin = await etcd.connect('admin-c1');
  });
  afterEach(async () => {
    for (const end of ends.splice(0)) end();
    if (admin.failure !== undefined) admin = await etcd.connect('admin-c1');
    await remove(STATE);
  });
  afterAll(async () => {
    ending.abort();
    await etcd?.stop();
  });
  printLogOnFailure(() => etcd);

  test.each([
    ['prefix', keysUnder('cilium/.heartbeat'), 'allowed'],
    ['key', singleKey('cilium/.heartbeat'), 'allowed'],
    ['key', singleKey('cilium/cluster-config/c1'), 'allowed'],
    ['prefix', keysUnder('cilium/state/services/v1/c1/'), 'allowed'],
    ['prefix', keysUnder('cilium/synced/c1/'), 'allowed'],
    ['prefix', keysUnder('cilium/cluster-config/c1'), 'PermissionDenied: etcdserver: permission denied'],
    ['prefix', keysUnder('cilium/state'), 'PermissionDenied: etcdserver: permission denied'],
    ['prefix', keysUnder('cilium/synced/c1'), 'PermissionDenied: etcdserver: permission denied'],
    ['prefix', keysUnder('cilium/'), 'PermissionDenied: etcdserver: permission denied'],
  ])('the %s %j may be read and watched or neither: %s', async (_, keys, expected) => {
    const remote = await connectAs('remote');
    expect(await refusal(ask(remote, keys))).toBe(expected);
    const opened = new Promise<string>((resolve, reject) => {
      const options = { connection: remote, keys, from: 1n, clock: systemClock, signal, onEvents: () => undefined };
      watch({ ...options, onOpen: () => resolve('allowed') }).catch(reject);
    });
    expect(await refusal(opened)).toBe(expected);
    expect(remote.failure).toBeUndefined();
  });

  test('a user without rights is connected, and denied everything', async () => {
    const stranger = await connectAs('nobody');
    expect(await refusal(ask(stranger, STATE))).toMatch(/^PermissionDenied: /);
    const followed = follow(stranger, STATE);
    await expect.poll(() => followed.stats().trouble?.error.reason).toBe('PermissionDenied');
    expect(followed.stats()).toMatchObject({ synced: false, keys: 0 });
  });

  test('a reader may not write, but may have a lease', async () => {
    const remote = await connectAs('remote');
    const { id } = await remote.call(leaseGrant, { ttl: 60n }, { signal });
    expect(id).not.toBe(0n);
    const written = remote.call(put, { key: 'cilium/state/a', value: Buffer.from('x'), lease: id }, { signal });
    expect(await refusal(written)).toMatch(/^PermissionDenied: /);
  });

  test('a key that comes between two pages is not in the list, and is in the watch from there', async () => {
    for (const name of ['a', 'c', 'e']) await write(`cilium/state/${name}`);
    const connection = await connectAs('remote');
    const seen: string[] = [];
    let between: Promise<unknown> | undefined;
    const { revision, count } = await list({
      ...{ connection, keys: STATE, pageSize: 1, signal },
      onEntry: ({ key }) => {
        seen.push(key);
        between ??= write('cilium/state/d');
        return true;
      },
      onTooLarge: () => true,
    });
    await between;
    expect([seen, count]).toEqual([['cilium/state/a', 'cilium/state/c', 'cilium/state/e'], 3]);
    const event = await new Promise<Event>((resolve, reject) => {
      const onEvents = ([first]: readonly Event[]): void => resolve(first!);
      const options = { connection, keys: STATE, from: revision + 1n, clock: systemClock, signal };
      watch({ ...options, onOpen: () => undefined, onEvents }).catch(reject);
    });
    expect(event).toMatchObject({ type: 0, kv: { key: 'cilium/state/d', modRevision: revision + 1n } });
  });

  test('what a lease held is deleted with it', async () => {
    const followed = follow(await connectAs('remote'), STATE);
    const { id } = await admin.call(leaseGrant, { ttl: 60n }, { signal });
    await write('cilium/state/leased', 'y', id);
    await write('cilium/state/other', 'z');
    await followed.has({ 'cilium/state/leased': 'y', 'cilium/state/other': 'z' });
    await admin.call(leaseRevoke, { id }, { signal });
    await followed.has({ 'cilium/state/other': 'z' });
  });

  test('a transaction does what depends on what is there', async () => {
    const create = () =>
      admin.call(
        txn,
        {
          compare: [{ result: EQUAL, target: VERSION, key: 'cilium/state/once', version: 0n }],
          success: [{ put: { key: 'cilium/state/once', value: Buffer.from('first') } }],
          failure: [{ range: { key: 'cilium/state/once' } }],
        },
        { signal },
      );
    expect(await create()).toMatchObject({ succeeded: true });
    const again = await create();
    expect(again).toMatchObject({ succeeded: false });
    expect(Buffer.from(again.responses[0]?.range?.kvs[0]?.value ?? []).toString()).toBe('first');
    const compare = [{ result: EQUAL, target: LEASE, key: 'cilium/state/once', lease: 7n }];
    expect(await admin.call(txn, { compare }, { signal })).toMatchObject({ succeeded: false, responses: [] });
  });

  test('a list and a watch follow changes, page by page', async () => {
    const expected: Record<string, string> = {};
    for (let i = 0; i < 7; i++) await write(`cilium/state/${i}`, (expected[`cilium/state/${i}`] = `v${i}`));
    const followed = follow(await connectAs('remote'), STATE, { pageSize: 3 });
    await followed.has(expected);
    await write('cilium/state/3', 'changed');
    await remove(singleKey('cilium/state/4'));
    delete expected['cilium/state/4'];
    await followed.has({ ...expected, 'cilium/state/3': 'changed' });
    expect(followed.stats()).toMatchObject({ lists: 1, watches: 1, keys: 6, synced: true, current: true, errors: 0 });
  });

  test('what was compacted is said to be: to a watch that is resumed behind it, and to a list', async () => {
    const connection = await connectAs('remote');
    const from = (await write('cilium/state/a')).header?.revision ?? 0n;
    await ask(connection, STATE);
    const revision = await compact();
    const options = { connection, keys: STATE, from, clock: systemClock, signal };
    const watched = watch({ ...options, onOpen: () => undefined, onEvents: () => undefined });
    expect(await refusal(watched)).toBe(`Compacted: events are kept only from revision ${revision} on`);
    const old = connection.call(range, { key: 'cilium/state/a', revision: from }, { signal });
    expect(await refusal(old)).toBe('Compacted: etcdserver: mvcc: required revision has been compacted');
    expect(connection.failure).toBeUndefined();
  });

  test('a watch that ends behind a compaction is followed by a list, and what is gone is gone', async () => {
    await write('cilium/state/stays');
    await write('cilium/state/goes');
    const connection = await connectAs('remote');
    // The first watch ends when it has seen something, as if etcd had no more to say.
    let watches = 0;
    const interrupted = altered(connection, {
      open: (procedure, options) => {
        const end = new AbortController();
        const isFirst = watches++ === 0;
        const onMessage: typeof options.onMessage = (message) => {
          options.onMessage(message);
          if ((message as unknown as WatchResponse).created && isFirst) end.abort();
        };
        const stream = connection.open(procedure, { onMessage, signal: AbortSignal.any([options.signal, end.signal]) });
        const ended = stream.ended.catch(async (error: unknown) => {
          if (!isFirst) throw error;
          await remove(singleKey('cilium/state/goes'));
          await write('cilium/state/comes');
          await compact();
        });
        return { ...stream, ended };
      },
    });
    const followed = follow(interrupted, STATE);
    await followed.has({ 'cilium/state/stays': 'x', 'cilium/state/comes': 'x' });
    await expect.poll(() => followed.stats()).toMatchObject({ lists: 2, watches: 3, errors: 1 });
  });

  test('a compaction between two pages begins the list anew', async () => {
    for (const name of ['a', 'b', 'c']) await write(`cilium/state/${name}`);
    const connection = await connectAs('remote');
    let calls = 0;
    const interrupted = altered(connection, {
      call: async (...args) => {
        if (++calls === 2) await compact();
        return connection.call(...args);
      },
    });
    const followed = follow(interrupted, STATE, { pageSize: 1 });
    await followed.has({ 'cilium/state/a': 'x', 'cilium/state/b': 'x', 'cilium/state/c': 'x' });
    expect(followed.stats()).toMatchObject({ lists: 1, errors: 1 });
    expect(followed.replaced).toBe(1);
  });

  test('a page with large values is read in smaller ones, and a huge value alone is left out', async () => {
    await etcd.restart({ args: ['--max-request-bytes=33554432'] });
    admin = await etcd.connect('admin-c1');
    const large = '1400000 bytes';
    for (const name of ['a', 'b', 'c', 'd']) await write(`cilium/state/${name}`, Buffer.alloc(1_400_000));
    await write('cilium/state/bb', Buffer.alloc(16 * 1024 * 1024));
    const followed = follow(await connectAs('remote'), STATE);
    const expected = Object.fromEntries(['a', 'b', 'c', 'd'].map((name) => [`cilium/state/${name}`, large]));
    await followed.has(expected);
    expect(followed.stats()).toMatchObject({ keys: 4, unread: 1, lists: 1, errors: 0 });
    // A value that grows too large stays as it was, and the others go on.
    await write('cilium/state/a', Buffer.alloc(16 * 1024 * 1024));
    await write('cilium/state/e', 'small');
    await followed.has({ ...expected, 'cilium/state/e': 'small' });
    await expect.poll(() => followed.stats()).toMatchObject({ keys: 5, unread: 2, beyond: 0 });
    await write('cilium/state/a', 'small');
    await followed.has({ ...expected, 'cilium/state/a': 'small', 'cilium/state/e': 'small' });
    await etcd.restart();
  });

  test('keys and bytes are bounded', async () => {
    for (let i = 0; i < 6; i++) await write(`cilium/state/${i}`, '12345');
    const few = follow(await connectAs('remote'), STATE, { mostKeys: 3, pageSize: 2 });
    await few.has({ 'cilium/state/0': '12345', 'cilium/state/1': '12345', 'cilium/state/2': '12345' });
    const small = follow(await connectAs('remote'), STATE, { mostBytes: 40 });
    await small.has({ 'cilium/state/0': '12345', 'cilium/state/1': '12345' });
    expect([few.stats().beyond, small.stats().beyond]).toEqual([3, 4]);
    await write('cilium/state/1', 'long'.repeat(10));
    await write('cilium/state/2', '1');
    await write('cilium/state/9', '1');
    await few.has({ 'cilium/state/0': '12345', 'cilium/state/1': 'long'.repeat(10), 'cilium/state/2': '1' });
    await expect.poll(() => [few.stats().beyond, small.stats().beyond]).toEqual([4, 7]);
    await small.has({ 'cilium/state/0': '12345', 'cilium/state/1': '12345' });
  });

  test('a connection ends when etcd goes; over the next one everything is told again', async () => {
    await write('cilium/state/a', '1');
    await write('cilium/state/b', '1');
    const access = await etcd.access('remote');
    const first = await connect(access);
    const followed = follow(first, STATE);
    await followed.has({ 'cilium/state/a': '1', 'cilium/state/b': '1' });
    await etcd.restart();
    expect((await first.ended).reason).toBe('Unavailable');
    await expect.poll(() => followed.stats()).toMatchObject({ synced: true, current: false, keys: 2 });
    expect(await refusal(ask(first, STATE))).toBe('Unavailable: the connection was lost');
    admin = await etcd.connect('admin-c1');
    await remove(singleKey('cilium/state/b'));
    const second = await connect(access);
    followed.run(second, signal);
    await followed.has({ 'cilium/state/a': '1' });
    expect(second.clusterId).toBe(first.clusterId);
  });

  test('an etcd that was wiped shows it: its id, or with the same token its revision', async () => {
    for (let i = 0; i < 5; i++) await write(`cilium/state/${i}`);
    const before = await connectAs('remote');
    const revision = (await ask(before, STATE)).header?.revision ?? 0n;
    await etcd.restart({ wiped: true, prepare });
    admin = await etcd.connect('admin-c1');
    await write('cilium/state/new');
    const same = await connectAs('remote');
    const { header } = await ask(same, STATE);
    expect([header?.clusterId, header!.revision < revision]).toEqual([before.clusterId, true]);
    // As a watch would be that does not list: nothing ever comes of it.
    const events: Event[] = [];
    const end = new AbortController();
    const opened = Promise.withResolvers<void>();
    const silent = watch({
      ...{ connection: same, keys: STATE, from: revision + 1n, clock: systemClock, signal: end.signal },
      onOpen: opened.resolve,
      onEvents: (some) => events.push(...some),
    }).catch(() => undefined);
    await opened.promise;
    const followed = follow(same, STATE);
    await write('cilium/state/newer');
    await followed.has({ 'cilium/state/new': 'x', 'cilium/state/newer': 'x' });
    expect(events).toEqual([]);
    end.abort();
    await silent;
    await etcd.restart({ wiped: true, token: 'another', prepare });
    admin = await etcd.connect('admin-c1');
    const other = await connectAs('remote');
    await ask(other, STATE);
    expect(other.clusterId).not.toBe(before.clusterId);
    expect(other.clusterId! > 2n ** 53n || before.clusterId! > 2n ** 53n).toBe(true);
  });

  test('files are read for each connection, and may come later', async () => {
    const access = await etcd.access('remote');
    const { authority } = etcd;
    const missing: EtcdAccess = { ...access, caFile: `${access.caFile}.later` };
    expect(await refusal(connect(missing))).toBe(
      `NoCredentials: https://127.0.0.1:${etcd.port}: cannot read ${missing.caFile}: ENOENT`,
    );
    await etcd.renew(missing, 'remote');
    await ask(await connect(missing), STATE);
    await etcd.restart({ authority: await createAuthority() });
    expect(await refusal(connect(access))).toMatch(/^Unavailable: https:\/\/127.0.0.1:\d+: .*certificate/);
    await etcd.renew(access, 'remote');
    await ask(await connect(access), STATE);
    await etcd.restart({ authority });
    admin = await etcd.connect('admin-c1');
  });

  test('a name with addresses of its own is what the certificate must be for', async () => {
    const access = await etcd.access('remote');
    const at = (host: string, ...ips: string[]): EtcdAccess => ({
      ...access,
      endpoints: [`https://${host}:${etcd.port}`],
      hostAliases: { [host]: ips },
    });
    await ask(await connect(at('c1.mesh.cilium.io', '127.0.0.1')), STATE);
    await ask(await connect(at('c1.mesh.cilium.io', '127.0.0.2', '127.0.0.1')), STATE);
    expect(await refusal(connect(at('c1.mesh.example', '127.0.0.1')))).toMatch(
      /^Unavailable: https:\/\/c1\.mesh\.example:\d+ \(127\.0\.0\.1\): .*does not match certificate/,
    );
    expect(await refusal(connect({ ...access, endpoints: ['tcp://x'] }))).toBe(
      'Misconfigured: endpoint "tcp://x" is not of the form https://host:port',
    );
  });

  test('members are tried one after the other', async () => {
    const access = await etcd.access('remote');
    const [nobody] = await freePorts(1);
    const endpoints = [`https://127.0.0.1:${nobody}`, ...access.endpoints];
    await ask(await connect({ ...access, endpoints }, { random: () => 0 }), STATE);
    expect(await refusal(connect({ ...access, endpoints: endpoints.slice(0, 1) }))).toMatch(
      new RegExp(`^Unavailable: https://127.0.0.1:${nobody}: .*ECONNREFUSED`),
    );
  });

  test('a connection that goes silent is noticed, and leaves no socket', async () => {
    const between = await relay();
    const access = { ...(await etcd.access('remote')), endpoints: [`https://127.0.0.1:${between.port}`] };
    const connection = await connect(access, { keepAlive: { time: 100, timeout: 100 } });
    const followed = follow(connection, STATE);
    await expect.poll(() => followed.stats().watches).toBe(1);
    between.freeze();
    expect((await connection.ended).reason).toBe('Unavailable');
    // Now connections are accepted, and nothing is said.
    expect(await refusal(connect(access, { patience: 200 }))).toMatch(/^Timeout: .*not connected within 0.2 s$/);
    await expect.poll(() => between.connections).toBe(0);
    between.thaw();
    await ask(await connect(access), STATE);
  });

  test('a connection that is cut ends what was under way on it', async () => {
    const between = await relay();
    const access = { ...(await etcd.access('remote')), endpoints: [`https://127.0.0.1:${between.port}`] };
    const connection = await connect(access);
    between.freeze();
    const asked = refusal(ask(connection, STATE));
    between.cut();
    expect(await asked).toMatch(/^Unavailable: /);
    expect((await connection.ended).reason).toBe('Unavailable');
  });
});

/** The connection, with some of it done otherwise. */
function altered(connection: EtcdConnection, members: Partial<Pick<EtcdConnection, 'call' | 'open'>>): EtcdConnection {
  return {
    call: connection.call.bind(connection),
    open: connection.open.bind(connection),
    get failure() {
      return connection.failure;
    },
    ...members,
  } as EtcdConnection;
}

/** What a list and watch has told. */
class Followed {
  readonly values = new Map<string, string>();
  replaced = 0;
  readonly #listWatch: ListWatch<string>;

  constructor(keys: KeyRange, more: Partial<ListWatchOptions<string>>) {
    this.#listWatch = new ListWatch({
      ...{ keys, mostKeys: 1_000, mostBytes: 100_000_000, clock: systemClock, random: Math.random },
      ...more,
      sink: {
        read: ({ value }) => shown(value),
        replace: (entries, unread) => {
          this.replaced++;
          for (const key of this.values.keys()) if (!unread.has(key)) this.values.delete(key);
          for (const [key, value] of entries) this.values.set(key, value);
          return undefined;
        },
        upsert: (key, value) => void this.values.set(key, value),
        delete: (key) => void this.values.delete(key),
      },
    });
  }

  run(connection: EtcdConnection, signal: AbortSignal): void {
    void this.#listWatch.run(connection, { signal });
  }

  stats() {
    return this.#listWatch.stats();
  }

  async has(expected: Readonly<Record<string, string>>): Promise<void> {
    await expect.poll(() => Object.fromEntries(this.values)).toEqual(expected);
  }
}

function shown(value: Uint8Array): string {
  return value.length > 100 ? `${value.length} bytes` : Buffer.from(value).toString();
}
