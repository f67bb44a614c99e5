import { connect } from 'node:http2';
import { status as Status } from '@grpc/grpc-js';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { bytesInUse } from '../../src/testing/memory.ts';
import { field, framed, openDeltaStream } from '../harness/raw-ads.ts';
import { bodiesOf, NODE } from './script.ts';
import { CDS, EDS, RDS, ServedMesh } from './served-mesh.ts';
import { type Response, XdsClient } from './xds-client.ts';

/** Clients that are broken, greedy or slow: their streams end or are bounded, and the others do not notice. */

let mesh: ServedMesh;
let good: XdsClient;
const bad: XdsClient[] = [];

beforeEach(async () => {
  mesh = await ServedMesh.start({ tickMs: 10 });
  mesh.publish({ [EDS]: { a: '0' } });
  good = new XdsClient(mesh.server.port!, true);
  good.send({ typeUrl: EDS, node: NODE, subscribe: ['a'] });
  await take(good, EDS);
});

afterEach(async () => {
  good.close();
  for (const client of bad.splice(0)) client.close();
  await mesh.stop();
});

async function take(client: XdsClient, typeUrl: string): Promise<Response> {
  const response = await client.next(typeUrl);
  client.send({ typeUrl, nonce: response.nonce });
  return response;
}

async function expectOthersServed(content: string): Promise<void> {
  mesh.publish({ [EDS]: { a: content } });
  expect(bodiesOf(await take(good, EDS))).toEqual([`a@${content}`]);
  expect(mesh.server.counts().failures).toBe(0);
}

function open(delta = true): XdsClient {
  const client = new XdsClient(mesh.server.port!, delta);
  bad.push(client);
  return client;
}

const nodeField = (...fields: Uint8Array[]): Uint8Array => field(1, field(1, 'id'), ...fields);

function nestedStruct(depth: number): Uint8Array {
  let struct: Uint8Array = new Uint8Array();
  for (let i = 0; i < depth; i++) struct = field(1, field(1, 'k'), field(2, field(5, struct)));
  return struct;
}

test.each([
  ['is not a message', Buffer.from('not a message at all'), Status.INVALID_ARGUMENT],
  ['is cut off', Buffer.from([0x12, 0x7f, 0x01]), Status.INVALID_ARGUMENT],
  [
    'has a length beyond all bounds',
    Buffer.from([0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]),
    Status.INVALID_ARGUMENT,
  ],
  ['has a number without an end', Buffer.alloc(20, 0xff), Status.INVALID_ARGUMENT],
  ['has a field of the wrong kind', Buffer.from([0x08, 0x01]), Status.INVALID_ARGUMENT],
  ['has no node', field(2, EDS), Status.INVALID_ARGUMENT],
  ['has a node without an id', field(1, field(2, 'cluster')), Status.INVALID_ARGUMENT],
  ['nests the metadata deeply', nodeField(field(3, nestedStruct(500))), Status.INVALID_ARGUMENT],
  [
    'has a node that would fill the memory',
    Buffer.concat([nodeField(field(2, 'x'.repeat(2 << 20))), field(2, EDS)]),
    Status.RESOURCE_EXHAUSTED,
  ],
  [
    'names something that is not text',
    Buffer.concat([nodeField(), field(2, EDS), field(3, Buffer.from([0x61, 0xff, 0xfe]))]),
    Status.INVALID_ARGUMENT,
  ],
  [
    'names too much',
    Buffer.concat([nodeField(), field(2, EDS), ...Array.from({ length: 65_537 }, (_, i) => field(3, `n${i}`))]),
    Status.RESOURCE_EXHAUSTED,
  ],
  [
    'is longer than a message may be',
    Buffer.concat([nodeField(), field(2, EDS), field(3, 'x'.repeat(17 << 20))]),
    Status.RESOURCE_EXHAUSTED,
  ],
])('a first request that %s ends its stream', async (_, bytes, code) => {
  const client = open();
  client.sendBytes(bytes);
  expect(await client.closed).toMatchObject({ code });
  await expectOthersServed('1');
});

test('a later request that is not a message ends its stream', async () => {
  const client = open(false);
  client.send({ typeUrl: CDS, node: NODE });
  await client.next(CDS);
  client.sendBytes(Buffer.from([0xff]));
  expect(await client.closed).toMatchObject({ code: Status.INVALID_ARGUMENT });
  await expectOthersServed('1');
  expect(mesh.ended).toHaveLength(1);
});

