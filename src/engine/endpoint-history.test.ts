import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { Graph, type Write } from '../cache/graph.ts';
import { declareInputs } from '../mesh/inputs.ts';
import type { LostEndpoints } from '../model/lost-endpoints.ts';
import { FakeClock } from '../testing/fake-clock.ts';
import { EndpointHistory, LOST_MS } from './endpoint-history.ts';
import { EndpointLab, legacy, pod, service, slice } from './testing/endpoint-lab.ts';

const one = { pod: 'one', ip: '10.1.0.1' };
const two = { pod: 'two', ip: '10.1.0.2' };
const RELEASE = 'fairlead.dev/release-endpoints';

let lab: EndpointLab;

/** Two Pods, which a slice lists. */
beforeEach(() => {
  lab = new EndpointLab();
  onTestFinished(() => lab.end());
  lab.list('Service', service('reviews'), service('ratings'));
  lab.list('Pod', pod('one', one.ip), pod('two', two.ip));
  lab.list('EndpointSlice', slice('a', [one, two]));
  expect([lab.served(), lab.held()]).toEqual([[one.ip, two.ip], []]);
});

describe('an endpoint that a list lost', () => {
  test('is held if its Pod is there and ready, for five minutes', async () => {
    lab.list('EndpointSlice', slice('a', [one]));
    expect([lab.served(), lab.held()]).toEqual([[one.ip, two.ip], [`reviews ${two.ip}`]]);
    await lab.clock.advance(LOST_MS - 1);
    expect(lab.served()).toEqual([one.ip, two.ip]);
    await lab.clock.advance(1);
    expect([lab.served(), lab.held()]).toEqual([[one.ip], []]);
    expect(lab.clock.pending).toBe(0);
    expect(lab.mesh.inputs.lostEndpoints.size).toBe(0);
  });

  test('is held if its slice is gone, and not for longer if more lists lack it', async () => {
    lab.list('EndpointSlice');
    await lab.clock.advance(LOST_MS / 2);
    lab.list('EndpointSlice');
    expect(lab.served()).toEqual([one.ip, two.ip]);
    await lab.clock.advance(LOST_MS / 2);
    expect(lab.served()).toEqual([]);
  });

  test('is not lost if another slice of the Service has it', () => {
    lab.list('EndpointSlice', slice('b', [one]), slice('c', [two]));
    expect([lab.served(), lab.held()]).toEqual([[one.ip, two.ip], []]);
    expect(lab.clock.pending).toBe(0);
  });

  test('is lost even if a slice of another Service has it', () => {
    lab.list('EndpointSlice', slice('a', [one]), slice('b', [two], 'ratings'));
    expect(lab.held()).toEqual([`reviews ${two.ip}`]);
  });

  test.each([
    ['its Pod is gone', () => lab.delete(pod('two', two.ip))],
    ['Pods are listed without it', () => lab.list('Pod', pod('one', one.ip))],
    ['its Pod is another one', () => lab.put(pod('two', two.ip, { uid: 'new' }))],
    ['its Pod is not ready', () => lab.put(pod('two', two.ip, { ready: false }))],
    ['its Pod has another address', () => lab.put(pod('two', '10.1.0.3'))],
    ['another Pod has its address', () => lab.put(pod('three', two.ip, { ready: false }))],
    ['the Service no longer selects its Pod', () => lab.put(pod('two', two.ip, { app: 'other' }))],
    ['the Service is gone', () => lab.delete(service('reviews'))],
    ['the Service is another one', () => lab.put(service('reviews', {}, 'new'))],
    ['the Service releases it', () => lab.put(service('reviews', { [RELEASE]: '2030-01-01T00:00:00.000Z' }))],
    ['its slice has an event', () => lab.put(slice('a', []))],
  ])('goes at once, or is not held at all, when %s', (_, happens) => {
    lab.list('EndpointSlice', slice('a', []));
    expect(lab.served()).toEqual([one.ip, two.ip]);
    happens();
    expect(lab.held()).not.toContain(`reviews ${two.ip}`);
  });

  test('does not come back with a new Service of the same name', () => {
    lab.list('EndpointSlice', slice('a', []));
    lab.delete(service('reviews'));
    lab.put(service('reviews', {}, 'new'));
    expect([lab.served(), lab.clock.pending]).toEqual([[], 1]);
  });

  test('is no longer lost when it is listed again, by any slice', () => {
    lab.list('EndpointSlice', slice('a', []));
    lab.put(slice('b', [one]));
    expect(lab.held()).toEqual([`reviews ${two.ip}`]);
    lab.list('EndpointSlice', slice('a', []), slice('b', [one]), slice('c', [two]));
    expect([lab.held(), lab.served()]).toEqual([[], [one.ip, two.ip]]);
    lab.put(slice('c', []));
    expect(lab.served()).toEqual([one.ip]);
  });

  test('was not served if it was not ready, and is not served now', () => {
    lab.put(slice('a', [one, { ...two, ready: false }]));
    lab.list('EndpointSlice', slice('a', []));
    expect(lab.held()).toEqual([`reviews ${one.ip}`]);
  });

  test('is gone if nothing is known of its Pod', () => {
    const unknown = { addresses: ['10.9.9.9'], conditions: { ready: true } };
    lab.put({ ...slice('a', []), endpoints: [unknown] } as ReturnType<typeof slice>);
    expect(lab.served()).toEqual(['10.9.9.9']);
    lab.list('EndpointSlice');
    expect(lab.served()).toEqual([]);
  });

  test('is held if its Pod shares the address of its node with others', () => {
    lab.put(pod('two', two.ip, { hostNetwork: true }));
    lab.put(pod('three', two.ip, { hostNetwork: true }));
    lab.list('EndpointSlice', slice('a', []));
    expect(lab.held()).toEqual([`reviews ${one.ip}`, `reviews ${two.ip}`]);
  });

  test('has every port that it had in several slices', () => {
    const admin = { ...slice('b', [one]), ports: [{ name: 'admin', port: 9090, protocol: 'TCP' }] };
    lab.put(admin);
    lab.list('EndpointSlice');
    expect(lab.served()).toEqual([one.ip, one.ip, two.ip]);
  });

  test('is confirmed by news of Pods, but not by those that come with the list', async () => {
    lab.list('EndpointSlice', slice('a', [one]));
    lab.list('Pod', pod('one', one.ip), pod('two', two.ip));
    expect(lab.confirmed()).toEqual([false]);
    await lab.clock.advance(1_000);
    lab.sink.caughtUp('EndpointSlice');
    expect(lab.confirmed()).toEqual([false]);
    lab.sink.caughtUp('Pod');
    expect(lab.confirmed()).toEqual([true]);
    expect(lab.held()).toEqual([`reviews ${two.ip}`]);
  });
});

