import { expect, test } from 'vitest';
import { WHOLE } from '../api/place.ts';
import type { Condition } from '../status/conditions.ts';
import { FakeClock } from '../testing/fake-clock.ts';
import type { Progress } from '../status/programmed.ts';
import { ObjectStatuses } from './object-statuses.ts';

const KEY = 'g/Sidecar/Kubernetes/shop/s';
const object = { kind: 'Sidecar', namespace: 'shop', name: 's', uid: 'u', generation: 1 } as const;

/** Of an object that was published at the beginning. */
function lab() {
  const clock = new FakeClock();
  const said: string[] = [];
  const forgotten: string[] = [];
  let progress: Progress = { state: 'concernsNobody' };
  let told = (_: ReadonlySet<string>): void => {};
  let reported = (_: readonly string[], __: boolean): void => {};
  const statuses = new ObjectStatuses({
    progress: {
      get: (key) => ({
        key,
        object,
        since: 0,
        version: '1',
        isDeleted: false,
        isAcknowledged: false,
        isRecalled: false,
        rejected: undefined,
        progress,
      }),
      onChange: (observer) => void (told = observer),
    },
    clock,
    replicas: {
      progressOf: (tracked) => tracked.progress,
      servingSince: () => '2030-01-01T00:00:00Z',
      onChange: (observer) => void (reported = observer),
      forget: (key) => void forgotten.push(key),
    },
    set: (_, { said: places }) => {
      const reasons = places.map(({ conditions }) => conditions.find(({ type }) => type === 'Programmed')!.reason);
      said.push(reasons.join());
    },
    forget: () => {},
    signal: new AbortController().signal,
  });
  const accepted = {
    type: 'Accepted',
    status: 'True',
    reason: 'Accepted',
    message: '',
    observedGeneration: 1,
  } as const;
  const change = (next: Progress): void => {
    progress = next;
    told(new Set([KEY]));
  };
  const report = (keys: readonly string[], served: boolean): void => reported(keys, served);
  const begin = (): void => statuses.judged(KEY, { ...object, said: [{ place: WHOLE, conditions: [accepted] }] });
  /** At two parents, of which one does not accept it. */
  const beginAtParents = (): void => {
    const rejected = { ...accepted, status: 'False', reason: 'NotAllowedByListeners' } as const;
    const at = (name: string, condition: Condition) => ({
      place: { in: 'parents', ref: { name } } as const,
      conditions: [condition],
    });
    statuses.judged(KEY, { ...object, said: [at('open', accepted), at('closed', rejected)] });
  };
  const end = (): void => statuses.judged(KEY, undefined);
  return { clock, said, forgotten, change, report, begin, beginAtParents, end };
}

const underway: Progress = { state: 'underway', proxies: 1, waiting: [{ nodeId: 'n' }] };

test('an object that concerned nobody is not said to be pending while a newcomer answers soon', async () => {
  const { clock, said, change, begin } = lab();
  await clock.advance(60_000);
  begin();
  change(underway);
  await clock.advance(400);
  change({ state: 'acknowledged', proxies: 1 });
  expect(said).toEqual(['NoProxies', 'Programmed']);
});

test('it is pending when the newcomer does not answer', async () => {
  const { clock, said, change, begin } = lab();
  await clock.advance(60_000);
  begin();
  change(underway);
  await clock.advance(1_000);
  expect(said).toEqual(['NoProxies', 'Pending']);
});

test('a report has only those objects looked at that it is about, unless another replica has begun to serve', async () => {
  const { clock, said, change, report, begin } = lab();
  begin();
  change(underway);
  await clock.advance(1_000);
  expect(said.splice(0)).toEqual(['Pending', 'Pending']);
  report([], false);
  expect(said).toEqual([]);
  report([KEY], false);
  report([], true);
  expect(said).toEqual(['Pending', 'Pending']);
});

test('nobody waits for what other replicas say of an object that is gone', () => {
  const { forgotten, begin, end } = lab();
  begin();
  expect(forgotten).toEqual([]);
  end();
  expect(forgotten).toEqual([KEY]);
});

test('what one of two parents does not accept is programmed at the other alone', () => {
  const { said, change, beginAtParents } = lab();
  change({ state: 'acknowledged', proxies: 1 });
  beginAtParents();
  expect(said).toEqual(['Programmed,NotAllowedByListeners']);
});