test('names that grow request by request are bounded', async () => {
  const client = open();
  client.send({ typeUrl: EDS, node: NODE, subscribe: ['a'] });
  await take(client, EDS);
  for (let i = 0; i < 3; i++) {
    client.send({ typeUrl: EDS, subscribe: Array.from({ length: 100_000 }, (_, n) => `${i}-${n}`) });
  }
  expect(await client.closed).toMatchObject({ code: Status.RESOURCE_EXHAUSTED });
  await expectOthersServed('1');
});

test('streams are refused until there is something to serve, and taken then', async () => {
  mesh.ready = false;
  expect(await open().closed).toMatchObject({ code: Status.UNAVAILABLE });
  mesh.ready = true;
  const client = open();
  client.send({ typeUrl: EDS, node: NODE, subscribe: ['a'] });
  expect(bodiesOf(await client.next(EDS))).toEqual(['a@0']);
});

test('a client that half-closes gets its end', async () => {
  const client = open();
  client.send({ typeUrl: EDS, node: NODE, subscribe: ['a'] });
  await take(client, EDS);
  client.end();
  expect(await client.closed).toBeUndefined();
  await expect.poll(() => mesh.ended.length).toBe(1);
});

test('a client that stops reading costs one response, and holds nobody up', async () => {
  const session = connect(`http://127.0.0.1:${mesh.server.port}`, { settings: { initialWindowSize: 1024 } });
  const stream = openDeltaStream(session);
  stream.pause();
  const request = Buffer.concat([nodeField(), field(2, RDS), field(3, 'big')]);
  const megabyte = (fill: number): Uint8Array => Buffer.concat([Buffer.from('big@'), Buffer.alloc(1 << 20, fill)]);
  mesh.publish({ [RDS]: { big: megabyte(0) } });
  stream.write(framed(request));
  await expect.poll(() => mesh.server.counts().pushes['rds']).toBe(1);
  const before = bytesInUse('arrayBuffers');
  for (let i = 1; i <= 100; i++) {
    mesh.publish({ [RDS]: { big: megabyte(i) } });
    await expectOthersServed(String(i));
  }
  expect(mesh.server.counts()).toMatchObject({ pushes: { rds: 1 }, pendingStreams: 1, waitingForPlace: 0 });
  expect(bytesInUse('arrayBuffers') - before).toBeLessThan(60 << 20);
  session.destroy();
  await expect.poll(() => mesh.server.counts().streams).toBe(1);
});

test('clients that stop reading do not keep others from their first configuration', async () => {
  mesh.publish({ [RDS]: { big: Buffer.concat([Buffer.from('big@'), Buffer.alloc(1 << 20, 1)]) } });
  const request = Buffer.concat([nodeField(), field(2, RDS), field(3, 'big')]);
  const sessions = Array.from({ length: 40 }, () => {
    const session = connect(`http://127.0.0.1:${mesh.server.port}`, { settings: { initialWindowSize: 1024 } });
    const stream = openDeltaStream(session);
    stream.pause();
    stream.write(framed(request));
    return session;
  });
  await expect.poll(() => mesh.server.counts().waitingForPlace, { timeout: 5_000 }).toBeGreaterThan(0);
  const client = open();
  client.send({ typeUrl: RDS, node: NODE, subscribe: ['big'] });
  expect((await client.next(RDS)).bytes).toBeGreaterThan(1 << 20);
  for (const session of sessions) session.destroy();
  await expect.poll(() => mesh.server.counts()).toMatchObject({ streams: 2, waitingForPlace: 0 });
});

test('streams end when the server does', async () => {
  const client = open();
  client.send({ typeUrl: EDS, node: NODE, subscribe: ['a'] });
  await take(client, EDS);
  await mesh.stop();
  expect(await client.closed).toMatchObject({ code: Status.UNAVAILABLE });
});

test('a stream on which nothing is asked for ends', async () => {
  const stream = open();
  await expect.poll(() => mesh.server.counts().streams).toBe(2);
  mesh.pass(50_000);
  await expectOthersServed('1');
  const passing = (): number => {
    mesh.pass(5_000);
    return mesh.server.counts().streams;
  };
  await expect.poll(passing).toBe(1);
  expect(await stream.closed).toMatchObject({ code: Status.DEADLINE_EXCEEDED });
  await expectOthersServed('2');
});
