import { beforeEach, describe, expect, test } from 'vitest';
import { WHOLE } from '../../api/place.ts';
import { errorOfAnswer } from '../client/api-error.ts';
import type { DesiredCondition } from './conditions.ts';
import { EventRecorder, type EventRecorderOptions } from './event-recorder.ts';
import type { Json } from '../../api/json.ts';
import { Outages } from '../client/outages.ts';
import type { DesiredStatus } from './status-change.ts';
import { FakeClock } from '../../testing/fake-clock.ts';
import { FakeCluster } from '../testing/fake-cluster.ts';
import { RecordingLog } from '../testing/recording-log.ts';

const path = '/apis/events.k8s.io/v1/events';

let clock: FakeClock;
let cluster: FakeCluster;
let log: RecordingLog;
let ending: AbortController;
let recorder: EventRecorder;

function recorderOf(options: Partial<EventRecorderOptions> = {}): EventRecorder {
  const outages = new Outages({ log, clock });
  return new EventRecorder({
    api: cluster,
    identity: 'ns/one',
    clock,
    random: () => 0.5,
    log,
    outages,
    signal: ending.signal,
    ...options,
  });
}

beforeEach(() => {
  clock = new FakeClock();
  cluster = new FakeCluster().install(path, 'Event');
  log = new RecordingLog();
  ending = new AbortController();
  recorder = recorderOf();
});

function condition(more: Partial<DesiredCondition> = {}): DesiredCondition {
  const invalid = { type: 'Accepted', status: 'False', reason: 'Invalid', observedGeneration: 1 } as const;
  return { ...invalid, message: 'spec.hosts: is missing', ...more };
}

function status(accepted: Partial<DesiredCondition> = {}, more: Partial<DesiredStatus> = {}): DesiredStatus {
  const at = { kind: 'VirtualService', namespace: 'shop', name: 'reviews', uid: 'u1', generation: 1 } as const;
  return { ...at, said: [{ place: WHOLE, conditions: [condition(accepted)] }], ...more };
}

/** How often an Event was sent since the last call. */
async function count(ms = 1_000): Promise<number> {
  await clock.advance(ms);
  return cluster.requests.splice(0).filter(({ method }) => method === 'POST').length;
}

async function posted(): Promise<Json[]> {
  await clock.advance(1_000);
  return cluster.objects(path);
}

test('an object that is not accepted has an Event that says why', async () => {
  recorder.written(status(), {});
  const events = await posted();
  expect(events).toHaveLength(1);
  expect(events[0]).toMatchObject({
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { name: expect.stringMatching(/^reviews\.[0-9a-f]{16}$/) as string, namespace: 'shop' },
    eventTime: '2030-01-01T00:00:00.000000Z',
    type: 'Warning',
    reason: 'Invalid',
    action: 'Reconcile',
    note: 'spec.hosts: is missing',
    regarding: {
      apiVersion: 'networking.istio.io/v1',
      kind: 'VirtualService',
      namespace: 'shop',
      name: 'reviews',
      uid: 'u1',
    },
    reportingController: 'fairlead',
    reportingInstance: 'ns/one',
  });
});

describe('there is one Event', () => {
  test('for an object, generation and reason, also when it comes and goes', async () => {
    recorder.written(status(), {});
    recorder.written(status({ message: 'another one' }), { conditions: [condition()] });
    recorder.written(status({ status: 'True', reason: 'Accepted' }), { conditions: [condition()] });
    recorder.written(status(), { conditions: [condition({ status: 'True', reason: 'Accepted' })] });
    expect(await count()).toBe(1);
    recorder.written(status({ reason: 'Conflicted' }), { conditions: [condition()] });
    recorder.written(status({ observedGeneration: 2 }, { generation: 2 }), { conditions: [condition()] });
    recorder.written(status({}, { uid: 'u2' }), {});
    expect(await count()).toBe(3);
  });

  test('for all replicas: of what the object says already nobody tells again', async () => {
    recorder.written(status(), { conditions: [condition({ message: 'said in other words' })] });
    expect(await count()).toBe(0);
    recorder.written(status(), {});
    const other = recorderOf();
    other.written(status(), {});
    await clock.advance(1_000);
    expect(log.lines).toEqual([]);
  });

  test.each<[string, Partial<DesiredCondition>]>([
    ['accepted', { status: 'True', reason: 'Accepted' }],
    ['one whose references do not resolve', { type: 'ResolvedRefs', reason: 'RefNotFound' }],
  ])('but none for an object that is %s', async (_, accepted) => {
    recorder.written(status(accepted), {});
    expect(await count()).toBe(0);
  });
});

