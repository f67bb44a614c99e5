import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2';
import { Readable } from 'node:stream';
import { status as Status } from '@grpc/grpc-js';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { AdsServerOptions } from '../../src/ads/transport/server-options.ts';
import { bytesInUse } from '../../src/testing/memory.ts';
import { field, framed, framePrefix, nodeField, openDeltaStream } from '../harness/raw-ads.ts';
import { bodiesOf, NODE } from './script.ts';
import { EDS, RDS, ServedMesh } from './served-mesh.ts';
import { XdsClient } from './xds-client.ts';

/** What clients can make the server keep, and for how long. The table: docs/guide/operations.md#what-clients-may-cost. */

let mesh: ServedMesh;
const clients: XdsClient[] = [];

async function start(options: Partial<AdsServerOptions> = {}): Promise<void> {
  await mesh.stop();
  mesh = await ServedMesh.start({ tickMs: 10, ...options });
  mesh.publish({ [EDS]: { a: '0' } });
}

beforeEach(async () => {
  mesh = await ServedMesh.start({ tickMs: 10 });
  mesh.publish({ [EDS]: { a: '0' } });
});

afterEach(async () => {
  for (const client of clients.splice(0)) client.close();
  await mesh.stop();
});

function open(): XdsClient {
  const client = new XdsClient(mesh.server.port!, true);
  clients.push(client);
  return client;
}

/** It is served as ever. */
async function served(client = open()): Promise<XdsClient> {
  client.send({ typeUrl: EDS, node: NODE, subscribe: ['a'] });
  const response = await client.next(EDS);
  expect(bodiesOf(response)).toEqual(['a@0']);
  client.send({ typeUrl: EDS, nonce: response.nonce });
  return client;
}

const firstRequest = (...fields: Uint8Array[]): Buffer => Buffer.concat([nodeField('id'), field(2, EDS), ...fields]);

/** HTTP/2 without a gRPC client, which would close what has ended. */
function session(initialWindowSize = 65_535): ClientHttp2Session {
  const opened = connect(`http://127.0.0.1:${mesh.server.port}`, { settings: { initialWindowSize } });
  opened.on('error', () => {});
  onTestFinished(() => opened.destroy());
  return opened;
}

function* pieces(bytes: number): Iterable<Buffer> {
  for (; bytes > 0; bytes -= 65_536) yield Buffer.alloc(Math.min(bytes, 65_536));
}

/** Time passes in steps: nothing lasts that was not looked at. */
function later<T>(ms: number, look: () => T): T {
  mesh.pass(ms);
  return look();
}

const openStreams = (): number => mesh.server.counts().streams;
const limited = (): object =>
  Object.fromEntries(Object.entries(mesh.server.counts().limits).filter(([, count]) => count > 0));

describe('messages that do not end', () => {
  test('are kept up to a budget, and end their streams', async () => {
    const before = bytesInUse('arrayBuffers');
    const opened = session();
    const length = 16 << 20;
    const streams: ClientHttp2Stream[] = [];
    for (let i = 0; i < 10; i++) {
      const stream = openDeltaStream(opened);
      stream.resume();
      stream.write(framed(firstRequest()));
      stream.write(framePrefix(length));
      streams.push(stream);
    }
    await expect.poll(() => mesh.peers.length).toBe(10);
    // All but the last byte.
    for (const stream of streams) Readable.from(pieces(length - 1)).pipe(stream, { end: false });
    // One of them is all that one address has room for.
    await expect.poll(() => mesh.server.counts().waitingForRoom, { timeout: 20_000 }).toBe(9);
    await served();
    const back = open();
    back.send({ typeUrl: EDS, node: NODE, subscribe: Array.from({ length: 10_000 }, (_, i) => `name-${i}`) });
    await back.next(EDS);
    expect(bytesInUse('arrayBuffers') - before).toBeLessThan(63 << 20);
    // Longer than room is waited for: whoever has room by then is late, and the others have waited too long.
    await expect.poll(() => later(70_000, openStreams)).toBe(2);
    const { message_time: late, message_memory: waited } = mesh.server.counts().limits;
    expect([late > 0, waited > 1, late + waited]).toEqual([true, true, 10]);
    opened.destroy();
  });

  test('are refused when they are first ones and longer than any that is known', async () => {
    const stream = openDeltaStream(session());
    const ended = new Promise((resolve) => stream.once('trailers', resolve));
    stream.resume();
    stream.write(framePrefix((4 << 20) + 1));
    expect(await ended).toMatchObject({ 'grpc-status': String(Status.RESOURCE_EXHAUSTED) });
    expect(limited()).toEqual({ message_size: 1 });
    expect(mesh.server.counts().ended).toEqual({ RESOURCE_EXHAUSTED: 1 });
    expect(mesh.warnings).toEqual([
      'Stream ended by this replica {"stream":"stream-1","address":"127.0.0.1","code":"RESOURCE_EXHAUSTED","reason":"a message is longer than 4194304 bytes"}',
    ]);
  });
});

