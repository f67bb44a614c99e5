import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Delivery } from '../../src/ads/protocol/delivery.ts';
import { Move } from '../../src/ads/store/move.ts';
import type { World } from '../../src/ads/store/publication.ts';
import { field, framed, nodeField, openDeltaStream } from '../harness/raw-ads.ts';
import { bodiesOf, NODE } from './script.ts';
import { CDS, LDS, RDS, ServedMesh } from './served-mesh.ts';
import { XdsClient } from './xds-client.ts';

/** What a publication does at once, and what it leaves to the turns of the streams. */

let mesh: ServedMesh;
let clients: XdsClient[];
/** Streams that wait for their world. */
let waiting: string[];

beforeEach(async () => {
  waiting = [];
  clients = [];
  mesh = await ServedMesh.start({
    events: { connected: ({ stream }) => waiting.push(stream), disconnected: () => {}, rejected: () => {} },
  });
});

afterEach(async () => {
  vi.restoreAllMocks();
  for (const client of clients) client.close();
  await mesh.stop();
});

async function connect(count: number): Promise<string[]> {
  const from = waiting.length;
  for (let i = 0; i < count; i++) {
    const client = new XdsClient(mesh.server.port!, true);
    clients.push(client);
    client.send({ typeUrl: CDS, node: NODE });
  }
  await vi.waitFor(() => expect(waiting.length).toBe(from + count), { timeout: 50_000 });
  return waiting.slice(from);
}

function apply(streams: readonly string[], world: World): void {
  mesh.server.apply({ members: [], lists: [], worlds: streams.map((stream) => ({ stream, world })) });
}

const ONE: World = { roots: ['one'], qualifiers: [] };
const TWO: World = { roots: ['two'], qualifiers: [] };

test('a publication neither answers requests nor compares worlds', async () => {
  mesh.publish({ [CDS]: { a: '1' } }, 'one');
  mesh.publish({ [CDS]: { a: '2' } }, 'two');
  const streams = await connect(5);
  const spies = [vi.spyOn(Delivery.prototype, 'request'), vi.spyOn(Move.prototype, 'of')];
  const calls = (): number[] => spies.map((spy) => spy.mock.calls.length);
  apply(streams, ONE);
  expect(calls()).toEqual([0, 0]);
  for (const client of clients) {
    const response = await client.next(CDS);
    expect(bodiesOf(response)).toEqual(['a@1']);
    client.send({ typeUrl: CDS, nonce: response.nonce });
    await client.settled(RDS);
  }
  apply(streams, TWO);
  expect(calls()).toEqual([expect.anything(), 0]);
  for (const client of clients) expect(bodiesOf(await client.next(CDS))).toEqual(['a@2']);
});

test('a request that comes before the turn of a stream that moves is answered from the new world', async () => {
  mesh.publish({ [CDS]: { a: '1' } }, 'one');
  mesh.publish({ [CDS]: { a: '2' } }, 'two');
  const streams = await connect(1);
  apply(streams, ONE);
  const [client] = clients;
  const { nonce } = await client!.next(CDS);
  client!.send({ typeUrl: CDS, nonce });
  client!.send({ typeUrl: RDS, subscribe: ['t'] });
  apply(streams, TWO);
  mesh.publish({ [RDS]: { t: '2' } }, 'two');
  expect(bodiesOf(await client!.next(CDS))).toEqual(['a@2']);
  expect(bodiesOf(await client!.next(RDS))).toEqual(['t@2']);
});

test('time passes for one stream after the other, so that one with much to look at holds nobody up', async () => {
  apply(await connect(4), ONE);
  for (const client of clients) await client.next(CDS);
  let round = 0;
  const rounds: number[] = [];
  vi.spyOn(Delivery.prototype, 'tick').mockImplementation(() => {
    rounds.push(round);
    mesh.pass(20);
  });
  while (rounds.length < clients.length) {
    await new Promise((resolve) => setImmediate(resolve));
    round++;
  }
  expect(new Set(rounds).size).toBe(rounds.length);
});

test('short requests that take long are handled turn by turn, although they came together', async () => {
  const session = connectHttp2(`http://127.0.0.1:${mesh.server.port}`);
  const stream = openDeltaStream(session);
  stream.write(framed(Buffer.concat([nodeField('id'), field(2, CDS)])));
  await vi.waitFor(() => expect(waiting).toHaveLength(1));
  apply(waiting, ONE);
  await once(stream, 'data');
  let round = 0;
  const rounds: number[] = [];
  vi.spyOn(Delivery.prototype, 'request').mockImplementation(() => {
    rounds.push(round);
    mesh.pass(20);
  });
  stream.write(Buffer.concat(Array.from({ length: 8 }, () => framed(field(2, CDS)))));
  while (rounds.length < 8) {
    await new Promise((resolve) => setImmediate(resolve));
    round++;
  }
  expect(new Set(rounds).size).toBe(rounds.length);
  session.destroy();
});

test('a world that throws ends its own stream, and gives back every place', async () => {
  mesh.publish({ [CDS]: { a: '1' } }, 'one');
  const broken: World = {
    ...ONE,
    get qualifiers(): readonly string[] {
      throw new Error('broken');
    },
  };
  // Nearly as many as one address has places for streams that wait for their first world.
  const streams = await connect(120);
  const [whole, ...rest] = streams;
  mesh.server.apply({
    members: [],
    lists: [],
    worlds: [...rest.map((stream) => ({ stream, world: broken })), { stream: whole!, world: ONE }],
  });
  expect(bodiesOf(await clients[0]!.next(CDS))).toEqual(['a@1']);
  for (const client of clients.slice(1)) expect(await client.closed).toMatchObject({ details: 'internal error' });
  expect(mesh.server.counts()).toMatchObject({ failures: 119, streams: 1, waitingForWorld: 0, worlds: 1 });
  for (let i = 0; i < 2; i++) apply(await connect(20), ONE);
  expect(bodiesOf(await clients.at(-1)!.next(CDS))).toEqual(['a@1']);
}, 60_000);

test('a stream that owes everything, and waits for an answer first, has one turn meanwhile whenever time passes', async () => {
  mesh.publish({ [LDS]: { a: '1' } }, 'one');
  const client = new XdsClient(mesh.server.port!, false);
  clients.push(client);
  client.send({ typeUrl: LDS, node: NODE });
  await vi.waitFor(() => expect(waiting).toHaveLength(1));
  apply(waiting, ONE);
  await client.next(LDS);
  const next = vi.spyOn(Delivery.prototype, 'next');
  // What is not answered may not be followed; but everything is asked for once more.
  client.send({ typeUrl: LDS, names: ['a'] });
  client.send({ typeUrl: LDS, names: ['*'] });
  await client.settled(RDS);
  next.mockClear();
  for (let i = 0; i < 100; i++) await new Promise((resolve) => setImmediate(resolve));
  expect(next.mock.calls.length).toBeLessThan(10);
  next.mockClear();
  const tick = vi.spyOn(Delivery.prototype, 'tick');
  await vi.waitFor(() => expect(tick).toHaveBeenCalled(), { timeout: 50_000 });
  expect(next.mock.calls.length).toBeLessThanOrEqual(tick.mock.calls.length);
});