describe('however many objects are wrong', () => {
  test('Events are sent slowly, and those that do not fit are dropped', async () => {
    recorder = recorderOf({ rate: 5, burst: 10, capacity: 100 });
    for (let i = 0; i < 1_000; i++) recorder.written(status({}, { uid: `u${i}`, namespace: `n${i % 20}` }), {});
    expect(await count(0)).toBe(10);
    expect(await count(2_000)).toBe(10);
    // 100 have waited while one was under way.
    expect(await count(60_000)).toBe(81);
    expect(log.messages()).toEqual(['Too many Events at once, dropping some']);
    recorder.written(status({}, { uid: 'u999' }), {});
    expect(await count()).toBe(1);
  });

  test('those of one namespace leave room for others', async () => {
    recorder = recorderOf({ rate: 5, burst: 10, capacity: 100 });
    for (let i = 0; i < 1_000; i++) recorder.written(status({}, { uid: `u${i}` }), {});
    recorder.written(status({}, { uid: 'other', namespace: 'other' }), {});
    expect(await count(60_000)).toBe(12);
  });

  test('nothing is sent after the end', async () => {
    recorder = recorderOf({ burst: 1 });
    for (let i = 0; i < 10; i++) recorder.written(status({}, { uid: `u${i}` }), {});
    await clock.advance(0);
    ending.abort();
    await recorder.idle();
    expect(await count(60_000)).toBe(1);
  });
});

test('an Event that is refused is dropped, said once, and the next one is sent', async () => {
  cluster.denied.add(path);
  for (let i = 0; i < 3; i++) recorder.written(status({}, { uid: `u${i}` }), {});
  expect(await count()).toBe(3);
  expect(log.messages()).toEqual(['API server: denying access, retrying until it works']);
  cluster.denied.clear();
  recorder.written(status({}, { uid: 'u4' }), {});
  expect(await count()).toBe(1);
  expect(log.messages().at(-1)).toBe('API server: no longer denying access');
});

test('an Event waits while the server cannot be reached, and an outage is over with it', async () => {
  cluster.failNext(503, 3);
  recorder.written(status(), {});
  expect(await count(60_000)).toBe(4);
  expect(cluster.objects(path)).toHaveLength(1);
  expect(log.messages()).toEqual([
    'API server: unavailable, retrying until it works',
    'API server: no longer unavailable',
  ]);
});

test('an Event that the server fails for goes behind the others', async () => {
  cluster.failNext(503, 1);
  for (const uid of ['u1', 'u2', 'u3']) recorder.written(status({}, { uid }), {});
  await clock.advance(60_000);
  const sent = cluster.objects(path).map(({ regarding }) => (regarding as Json)['uid']);
  expect(sent).toEqual(['u2', 'u3', 'u1']);
});

test.each([
  ['a'.repeat(5_000), 'a'.repeat(1021)],
  ['é'.repeat(600), 'é'.repeat(510)],
  ['\u{1F600}'.repeat(600), '\u{1F600}'.repeat(255)],
])('a note is cut between characters', async (message, kept) => {
  recorder.written(status({ message }), {});
  const [event] = await posted();
  expect(event?.['note']).toBe(`${kept}…`);
  expect(Buffer.byteLength(event?.['note'] as string)).toBeLessThanOrEqual(1024);
});

test('the name of an Event is valid for the longest name of an object', async () => {
  recorder.written(status({}, { name: `${'a'.repeat(199)}.${'b'.repeat(53)}` }), {});
  const [event] = await posted();
  expect((event?.['metadata'] as Json)['name']).toMatch(/^a{199}\.[0-9a-f]{16}$/);
});

test('what else is reported about an object is an Event, once for each key', async () => {
  const object = { apiVersion: 'v1', kind: 'Service', namespace: 'shop', name: 'reviews', uid: 'u' };
  const report = { key: 'held/1', object, reason: 'EndpointsHeld', message: 'are held' };
  recorder.report(report);
  recorder.report({ ...report, message: 'are still held' });
  recorder.report({ ...report, key: 'held/2' });
  const events = await posted();
  expect(events).toHaveLength(2);
  expect(events[0]).toMatchObject({ reason: 'EndpointsHeld', note: 'are held', regarding: object });
});

test('an Event that failed in an outage waits no longer when the API server is reached again', async () => {
  const outages = new Outages({ log, clock });
  recorder = recorderOf({ outages });
  outages.begin('Pod', errorOfAnswer(503, ''));
  cluster.broken.add(path);
  recorder.written(status(), {});
  await clock.advance(450_000);
  cluster.broken.clear();
  expect(await count()).toBeGreaterThan(0);
  outages.reached('Pod');
  expect(await count()).toBe(1);
  expect(await posted()).toHaveLength(1);
});