test('who is not told in time what it may see makes room for others', async () => {
  let silent = true;
  const waiting: string[] = [];
  await start({
    events: {
      connected: ({ stream }) => {
        if (silent) waiting.push(stream);
        else setImmediate(() => mesh.move(stream, { roots: ['mesh'], qualifiers: [] }));
      },
      disconnected: () => {},
      rejected: () => {},
    },
  });
  const client = open();
  client.send({ typeUrl: EDS, node: NODE, subscribe: ['a'] });
  await expect.poll(() => waiting.length).toBe(1);
  await expect.poll(() => later(20_000, limited)).toEqual({ world_time: 1 });
  expect(await client.closed).toMatchObject({ code: Status.UNAVAILABLE });
  silent = false;
  await served();
});

test('whose configuration is being computed keeps its place, whoever else waits, for minutes', async () => {
  const connected: string[] = [];
  await start({
    events: { connected: ({ stream }) => connected.push(stream), disconnected: () => {}, rejected: () => {} },
  });
  const most = 128;
  const sessions = [session(), session()];
  for (let i = 0; i < most + 3; i++)
    openDeltaStream(sessions[i % 2]!)
      .resume()
      .write(framed(firstRequest()));
  await expect.poll(() => [connected.length, mesh.server.counts().waitingForWorld]).toEqual([most, 3]);
  // One that says nothing has a minute.
  openDeltaStream(sessions[0]!).resume();
  await expect.poll(() => later(20_000, limited)).toEqual({ first_request_time: 1 });
  await expect.poll(() => later(20_000, limited)).toMatchObject({ world_time: most + 3 });
});

test('who waits for others to be computed makes room sooner if somebody else needs it', async () => {
  const connected: string[] = [];
  const ended: string[] = [];
  const isDeferred = (stream: string): boolean => connected.indexOf(stream) % 2 === 1;
  await start({
    events: {
      connected: ({ stream }) => connected.push(stream),
      isDeferred,
      disconnected: ({ stream }) => ended.push(stream),
      rejected: () => {},
    },
  });
  const most = 128;
  const sessions = [session(), session()];
  for (let i = 0; i < most + 3; i++)
    openDeltaStream(sessions[i % 2]!)
      .resume()
      .write(framed(firstRequest()));
  await expect.poll(() => [connected.length, mesh.server.counts().waitingForWorld]).toEqual([most, 3]);
  await expect.poll(() => later(2_000, limited)).toEqual({ world_time: 3 });
  expect([connected.length, ended.every(isDeferred)]).toEqual([most + 3, true]);
});

test('first requests that wait for their world are kept up to a budget, and all are answered in the end', async () => {
  const count = 36;
  const worlds: (() => void)[] = [];
  // Of a type that nobody answers, and behind it what is answered.
  const known = Array.from({ length: 1_000 }, (_, i) => field(3, `${i}-${'x'.repeat(3_900)}`));
  const large = framed(Buffer.concat([nodeField('id'), field(2, 'unknown'), ...known]));
  const request = Buffer.concat([large, framed(Buffer.concat([field(2, EDS), field(3, 'a')]))]);
  await start({
    events: {
      connected: ({ stream }) => worlds.push(() => mesh.move(stream, { roots: ['mesh'], qualifiers: [] })),
      disconnected: () => {},
      rejected: () => {},
    },
  });
  let answered = 0;
  for (let i = 0; i < count; i++)
    openDeltaStream(session())
      .on('data', () => {})
      .once('data', () => answered++)
      .write(request);
  const fit = Math.floor((16 << 20) / large.length);
  await expect.poll(() => worlds.length, { timeout: 20_000 }).toBe(fit);
  await expect.poll(() => mesh.server.counts().waitingForRoom, { timeout: 20_000 }).toBe(count - fit);
  const giveAll = (): number => {
    for (const give of worlds.splice(0)) give();
    return answered;
  };
  await expect.poll(giveAll, { timeout: 20_000 }).toBe(count);
  expect(mesh.server.counts()).toMatchObject({ waitingForRoom: 0, streams: count });
  expect(limited()).toEqual({});
});