describe('what is the truth', () => {
  test('a watch event, also to zero', () => {
    lab.put(slice('a', [one]));
    expect([lab.served(), lab.held()]).toEqual([[one.ip], []]);
    lab.delete(slice('a', []));
    expect([lab.served(), lab.held()]).toEqual([[], []]);
    expect(lab.mesh.inputs.lostEndpoints.size).toBe(0);
  });

  test('the first list', () => {
    const other = new EndpointLab();
    onTestFinished(() => other.end());
    other.list('Service', service('reviews'));
    other.list('Pod', pod('one', one.ip));
    other.list('EndpointSlice');
    expect(other.served()).toEqual([]);
  });

  test('an annotation is for what was lost before its time', async () => {
    await lab.clock.advance(60_000);
    lab.put(service('reviews', { [RELEASE]: lab.clock.date().toISOString() }));
    await lab.clock.advance(60_000);
    lab.list('EndpointSlice');
    expect(lab.served()).toEqual([one.ip, two.ip]);
    lab.put(service('reviews', { [RELEASE]: lab.clock.date().toISOString() }));
    expect(lab.served()).toEqual([]);
  });

  test('an annotation that is not a time releases nothing, and its owner is told', () => {
    lab.list('EndpointSlice');
    lab.put(service('reviews', { [RELEASE]: 'now' }));
    expect(lab.held()).toHaveLength(2);
    const problems = [...lab.mesh.problems.byObject.entries()].flatMap(([, found]) => found);
    expect(problems).toMatchObject([
      {
        object: { kind: 'Service', name: 'reviews' },
        field: `metadata.annotations[${RELEASE}]`,
        reason: 'Ineffective',
      },
    ]);
  });
});

describe('the legacy kind', () => {
  test('is held as slices are, for Services that have none', () => {
    lab.delete(slice('a', []));
    lab.list('Endpoints', legacy('reviews', [one, two]));
    expect(lab.served()).toEqual([one.ip, two.ip]);
    lab.list('Endpoints', legacy('reviews', [one]));
    expect([lab.served(), lab.held()]).toEqual([[one.ip, two.ip], [`reviews ${two.ip}`]]);
    lab.put(slice('b', [one]));
    expect([lab.served(), lab.held()]).toEqual([[one.ip], []]);
  });

  test('a slice and Endpoints of one name do not get in the way of each other', () => {
    lab.list('EndpointSlice', slice('reviews', [one, two]));
    lab.list('Endpoints', legacy('reviews', [one, two]));
    lab.list('EndpointSlice', slice('reviews', [one]));
    lab.put(legacy('reviews', []));
    expect(lab.served()).toEqual([one.ip, two.ip]);
  });
});

test('of a hundred thousand lost endpoints, the oldest are forgotten', () => {
  const inputs = declareInputs(new Graph());
  const counts = new Map<string, number>();
  const clock = new FakeClock();
  const write = ({ key, value }: Write): void => {
    counts.set(key, (value as LostEndpoints | undefined)?.endpoints.length ?? 0);
  };
  const { signal } = new AbortController();
  const history = new EndpointHistory({ inputs, write, clock, signal });
  const many = (from: number, count: number) =>
    Array.from({ length: count }, (_, i) => ({
      pod: `p${from + i}`,
      ip: `10.${(from + i) >> 16}.${(from + i) & 65_535}`,
    }));
  const list = (name: string, endpoints: ReturnType<typeof many>): void =>
    history.listed('EndpointSlice', () => history.changed('EndpointSlice', `k/shop/${name}`, slice(name, endpoints)));
  for (const [name, endpoints] of [
    ['a', many(0, 10)],
    ['b', many(10, 99_995)],
  ] as const) {
    list(name, endpoints);
    list(name, []);
  }
  expect([...counts.values()]).toEqual([5, 99_995]);
});
