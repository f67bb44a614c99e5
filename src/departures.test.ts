import { beforeEach, expect, test } from 'vitest';
import type { ConnectedProxy } from './ads/types.ts';
import { Graph } from './cache/graph.ts';
import { Departures, LINGER_MS } from './departures.ts';
import { FakeClock } from './kube/testing/fake-clock.ts';

let clock: FakeClock;
let departures: Departures;
let streams: () => string[];
let stop: AbortController;

beforeEach(() => {
  clock = new FakeClock();
  stop = new AbortController();
  const graph = new Graph();
  const proxies = graph.input<ConnectedProxy>('proxies');
  streams = () => [...proxies.entries()].map(([stream]) => stream);
  departures = new Departures(proxies, (write) => graph.commit([write]), clock, { signal: stop.signal });
});

const connect = (stream: string, nodeId: string, metadata = {}): void =>
  departures.connected({ stream, nodeId, metadata } as unknown as ConnectedProxy);

test('a proxy that is gone is computed for until it has been gone long enough', async () => {
  connect('1', 'a');
  connect('2', 'b');
  departures.disconnected({ stream: '1', nodeId: 'a' });
  await clock.advance(LINGER_MS / 2);
  departures.disconnected({ stream: '2', nodeId: 'b' });
  expect(streams()).toEqual(['1', '2']);
  await clock.advance(LINGER_MS / 2);
  expect(streams()).toEqual(['2']);
  await clock.advance(LINGER_MS / 2);
  expect(streams()).toEqual([]);
});

test('a proxy that is back takes the place of what it was', async () => {
  connect('1', 'a');
  departures.disconnected({ stream: '1', nodeId: 'a' });
  connect('2', 'a');
  expect(streams()).toEqual(['2']);
  await clock.advance(2 * LINGER_MS);
  expect(streams()).toEqual(['2']);
});

test('a proxy that is back before its former stream is gone has both for as long', async () => {
  connect('1', 'a');
  connect('2', 'a');
  departures.disconnected({ stream: '1', nodeId: 'a' });
  departures.disconnected({ stream: '2', nodeId: 'a' });
  expect(streams()).toEqual(['2']);
  await clock.advance(LINGER_MS);
  expect(streams()).toEqual([]);
});

test('clients that come and go under ever new names do not add up', () => {
  const metadata = { text: 'x'.repeat(1024 * 1024) };
  for (let i = 0; i < 100; i++) {
    connect(`${i}`, `node-${i}`, metadata);
    departures.disconnected({ stream: `${i}`, nodeId: `node-${i}` });
  }
  expect(streams()).toHaveLength(63);
  expect(streams().at(-1)).toBe('99');
});

test('a proxy that goes at the end leaves no timer behind', () => {
  connect('1', 'a');
  stop.abort();
  departures.disconnected({ stream: '1', nodeId: 'a' });
  expect(clock.pending).toBe(0);
});

test('nothing happens after the end', async () => {
  connect('1', 'a');
  departures.disconnected({ stream: '1', nodeId: 'a' });
  stop.abort();
  await clock.advance(LINGER_MS);
  expect(streams()).toEqual(['1']);
});
