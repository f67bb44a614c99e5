import { beforeEach, expect, test } from 'vitest';
import type { ConnectedProxy } from './ads/types.ts';
import { Graph } from './cache/graph.ts';
import { Departures, LINGER_MS } from './departures.ts';
import { FakeClock } from './kube/testing/fake-clock.ts';

let clock: FakeClock;
let departures: Departures;
let streams: Set<string>;
let stop: AbortController;

beforeEach(() => {
  clock = new FakeClock();
  streams = new Set();
  stop = new AbortController();
  const proxies = new Graph().input<ConnectedProxy>('proxies');
  departures = new Departures(
    proxies,
    ({ key, value }) => (value === undefined ? streams.delete(key) : streams.add(key)),
    clock,
    { signal: stop.signal },
  );
});

const connect = (stream: string, nodeId: string): void =>
  departures.connected({ stream, nodeId } as unknown as ConnectedProxy);

test('a proxy that is gone is computed for until it has been gone long enough', async () => {
  connect('1', 'a');
  connect('2', 'b');
  departures.disconnected({ stream: '1', nodeId: 'a' });
  await clock.advance(LINGER_MS / 2);
  departures.disconnected({ stream: '2', nodeId: 'b' });
  expect([...streams]).toEqual(['1', '2']);
  await clock.advance(LINGER_MS / 2);
  expect([...streams]).toEqual(['2']);
  await clock.advance(LINGER_MS / 2);
  expect([...streams]).toEqual([]);
});

test('a proxy that is back takes the place of what it was', async () => {
  connect('1', 'a');
  departures.disconnected({ stream: '1', nodeId: 'a' });
  connect('2', 'a');
  expect([...streams]).toEqual(['2']);
  await clock.advance(2 * LINGER_MS);
  expect([...streams]).toEqual(['2']);
});

test('a proxy that is back before its former stream is gone has both for as long', async () => {
  connect('1', 'a');
  connect('2', 'a');
  departures.disconnected({ stream: '1', nodeId: 'a' });
  departures.disconnected({ stream: '2', nodeId: 'a' });
  expect([...streams]).toEqual(['2']);
  await clock.advance(LINGER_MS);
  expect([...streams]).toEqual([]);
});

test('clients that come and go under ever new names do not add up', () => {
  for (let i = 0; i < 20_000; i++) {
    connect(`${i}`, `node-${i}`);
    departures.disconnected({ stream: `${i}`, nodeId: `node-${i}` });
  }
  expect(streams.size).toBe(10_000);
  expect(streams.has('19999')).toBe(true);
});

test('nothing happens after the end', async () => {
  connect('1', 'a');
  departures.disconnected({ stream: '1', nodeId: 'a' });
  stop.abort();
  await clock.advance(LINGER_MS);
  expect([...streams]).toEqual(['1']);
});