test('a stream that takes nothing for two minutes ends, although its connection lives', async () => {
  mesh.publish({ [RDS]: { big: Buffer.alloc(1 << 20, 1) } });
  const opened = session(1024);
  const stream = openDeltaStream(opened);
  stream.pause();
  stream.write(framed(Buffer.concat([nodeField('id'), field(2, RDS), field(3, 'big')])));
  await expect.poll(() => mesh.server.counts().pushes['rds']).toBe(1);
  for (const ms of [60_000, 30_000]) {
    mesh.pass(ms);
    await served();
    expect(limited()).toEqual({});
  }
  await expect.poll(() => later(5_000, limited)).toEqual({ write_time: 1 });
  // Its status would come behind what it does not take.
  await served();
  const reset = new Promise((resolve) => stream.once('close', () => resolve(stream.rstCode)));
  stream.resume();
  await expect.poll(() => later(5_000, limited)).toEqual({ write_time: 1, end_time: 1 });
  expect(await reset).not.toBe(0);
  expect(opened.destroyed).toBe(false);
});

test('a stream that was ended and is kept open by its client is cut off', async () => {
  const stream = openDeltaStream(session());
  stream.resume();
  stream.write(framed(Buffer.from([0xff])));
  const ended = new Promise((resolve) => stream.once('trailers', resolve));
  expect(await ended).toMatchObject({ 'grpc-status': String(Status.INVALID_ARGUMENT) });
  const closed = new Promise((resolve) => stream.once('close', resolve));
  await served();
  expect(limited()).toEqual({});
  await expect.poll(() => later(5_000, limited)).toEqual({ end_time: 1 });
  await closed;
});

const long = 'x'.repeat(257);
test.each<[string, Uint8Array, string]>([
  [
    'id',
    field(1, long),
    'the node id is longer than 256 bytes; shorten it, or the names of the Pod and namespace in it',
  ],
  ['cluster', field(2, long), 'the cluster of the node is longer than 256 bytes; shorten it'],
  ['region', field(4, field(1, long)), 'the region of the node is longer than 256 bytes; shorten it'],
  ['sub-zone', field(4, field(3, long)), 'the sub-zone of the node is longer than 256 bytes; shorten it'],
  ['user agent', field(6, long), 'the user agent name of the node is longer than 256 bytes; shorten it'],
  ['version', field(7, long), 'the user agent version of the node is longer than 256 bytes; shorten it'],
  ['extension', field(9, field(1, long)), 'the name of an extension of the node is longer than 256 bytes; shorten it'],
  [
    'list of extensions',
    Buffer.concat(Array.from({ length: 1_001 }, (_, i) => field(9, field(1, `mine.${i}`)))),
    "the node has more than 1000 extensions that are not Envoy's own",
  ],
])('a node with a long %s is refused with a reason', async (_, bytes, details) => {
  const client = open();
  client.sendBytes(Buffer.concat([field(1, Buffer.concat([field(1, 'id'), bytes])), field(2, EDS)]));
  expect(await client.closed).toMatchObject({ code: Status.INVALID_ARGUMENT, details });
  expect(limited()).toEqual({ node_size: 1 });
  expect(mesh.peers).toEqual([]);
});

test('a node may say 256 bytes of everything', async () => {
  const client = open();
  const most = 'x'.repeat(256);
  const node = [field(1, most), field(2, most), field(4, field(2, most)), field(6, most), field(9, field(1, most))];
  client.sendBytes(Buffer.concat([field(1, Buffer.concat(node)), field(2, EDS), field(3, 'a')]));
  expect(bodiesOf(await client.next(EDS))).toEqual(['a@0']);
});

test.each<[string, Uint8Array, string]>([
  ['type URL', field(2, long), 'a type URL is longer than 256 bytes'],
  ['nonce', field(6, long), 'a nonce is longer than 256 bytes'],
  ['name', field(3, 'x'.repeat(4_097)), 'a name or version is longer than 4096 bytes'],
  [
    'version',
    field(5, Buffer.concat([field(1, 'a'), field(2, 'x'.repeat(4_097))])),
    'a name or version is longer than 4096 bytes',
  ],
])('a request with a long %s ends its stream with a reason', async (_, bytes, details) => {
  const client = open();
  client.sendBytes(firstRequest(bytes));
  expect(await client.closed).toMatchObject({ code: Status.INVALID_ARGUMENT, details });
});

