import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import type { ConnectedProxy } from '../ads/types.ts';
import { Graph } from '../cache/graph.ts';
import { Departures, LINGER_MS } from './departures.ts';
import { FakeClock } from '../testing/fake-clock.ts';

let clock: FakeClock;
let departures: Departures;
let streams: () => string[];
let stop: AbortController;
let forgotten: string[];

beforeEach(() => {
  clock = new FakeClock();
  stop = new AbortController();
  const graph = new Graph();
  const proxies = graph.input<ConnectedProxy>('proxies');
  streams = () => [...proxies.entries()].map(([stream]) => stream);
  departures = new Departures(proxies, (write) => graph.commit([write]), clock, {
    signal: stop.signal,
    forgotten: (stream) => {
      forgotten.push(stream);
      graph.commit([proxies.write(stream, undefined)]);
    },
    peerOf: (stream) => stream.split('@')[1],
  });
  forgotten = [];
});

const connect = (stream: string, nodeId: string, metadata = {}): void =>
  departures.connected({ stream, nodeId, metadata } as unknown as ConnectedProxy);

test('a proxy that is gone is computed for until it has been gone long enough', async () => {
  connect('1', 'a');
  connect('2', 'b');
  departures.disconnected({ stream: '1', nodeId: 'a', acknowledged: true });
  await clock.advance(LINGER_MS / 2);
  departures.disconnected({ stream: '2', nodeId: 'b', acknowledged: true });
  expect(streams()).toEqual(['1', '2']);
  await clock.advance(LINGER_MS / 2);
  expect(streams()).toEqual(['2']);
  await clock.advance(LINGER_MS / 2);
  expect(streams()).toEqual([]);
});

test('a proxy that is back takes the place of what it was', async () => {
  connect('1', 'a');
  departures.disconnected({ stream: '1', nodeId: 'a', acknowledged: true });
  connect('2', 'a');
  expect(streams()).toEqual(['2']);
  await clock.advance(2 * LINGER_MS);
  expect(streams()).toEqual(['2']);
});

test('a proxy that is back before its former stream is gone has both for as long', async () => {
  connect('1', 'a');
  connect('2', 'a');
  departures.disconnected({ stream: '1', nodeId: 'a', acknowledged: true });
  departures.disconnected({ stream: '2', nodeId: 'a', acknowledged: true });
  expect(streams()).toEqual(['2']);
  await clock.advance(LINGER_MS);
  expect(streams()).toEqual([]);
});

test('clients that come and go under ever new names do not add up', () => {
  const metadata = { text: 'x'.repeat(1024 * 1024) };
  for (let i = 0; i < 100; i++) {
    connect(`${i}`, `node-${i}`, metadata);
    departures.disconnected({ stream: `${i}`, nodeId: `node-${i}`, acknowledged: true });
  }
  expect(streams()).toHaveLength(63);
  expect(streams().at(-1)).toBe('99');
});

test('a proxy that goes at the end leaves no timer behind', () => {
  connect('1', 'a');
  stop.abort();
  departures.disconnected({ stream: '1', nodeId: 'a', acknowledged: true });
  expect(clock.pending).toBe(0);
});

test('one that never took anything is not waited for', () => {
  connect('1', 'a');
  departures.disconnected({ stream: '1', nodeId: 'a', acknowledged: false });
  expect(streams()).toEqual([]);
  expect(forgotten).toEqual(['1']);
});

const comeAndGo = (stream: string): void => {
  connect(stream, `node-${stream}`);
  departures.disconnected({ stream, nodeId: `node-${stream}`, acknowledged: true });
};

test('those of an address make room for others of it, or all for all', () => {
  for (const stream of ['1@a', '2@b', '3@a', '4']) comeAndGo(stream);
  departures.giveUp('a');
  expect(streams()).toEqual(['2@b', '4']);
  expect(forgotten).toEqual(['1@a', '3@a']);
  departures.giveUp('a');
  departures.giveUp(undefined);
  expect(streams()).toEqual([]);
});

test('a proxy that is back does not go with the others of its address', () => {
  comeAndGo('1@a');
  connect('2@a', 'node-1@a');
  departures.giveUp('a');
  expect(streams()).toEqual(['2@a']);
});

test('to give up those of one address looks at no others', () => {
  for (let i = 0; i < 1_000; i++) comeAndGo(`${i}@a`);
  const walks = ([Symbol.iterator, 'entries', 'keys', 'values'] as const).map((each) => vi.spyOn(Map.prototype, each));
  onTestFinished(() => void vi.restoreAllMocks());
  for (let i = 0; i < 100; i++) departures.giveUp('b');
  expect(walks.flatMap((walk) => walk.mock.calls)).toEqual([]);
});

test('nothing happens after the end', async () => {
  connect('1', 'a');
  departures.disconnected({ stream: '1', nodeId: 'a', acknowledged: true });
  stop.abort();
  await clock.advance(LINGER_MS);
  expect(streams()).toEqual(['1']);
});
