import { expect, test } from 'vitest';
import type { Progress } from '../status/programmed.ts';
import type { ReplicaReport } from '../status/replica-report.ts';
import type { ProgressOfObjects, Tracked } from './progress.ts';
import { Replicas } from './replicas.ts';

const OTHER = 'istio-system/other';

const keyOf = (namespace: string, name: string): string => `g/VirtualService/Kubernetes/${namespace}/${name}`;

/** This replica, whose proxies have acknowledged all objects, and one other. */
class Lab {
  readonly #tracked = new Map<string, Tracked>();
  readonly replicas: Replicas;
  /** Of which objects a report has told something new. */
  told: readonly unknown[] = [];

  constructor() {
    const progress: Pick<ProgressOfObjects, 'get' | 'seen' | 'unconfirmed'> = {
      get: (key) => this.#tracked.get(key),
      seen: { VirtualService: '9' },
      unconfirmed: () => this.#tracked.values() as Generator<Tracked>,
    };
    this.replicas = new Replicas({
      progress: progress as ProgressOfObjects,
      servingSince: () => '2030-01-01T00:00:00Z',
      others: () => [OTHER],
      isRunning: () => true,
      isConfirmed: () => false,
      rejected: () => {},
    });
    this.replicas.onChange((keys, served) => void (this.told = [...keys, ...(served ? ['served'] : [])]));
  }

  object(namespace: string, name: string, version = '5', progress: Progress = acknowledged): Tracked {
    const object = { kind: 'VirtualService', namespace, name, uid: name, generation: 1 } as const;
    const states = {
      isDeleted: false,
      isAcknowledged: progress.state === 'acknowledged',
      isRecalled: false,
      rejected: undefined,
    };
    const key = keyOf(namespace, name);
    const tracked = { key, object, since: 0, version, progress, ...states };
    this.#tracked.set(key, tracked);
    return tracked;
  }

  /** What is known of it together. */
  state(tracked: Tracked): Progress['state'] {
    return this.replicas.progressOf(tracked).state;
  }
}

const acknowledged: Progress = { state: 'acknowledged', proxies: 1 };

const report = (report: Partial<ReplicaReport>): ReplicaReport => ({
  ...{ servingSince: '2030-01-01T00:00:00Z', seen: { VirtualService: '7' }, objects: [], cut: [] },
  ...report,
});

test('another replica that is silent about an object has nothing to say, unless the namespace of the object is cut', () => {
  const lab = new Lab();
  const [many, shop, late] = [lab.object('many', 'a'), lab.object('shop', 'b'), lab.object('shop', 'c', '8')];
  const states = () => [many, shop, late].map((each) => lab.state(each));
  expect(states()).toEqual(['silent', 'silent', 'silent']);
  lab.replicas.found(OTHER, report({ cut: ['many'] }));
  expect(states()).toEqual(['silent', 'acknowledged', 'silent']);
  lab.replicas.found(OTHER, report({ cut: ['*'] }));
  expect(states()).toEqual(['silent', 'silent', 'silent']);
});

test('what another replica says of an earlier generation, or of an object that had the name before, does not count', () => {
  const lab = new Lab();
  const tracked = lab.object('shop', 'a');
  const { key, object } = tracked;
  const said = { key, uid: object.uid, generation: object.generation, progress: acknowledged };
  const stateAfter = (reported: typeof said): Progress['state'] => {
    lab.replicas.found(OTHER, report({ objects: [reported] }));
    return lab.state(tracked);
  };
  expect(stateAfter({ ...said, generation: 0 })).toBe('silent');
  expect(stateAfter({ ...said, uid: 'former' })).toBe('silent');
  expect(stateAfter(said)).toBe('acknowledged');
});

test('a namespace with more objects than a report has room for does not cut those of others', () => {
  const lab = new Lab();
  for (let i = 0; i < 3_000; i++) lab.object('many', `${i}`);
  lab.object('nobody', 'a', '5', { state: 'concernsNobody' });
  const own = lab.object('shop', 'own');
  const { objects, cut } = lab.replicas.own()!;
  expect(cut).toEqual(['many']);
  expect(objects.filter(({ key }) => !key.includes('/many/')).map(({ key }) => key)).toEqual([own.key]);
});

test('of a report only those objects are looked at of which it says something new', () => {
  const lab = new Lab();
  const [early, late, same, other] = ['2', '8', '3', '3'].map((version, i) => lab.object('shop', `${i}`, version)) as [
    Tracked,
    Tracked,
    Tracked,
    Tracked,
  ];
  const reported = ({ key, object: { uid, generation } }: Tracked, proxies: number) => ({
    ...{ key, uid, generation },
    progress: { state: 'acknowledged' as const, proxies },
  });
  for (const each of [early, late, same, other]) expect(lab.state(each)).toBe('silent');
  lab.replicas.found(OTHER, report({ seen: {}, objects: [reported(same, 1), reported(other, 1)] }));
  expect(lab.told).toEqual([same.key, other.key, 'served']);
  const objects = [reported(same, 1), reported(other, 2)];
  lab.replicas.found(OTHER, report({ seen: {}, objects }));
  expect(lab.told).toEqual([other.key]);
  lab.replicas.found(OTHER, report({ objects }));
  expect(lab.told).toEqual([early.key]);
  lab.replicas.found(OTHER, report({ objects }));
  expect(lab.told).toEqual([]);
  lab.replicas.found(OTHER, report({ objects: [reported(same, 1)] }));
  expect(lab.told).toEqual([other.key]);
  lab.replicas.found(OTHER, report({ seen: { VirtualService: '8' }, objects: [reported(same, 1)] }));
  expect(lab.told).toEqual([late.key]);
});

test('an object that is gone is not waited for', () => {
  const lab = new Lab();
  const [gone, present] = [lab.object('shop', 'a'), lab.object('shop', 'b')];
  expect([gone, present].map((each) => lab.state(each))).toEqual(['silent', 'silent']);
  lab.replicas.forget(gone.key);
  lab.replicas.found(OTHER, report({}));
  expect(lab.told).toEqual([present.key, 'served']);
});
