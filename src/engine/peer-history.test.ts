import { expect, test } from 'vitest';
import { Graph } from '../cache/graph.ts';
import type { KubernetesObject } from '../api/object.ts';
import { declareInputs } from '../mesh/inputs.ts';
import { FakeClock } from '../testing/fake-clock.ts';
import { FORMER_MS, PeerHistory } from './peer-history.ts';

const { formerPeersOfClients: clients, formerPeersOfServers: servers } = FORMER_MS;
const key = 'Kubernetes/shop/p';
const version = (mode: string, annotations = {}): KubernetesObject =>
  ({
    metadata: { name: 'p', namespace: 'shop', annotations },
    spec: { mtls: { mode } },
  }) as unknown as KubernetesObject;

function lab(isServing = true) {
  const graph = new Graph();
  const inputs = declareInputs(graph);
  const clock = new FakeClock();
  const stop = new AbortController();
  const options = { inputs, write: (write: Parameters<Graph['commit']>[0][0]) => graph.commit([write]), clock };
  const serving = { now: isServing };
  const history = new PeerHistory({ ...options, isServing: () => serving.now, signal: stop.signal });
  /** The mode that clients and servers still go by: `-` none, undefined if it is the newest. */
  const former = () =>
    [inputs.formerPeersOfClients, inputs.formerPeersOfServers].map((input) => {
      const found = input.get(key) as { object?: { spec: { mtls: { mode: string } } } } | undefined;
      return found && (found.object?.spec.mtls.mode ?? '-');
    });
  return { history, clock, former, serving, stop };
}

test('a former version counts for clients, then only for servers, then not at all', async () => {
  const { history, clock, former, serving } = lab(false);
  history.changed(key, version('STRICT'));
  expect(former()).toEqual([undefined, undefined]);
  serving.now = true;
  history.changed(key, version('DISABLE'));
  expect(former()).toEqual(['STRICT', 'STRICT']);
  await clock.advance(clients);
  expect(former()).toEqual([undefined, 'STRICT']);
  await clock.advance(servers - clients);
  expect(former()).toEqual([undefined, undefined]);
  expect(clock.pending).toBe(0);
});

test('so does that there was none, and one that is deleted', async () => {
  const { history, clock, former } = lab();
  history.changed(key, version('DISABLE'));
  expect(former()).toEqual(['-', '-']);
  await clock.advance(servers);
  history.changed(key, undefined);
  expect(former()).toEqual(['DISABLE', 'DISABLE']);
  await clock.advance(servers);
  expect(former()).toEqual([undefined, undefined]);
});

test('each of several versions counts in its turn', async () => {
  const { history, clock, former } = lab();
  history.changed(key, version('STRICT'));
  await clock.advance(servers);
  history.changed(key, version('DISABLE'));
  await clock.advance(clients - 1);
  history.changed(key, version('PERMISSIVE'));
  expect(former()).toEqual(['STRICT', 'STRICT']);
  await clock.advance(1);
  expect(former()).toEqual(['DISABLE', 'STRICT']);
  await clock.advance(clients);
  expect(former()).toEqual([undefined, 'STRICT']);
  await clock.advance(servers);
  expect(former()).toEqual([undefined, undefined]);
});

test('of large changes, only the newest are kept', async () => {
  const { history, clock, former } = lab();
  const large = (i: number): KubernetesObject =>
    ({
      ...version('STRICT'),
      spec: { mtls: { mode: 'STRICT' }, selector: { matchLabels: { app: `${i}`.padStart(1024 * 1024) } } },
    }) as unknown as KubernetesObject;
  history.changed(key, version('STRICT'));
  for (let i = 0; i < 15; i++) history.changed('Kubernetes/shop/large', large(i));
  expect(former()).toEqual(['-', '-']);
  history.changed('Kubernetes/shop/large', large(15));
  expect(former()).toEqual([undefined, undefined]);
  await clock.advance(servers);
  history.changed(key, version('DISABLE'));
  expect(former()).toEqual(['STRICT', 'STRICT']);
  await clock.advance(servers);
  expect(clock.pending).toBe(0);
});

test('of ten thousand changes, the oldest count at once', async () => {
  const { history, clock, former } = lab();
  history.changed(key, version('STRICT'));
  for (let i = 0; i < 10_000; i++) history.changed(`Kubernetes/shop/${i}`, version('STRICT'));
  expect(former()).toEqual([undefined, undefined]);
  await clock.advance(servers);
  expect(clock.pending).toBe(0);
});

test('an annotation changes nothing, and nothing happens after the end', () => {
  const { history, clock, former, stop } = lab();
  history.changed(key, version('STRICT'));
  stop.abort();
  expect(clock.pending).toBe(0);
  const other = lab(false);
  other.history.changed(key, version('STRICT'));
  other.serving.now = true;
  other.history.changed(key, version('STRICT', { a: 'b' }));
  expect(other.former()).toEqual([undefined, undefined]);
  expect(former()).toEqual(['-', '-']);
});
