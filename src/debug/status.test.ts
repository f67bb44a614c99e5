import { expect, test } from 'vitest';
import type { Recipient } from '../ads/rollouts/recipient.ts';
import { Concern } from '../ads/rollouts/rollout.ts';
import { Rollouts } from '../ads/rollouts/rollouts.ts';
import type { StreamState } from '../ads/transport/stats.ts';
import type { Tracked } from '../engine/progress.ts';
import { FakeClock } from '../testing/fake-clock.ts';
import type { StatusReport } from './status-report.ts';
import { statusJson } from './status.ts';

const recipient = (i: number): Recipient => ({
  ...{ stream: `stream-${i}`, nodeId: `sidecar~10.0.0.1~p${i}.shop~x`, build: 'envoy 1.40.0', tenant: '' },
});

const stream = (i: number): StreamState => ({ ...recipient(i), address: '10.0.0.1', openMs: 5_000, types: [] });

/** All of these objects wait for all of these proxies. */
function lab(objects: number, proxies: number) {
  const clock = new FakeClock();
  const rollouts = new Rollouts({ after: () => {}, settled: () => {}, changed: () => {} });
  const keys = Array.from({ length: objects }, (_, i) => `g/Sidecar/Kubernetes/shop/s${i}`);
  for (const key of keys) {
    const concern = new Concern('type', new Map([['name', [rollouts.begin(key)]]]));
    for (let i = 0; i < proxies; i++) concern.begin(recipient(i));
  }
  const tracked = (key: string, i: number): Tracked => ({
    ...{ key, since: clock.now() - 9_000, isDeleted: false, version: '1' },
    object: { kind: 'Sidecar', namespace: 'shop', name: `s${i}`, uid: 'u', generation: 1 },
    progress: { state: 'underway', proxies: 0, waiting: [] },
    isAcknowledged: false,
    isRecalled: false,
    rejected: undefined,
  });
  const engine = {
    ads: { streams: () => Array.from({ length: proxies }, (_, i) => stream(i)) },
    progress: { rollouts, unfollowed: 3, unfinished: () => keys.map(tracked).values() },
    mesh: { verdicts: { get: () => undefined } },
    servingSince: () => undefined,
  };
  return (asked?: string): string[] => [
    ...statusJson({ engine, replica: 'a', version: '1', clock, held: () => [] }, asked),
  ];
}

const read = (pieces: readonly string[]): StatusReport => JSON.parse(pieces.join('')) as StatusReport;

test('lists are bounded, and everything is counted', () => {
  const { objects, proxies, unfollowed } = read(lab(30, 50)());
  expect([objects.length, proxies.length, unfollowed]).toEqual([30, 50, 3]);
  for (const { waiting, waitingCount } of objects) expect([waiting.length, waitingCount]).toEqual([20, 50]);
  for (const { waitedForBy, waitedForByCount } of proxies)
    expect([waitedForBy.length, waitedForByCount]).toEqual([20, 30]);
});

test('the proxy that is asked for is listed, although it is one of many', () => {
  const ask = lab(2, 50);
  for (const asked of ['p45.shop', recipient(45).nodeId])
    expect(read(ask(asked))).toMatchObject({
      objects: Array<unknown>(2).fill({ waiting: [{ proxy: 'p45.shop', stream: 'stream-45' }], waitingCount: 50 }),
      proxies: [{ proxy: 'p45.shop', waitedForByCount: 2 }],
    });
  expect(read(ask('p4'))).toMatchObject({ objects: [], proxies: [] });
});

test('a proxy that came after an object is waited for since it came', () => {
  const { at, objects, proxies } = read(lab(1, 1)());
  const ago = (ms: number): string => new Date(Date.parse(at) - ms).toISOString();
  expect(objects).toMatchObject([{ since: ago(9_000), waiting: [{ since: ago(5_000) }] }]);
  expect(proxies).toMatchObject([{ synced: false, behindSince: ago(5_000), connectedSince: ago(5_000) }]);
});

test('there is a piece for each object, also for those that are left out', () => {
  expect(lab(500, 1)('nobody').length).toBeGreaterThan(500);
});