test('one address has half of the streams that a replica takes', async () => {
  await start({ limits: { maxStreams: 6 } });
  const all = [await served(), await served(), await served()];
  expect(await open().closed).toMatchObject({
    code: Status.RESOURCE_EXHAUSTED,
    details: 'too many streams from 127.0.0.1',
  });
  expect(limited()).toEqual({ streams_of_address: 1 });
  all[0]!.close();
  await expect.poll(openStreams).toBe(2);
  await served();
});

test('of one address two thousand streams begin at once, and five hundred in each second after', async () => {
  let now = 0;
  await start({ now: () => now });
  const first = framed(firstRequest(field(3, 'a')));
  let answered = 0;
  for (let i = 0; i < 26; i++) {
    const opened = session();
    for (let j = 0; j < 100; j++) {
      const stream = openDeltaStream(opened);
      stream.once('data', () => answered++);
      stream.write(first);
    }
  }
  const state = (): object => ({ answered, waiting: mesh.server.counts().waitingToBegin });
  const patience = { timeout: 20_000 };
  await expect.poll(state, patience).toEqual({ answered: 2_000, waiting: 600 });
  now += 1_000;
  await expect.poll(state, patience).toEqual({ answered: 2_500, waiting: 100 });
  now += 1_000;
  await expect.poll(state, patience).toEqual({ answered: 2_600, waiting: 0 });
});

test('one address has half of the connections', async () => {
  await start({ limits: { maxStreams: 3 } });
  const opened = Array.from({ length: 3 }, () => session());
  await Promise.all(opened.map((each) => new Promise((resolve) => each.once('remoteSettings', resolve))));
  const refused = session();
  await new Promise((resolve) => refused.once('close', resolve));
  expect(limited()).toEqual({ connections: 1 });
  opened[0]!.destroy();
  await new Promise((resolve) => opened[0]!.once('close', resolve));
  await served();
});

test('a client is told that a connection has a hundred streams at most', async () => {
  const opened = session();
  await new Promise((resolve) => opened.once('remoteSettings', resolve));
  expect(opened.remoteSettings.maxConcurrentStreams).toBe(100);
});

test('a stream ends when it is old, a tenth more or less, and its client connects anew', async () => {
  await start({ limits: { maxAgeMs: 1_000_000 } });
  const opened = session();
  const goaway = new Promise((resolve) => opened.once('goaway', resolve));
  const stream = openDeltaStream(opened);
  stream.resume();
  const ended = new Promise((resolve) => stream.once('trailers', resolve));
  stream.write(framed(firstRequest(field(3, 'a'))));
  await expect.poll(openStreams).toBe(1);
  mesh.pass(899_000);
  await (await served()).settled(EDS, ['a']);
  expect(limited()).toEqual({});
  mesh.pass(201_000);
  expect(await ended).toMatchObject({ 'grpc-status': String(Status.UNAVAILABLE) });
  expect(await goaway).toBe(0);
  stream.end();
  await new Promise((resolve) => opened.once('close', resolve));
  await served();
  expect(limited()).toMatchObject({ age: 1 });
});

describe('a server that drains', () => {
  test('ends its streams one after the other, takes no more, and is done when all are gone', async () => {
    const all = [await served(), await served(), await served(), await served()];
    let over = false;
    const drained = mesh.server.drain(100_000).then(() => (over = true));
    expect(await open().closed).toMatchObject({
      code: Status.UNAVAILABLE,
      details: 'the server is shutting down',
    });
    expect(openStreams()).toBe(4);
    for (const [i, client] of all.entries()) {
      expect([openStreams(), over]).toEqual([4 - i, false]);
      mesh.pass(25_000);
      expect(await client.closed).toMatchObject({ code: Status.UNAVAILABLE });
    }
    await drained;
    expect(openStreams()).toBe(0);
  });

  test('is done at once when nobody is there, or the last one goes', async () => {
    await mesh.server.drain(100_000);
    await start();
    const client = await served();
    const drained = mesh.server.drain(100_000);
    client.close();
    await drained;
  });

  test('does not wait for clients that keep what has ended', async () => {
    const stream = openDeltaStream(session());
    stream.resume();
    stream.write(framed(firstRequest(field(3, 'a'))));
    await expect.poll(openStreams).toBe(1);
    const drained = mesh.server.drain(0);
    await new Promise((resolve) => stream.once('trailers', resolve));
    mesh.pass(1_000);
    await drained;
  });

  test('is done when it is closed', async () => {
    await served();
    const drained = mesh.server.drain(100_000);
    await mesh.stop();
    await drained;
  });
});
