import { describe, expect, test } from 'vitest';
import { type CustomKindName, restricts } from '../api/kinds.ts';
import type { KubernetesObject } from '../api/object.ts';
import type { Recipient } from '../ads/rollouts/recipient.ts';
import { Concern, type Rollout } from '../ads/rollouts/rollout.ts';
import { Rollouts } from '../ads/rollouts/rollouts.ts';
import { Graph, type Write } from '../cache/graph.ts';
import { declareInputs, type RejectedGeneration } from '../mesh/inputs.ts';
import { generationKey, parseGenerationKey } from '../mesh/objects/in-force.ts';
import { Generations } from './generations.ts';
import type { ProgressOfObjects, Tracked } from './progress.ts';

/** What proxies say of VirtualServices, and what becomes of these. */
class Lab {
  now = 0;
  /** Nothing is committed. */
  isBusy = false;
  #timers: { readonly at: number; readonly work: () => void }[] = [];
  readonly rollouts = new Rollouts({
    after: (ms, work) => void this.#timers.push({ at: this.now + ms, work }),
    settled: () => {},
    changed: () => {},
  });
  readonly #tracked = new Map<string, Tracked>();
  readonly #rejected = new Map<string, RejectedGeneration | undefined>();
  /** Not committed yet. */
  #writes: Write[] = [];
  readonly #graph = new Graph();
  readonly #inputs = declareInputs(this.#graph);
  readonly former = new Map<string, unknown>();
  isInForce = true;
  /** All resources are made from all objects. */
  readonly #origins = new Set<string>();
  readonly generations: Generations;

  constructor() {
    this.generations = new Generations({
      inputs: this.#inputs,
      progress: { rollouts: this.rollouts, get: (key) => this.#tracked.get(key) } as ProgressOfObjects,
      write: (write) => {
        if (write.input === this.#inputs.formerGenerations) this.former.set(write.key, write.value);
        else this.#rejected.set(write.key, write.value as RejectedGeneration | undefined);
        this.#writes.push(write);
      },
      isInForce: () => this.isInForce,
      canaries: true,
      isLibrary: ({ build }) => build === LIBRARY,
      clock: {
        now: () => this.now,
        after: (ms, work) => {
          this.#timers.push({ at: this.now + ms, work });
          return () => {};
        },
      },
      signal: new AbortController().signal,
    });
  }

  /** A new object that is on its way to proxies. */
  object(namespace: string, name: string, kind: CustomKindName = 'VirtualService'): Rollout {
    const metadata = { namespace, name, uid: name, generation: 1 };
    const objectKey = `test/${namespace}/${name}`;
    const key = generationKey(kind, objectKey);
    this.generations.changed(kind, objectKey, { kind, metadata } as KubernetesObject);
    const object = { kind, namespace, name, uid: name, generation: 1 };
    this.#origins.add(key);
    const progress = { state: 'underway', proxies: 0, waiting: [] } as const;
    this.#tracked.set(key, {
      key,
      object,
      since: 0,
      version: '',
      isDeleted: false,
      isAcknowledged: false,
      isRecalled: false,
      rejected: undefined,
      progress,
    });
    return this.rollouts.begin(key, restricts(kind));
  }

  /** The source has delivered that, and it is not committed yet. */
  deleted({ key }: Rollout): void {
    const { kind, objectKey } = parseGenerationKey(key);
    this.generations.changed(kind, objectKey, undefined);
  }

  /** They have changed a table together, and it is on its way to this proxy. */
  sent(to: Recipient, table: string, ...by: readonly Rollout[]): Concern {
    const concern = new Concern('rds', new Map([[table, by]]));
    concern.begin(to);
    return concern;
  }

  rejects(concern: Concern, recipient: Recipient): void {
    this.rejectsAll([concern], recipient);
  }

  /** One version with all of these. */
  rejectsAll(concerns: readonly Concern[], recipient: Recipient): void {
    for (const concern of concerns) {
      const rejected = [...concern.names.keys()].map((name) => {
        return [name, { typeUrl: 'rds', name, version: '1', message: 'no', origins: this.#origins }] as const;
      });
      concern.reject(recipient, new Map(rejected));
    }
    this.generations.progressed(new Set(concerns.flatMap(({ rollouts }) => Array.from(rollouts, ({ key }) => key))));
  }

  takes(concern: Concern, recipient: Recipient): void {
    concern.end(recipient);
    this.generations.progressed(new Set(Array.from(concern.rollouts, ({ key }) => key)));
  }

  /** Everybody has taken it. */
  acknowledged({ key }: Rollout): void {
    const progress = { state: 'acknowledged', proxies: 1 } as const;
    this.#tracked.set(key, { ...this.#tracked.get(key)!, isAcknowledged: true, progress });
    this.rollouts.forget(key);
    this.generations.progressed(new Set([key]));
  }

  /** Its generation may not be in force. */
  isRejected(rollout: Rollout): boolean {
    return this.rejectedOf(rollout).includes(1);
  }

  rejectedOf({ key }: Rollout): readonly number[] {
    return this.#rejected.get(key)?.generations.map(({ generation }) => generation) ?? [];
  }

  /** The source has delivered another generation of it. */
  changed({ key }: Rollout, metadata: { readonly uid: string; readonly generation: number }): void {
    const { kind, objectKey, namespace } = parseGenerationKey(key);
    const object = { kind, metadata: { namespace, name: 'changed', ...metadata } } as KubernetesObject;
    this.generations.changed(kind, objectKey, object);
  }

  #publish(): void {
    const writes = this.#writes.splice(0);
    this.#graph.commit(writes);
    for (const { key } of writes) {
      const tracked = this.#tracked.get(key);
      if (tracked === undefined) continue;
      const { generation } = tracked.object;
      const rejected = this.#rejected.get(key)?.generations.find((each) => each.generation === generation);
      this.#tracked.set(key, { ...tracked, rejected });
      if ((rejected === undefined) !== (tracked.rejected === undefined)) this.rollouts.get(key)?.reconsider();
    }
    this.generations.published();
  }

  pass(ms: number): void {
    for (const end = this.now + ms; this.now < end;) {
      this.now += 50;
      if (!this.isBusy) {
        this.#publish();
      }
      for (const timer of this.#timers.splice(0))
        if (timer.at <= this.now) timer.work();
        else this.#timers.push(timer);
    }
  }
}

const LIBRARY = 'gRPC';

const of = (tenant: string, i = 0): Recipient => ({
  stream: `${tenant} ${i}`,
  nodeId: `${tenant} ${i}`,
  build: 'envoy 1',
  tenant,
});

test('one tenant does not decide for others that an object concerns, whatever they have of it', () => {
  for (const answer of ['none', 'good'] as const) {
    const lab = new Lab();
    const shared = lab.object('shop', 'shared');
    const [liar, other] = [of('tenant'), of('other')];
    const own = lab.sent(liar, 'only of the tenant', shared);
    const theirs = lab.sent(other, 'of others', shared);
    if (answer === 'good') theirs.end(other);
    lab.rejects(own, liar);
    lab.pass(1_000);
    expect([answer, lab.isRejected(shared)]).toEqual([answer, false]);
  }
});

test('one tenant decides where nobody else is concerned', () => {
  const lab = new Lab();
  const shared = lab.object('shop', 'shared');
  const liar = of('tenant');
  lab.rejects(lab.sent(liar, 'table', shared), liar);
  expect(lab.isRejected(shared)).toBe(true);
});

test('libraries decide about an object only where no Envoy is concerned', () => {
  for (const hasEnvoy of [false, true]) {
    const lab = new Lab();
    const shared = lab.object('shop', 'shared');
    const library = { ...of('shop'), build: LIBRARY };
    if (hasEnvoy) lab.sent(of('shop', 1), 'of Envoys', shared);
    lab.rejects(lab.sent(library, 'of libraries', shared), library);
    lab.pass(1_000);
    expect(lab.isRejected(shared)).toBe(!hasEnvoy);
  }
});

test('one tenant decides also if others find out later that they are not concerned', () => {
  const lab = new Lab();
  const shared = lab.object('shop', 'shared');
  const [one, other] = [of('tenant'), of('other')];
  const look = Concern.look([shared]);
  look.begin(other);
  lab.rejects(lab.sent(one, 'table', shared), one);
  expect(lab.isRejected(shared)).toBe(false);
  look.end(other);
  lab.pass(500);
  expect(lab.isRejected(shared)).toBe(true);
});

test('one of several is tried only when it has been out of force, or it would not come back to anybody', () => {
  const lab = new Lab();
  const [a, b] = [lab.object('shop', 'a'), lab.object('shop', 'b')];
  const proxy = of('shop');
  lab.rejects(lab.sent(proxy, 'table', a, b), proxy);
  const areRejected = () => [a, b].map((each) => lab.isRejected(each));
  expect(areRejected()).toEqual([true, true]);
  lab.pass(500);
  expect(areRejected()).toEqual([false, true]);
  lab.rejects(lab.sent(proxy, 'table', a), proxy);
  lab.pass(500);
  expect(areRejected()).toEqual([true, false]);
});

test('one of several is tried until proxies have had time since it came back, however late that is', () => {
  const lab = new Lab();
  const [a, b] = [lab.object('shop', 'a'), lab.object('shop', 'b')];
  const proxy = of('shop');
  lab.rejects(lab.sent(proxy, 'table', a, b), proxy);
  const areRejected = () => [a, b].map((each) => lab.isRejected(each));
  lab.isBusy = true;
  lab.pass(5_000);
  expect(areRejected()).toEqual([true, true]);
  lab.isBusy = false;
  while (lab.isRejected(a)) lab.pass(50);
  lab.isBusy = true;
  lab.pass(5_000);
  expect(areRejected()).toEqual([false, true]);
  lab.isBusy = false;
  lab.pass(1_000);
  expect(areRejected()).toEqual([false, true]);
  lab.rejects(lab.sent(proxy, 'table', a), proxy);
  lab.pass(500);
  expect(areRejected()).toEqual([true, false]);
});

test('what two objects have changed one after the other is rejected together: each is tried alone', () => {
  for (const culprit of [0, 1]) {
    const lab = new Lab();
    const objects = [lab.object('shop', 'a'), lab.object('shop', 'b')];
    const proxy = of('shop');
    const concerns = objects.map((each) => lab.sent(proxy, 'table', each));
    lab.rejectsAll(concerns, proxy);
    expect(objects.map((each) => lab.isRejected(each))).toEqual([true, true]);
    for (let i = 0; i < 100; i++) {
      lab.pass(100);
      if (!lab.isRejected(objects[culprit]!)) lab.rejects(lab.sent(proxy, 'table', objects[culprit]!), proxy);
    }
    expect(objects.map((each) => lab.isRejected(each))).toEqual(objects.map((_, i) => i === culprit));
  }
});

test('what somebody has taken is not rejected together with what others have changed', () => {
  const lab = new Lab();
  const [good, bad] = [lab.object('shop', 'good'), lab.object('shop', 'bad')];
  const [one, other] = [of('shop'), of('shop', 1)];
  const first = lab.sent(one, 'table', good);
  first.begin(other);
  lab.takes(first, other);
  lab.rejectsAll([first, lab.sent(one, 'table', bad)], one);
  expect([good, bad].map((each) => lab.isRejected(each))).toEqual([false, true]);
});

test('what is rejected together with what is about to go is asked for again without that', () => {
  for (const isBad of [false, true]) {
    const lab = new Lab();
    const [bad, late] = [lab.object('shop', 'bad'), lab.object('shop', 'late')];
    const proxy = of('shop');
    const first = lab.sent(proxy, 'table', bad);
    lab.isBusy = true;
    lab.rejects(first, proxy);
    expect(lab.isRejected(bad)).toBe(true);
    const second = lab.sent(proxy, 'table', late);
    lab.rejectsAll([first, second], proxy);
    lab.pass(2_000);
    expect(lab.isRejected(late)).toBe(false);
    lab.isBusy = false;
    if (!isBad) {
      lab.pass(100);
      lab.takes(second, proxy);
      lab.pass(5_000);
      expect([bad, late].map((each) => lab.isRejected(each))).toEqual([true, false]);
    }
    // The proxy has not answered in time, and then takes it, or not.
    lab.pass(1_000);
    const again = lab.sent(proxy, 'table', late);
    if (isBad) lab.rejects(again, proxy);
    lab.pass(5_000);
    expect([bad, late].map((each) => lab.isRejected(each))).toEqual([true, isBad]);
  }
});

test('what is rejected together with what is about to go has its time from when that is gone', () => {
  const lab = new Lab();
  const [bad, late] = [lab.object('shop', 'bad'), lab.object('shop', 'late')];
  const proxy = of('shop');
  const first = lab.sent(proxy, 'table', bad);
  lab.isBusy = true;
  lab.rejects(first, proxy);
  lab.rejectsAll([first, lab.sent(proxy, 'table', late)], proxy);
  lab.pass(2_200);
  expect(lab.isRejected(late)).toBe(false);
  lab.isBusy = false;
  lab.pass(50);
  expect(lab.isRejected(late)).toBe(false);
});

test('what is taken before a suspect is back decides nothing about it', () => {
  const lab = new Lab();
  const [a, b] = [lab.object('shop', 'a'), lab.object('shop', 'b')];
  const [proxy, newcomer] = [of('shop'), of('shop', 1)];
  lab.rejects(lab.sent(proxy, 'table', a, b), proxy);
  while (lab.isRejected(a)) lab.pass(50);
  lab.isBusy = true;
  lab.takes(lab.sent(newcomer, 'table', a), newcomer);
  lab.pass(1_000);
  expect([a, b].map((each) => lab.isRejected(each))).toEqual([false, true]);
});

test('a rejection that is over leaves nothing: the next one is waited for as long', () => {
  const lab = new Lab();
  const object = lab.object('shop', 'object');
  const [one, later] = [of('shop'), of('shop', 2)];
  const concern = lab.sent(one, 'table', object);
  concern.begin({ ...of('shop', 1), build: 'envoy 2' });
  lab.rejects(concern, one);
  concern.leave(one);
  lab.pass(1_000);
  concern.begin(later);
  lab.rejects(concern, later);
  expect(lab.isRejected(object)).toBe(false);
  lab.pass(500);
  expect(lab.isRejected(object)).toBe(true);
});

test('what a newcomer rejects together with what is about to go is asked for again without that', () => {
  const lab = new Lab();
  const [bad, late] = [lab.object('shop', 'bad'), lab.object('shop', 'late')];
  const [proxy, newcomer] = [of('shop'), of('shop', 1)];
  lab.isBusy = true;
  lab.rejects(lab.sent(proxy, 'table', bad), proxy);
  lab.rejects(lab.sent(newcomer, 'table', bad, late), newcomer);
  lab.pass(2_000);
  expect([bad, late].map((each) => lab.isRejected(each))).toEqual([true, false]);
});

test('what is rejected of the newest generation counts while it is not published that an older one is rejected', () => {
  const lab = new Lab();
  const object = lab.object('shop', 'object');
  const proxy = of('shop');
  const concern = lab.sent(proxy, 'table', object);
  const rejected = [{ generation: 0, proxies: 1, rejections: [] }];
  const { kind } = parseGenerationKey(object.key);
  const kept = { object: { kind, name: 'object', uid: 'object' }, newest: 1, former: [], rejected };
  lab.isBusy = true;
  lab.generations.found(object.key, { ...kept, reason: 'Rejected' });
  lab.rejects(concern, proxy);
  lab.pass(1_000);
  expect(lab.rejectedOf(object)).toEqual([0, 1]);
});

test('what is known of an object counts as soon as the object is there, also in place of another one', () => {
  const lab = new Lab();
  const object = lab.object('shop', 'object');
  const { kind } = parseGenerationKey(object.key);
  const rejected = [{ generation: 1, proxies: 1, rejections: [] }];
  const kept = { object: { kind, name: 'object', uid: 'another' }, newest: 1, former: [], rejected };
  lab.generations.found(object.key, { ...kept, reason: 'Rejected' });
  expect(lab.isRejected(object)).toBe(false);
  lab.changed(object, { uid: 'another', generation: 1 });
  expect(lab.isRejected(object)).toBe(true);
});

test('what was in force of an object says nothing about another one of its name', () => {
  const lab = new Lab();
  const object = lab.object('shop', 'object');
  lab.isInForce = false;
  lab.changed(object, { uid: 'another', generation: 1 });
  lab.changed(object, { uid: 'another', generation: 2 });
  expect(lab.former.get(object.key)).toMatchObject({ objects: [{ metadata: { uid: 'another', generation: 1 } }] });
});

test('a suspect of which there is another generation is not tried', () => {
  const lab = new Lab();
  const [a, b, c] = ['a', 'b', 'c'].map((name) => lab.object('shop', name)) as [Rollout, Rollout, Rollout];
  const proxy = of('shop');
  lab.rejects(lab.sent(proxy, 'table', a, b, c), proxy);
  while (lab.isRejected(a)) lab.pass(50);
  lab.changed(b, { uid: 'b', generation: 2 });
  lab.pass(2_500);
  expect([b, c].map((each) => lab.isRejected(each))).toEqual([true, false]);
});

test('suspects of one namespace do not wait for all those of another that were rejected together with them', () => {
  const lab = new Lab();
  const many = Array.from({ length: 100 }, (_, i) => lab.object('tenant', `own-${i}`));
  const [a, b] = [lab.object('shop', 'a'), lab.object('shop', 'b')];
  const [one, other] = [of('one'), of('other')];
  const concern = lab.sent(one, 'table', ...many, a, b);
  concern.begin(other);
  lab.rejects(concern, one);
  lab.rejects(concern, other);
  expect([...many, a, b].every((each) => lab.isRejected(each))).toBe(true);
  lab.pass(10_000);
  expect([a, b].map((each) => lab.isRejected(each))).toEqual([false, false]);
});

test('what is rejected together again and again is found out one by one', () => {
  const lab = new Lab();
  const proxy = of('shop');
  const groups = ['a', 'b', 'c'].map((group) => ['bad', 'good'].map((name) => lab.object('shop', `${group}-${name}`)));
  const rejected: Concern[] = [];
  const reject = (...objects: readonly Rollout[]) => {
    const concern = lab.sent(proxy, 'table', ...objects);
    lab.rejects(concern, proxy);
    rejected.push(concern);
  };
  for (const group of groups) reject(...group);
  const all = groups.flat();
  for (let i = 0; i < 300; i++) {
    const underway = all.filter((each) => !lab.isRejected(each) && !each.isOver);
    lab.pass(100);
    const isBad = underway.some(({ key }) => key.includes('bad'));
    if (isBad) reject(...underway);
    else {
      for (const each of underway) lab.acknowledged(each);
      for (const concern of rejected.splice(0)) lab.takes(concern, proxy);
    }
  }
  expect(all.map((each) => lab.isRejected(each))).toEqual(all.map(({ key }) => key.includes('bad')));
});

test('what proxies reject just after an object was deleted is not remembered for ever', () => {
  const lab = new Lab();
  const object = lab.object('shop', 'deleted');
  const proxy = of('shop');
  const concern = lab.sent(proxy, 'table', object);
  lab.deleted(object);
  lab.rejects(concern, proxy);
  lab.pass(1_000);
  expect(lab.isRejected(object)).toBe(false);
});

describe('an object that restricts proxies', () => {
  test.each(['AuthorizationPolicy', 'PeerAuthentication', 'RequestAuthentication'] as const)(
    'stays in force, whoever rejects it, here or elsewhere, now or before a restart: %s',
    (kind) => {
      const lab = new Lab();
      const policy = lab.object('shop', 'policy', kind);
      const [own, other] = [of('shop'), of('other')];
      const concern = lab.sent(own, 'inbound', policy);
      concern.begin(other);
      for (const each of [own, other]) lab.rejects(concern, each);
      const generations = [{ generation: 1, proxies: 2, rejections: [] }];
      lab.generations.rejectedElsewhere(policy.key, { uid: 'policy', generations });
      const object = { kind, name: 'policy', uid: 'policy' };
      lab.generations.found(policy.key, { object, newest: 1, reason: 'Rejected', former: [], rejected: generations });
      lab.pass(10_000);
      expect(lab.isRejected(policy)).toBe(false);
    },
  );

  /** Both have changed what the proxy rejects. */
  function together() {
    const lab = new Lab();
    const policy = lab.object('istio-system', 'policy', 'AuthorizationPolicy');
    const sidecar = lab.object('shop', 'sidecar', 'Sidecar');
    const proxy = of('shop');
    const both = lab.sent(proxy, 'inbound', policy, sidecar);
    lab.rejects(both, proxy);
    return { lab, policy, sidecar, proxy, both };
  }

  test('is tried without what changed together with it, and that comes back if it was the restriction', () => {
    const { lab, sidecar, proxy, both } = together();
    expect(lab.isRejected(sidecar)).toBe(true);
    lab.pass(5_000);
    expect(lab.isRejected(sidecar)).toBe(false);
    lab.rejects(both, proxy);
    lab.rejects(lab.sent(proxy, 'inbound', sidecar), proxy);
    lab.pass(10_000);
    expect(lab.isRejected(sidecar)).toBe(false);
  });

  test('is tried without what changed together with it, and that goes back if it is to blame', () => {
    const { lab, policy, sidecar, proxy, both } = together();
    lab.takes(both, proxy);
    lab.pass(5_000);
    expect(lab.isRejected(sidecar)).toBe(false);
    lab.rejects(lab.sent(proxy, 'inbound', sidecar), proxy);
    expect([policy, sidecar].map((each) => lab.isRejected(each))).toEqual([false, true]);
  });

  test('does not keep in force what others reject who have taken it', () => {
    const { lab, sidecar, both } = together();
    lab.pass(5_000);
    const mate = of('shop', 1);
    expect(both.waiting.size).toBe(1);
    lab.rejects(lab.sent(mate, 'inbound', sidecar), mate);
    lab.pass(500);
    expect(lab.isRejected(sidecar)).toBe(true);
  });
});

test('what many objects have changed together is judged once', () => {
  const lab = new Lab();
  const objects = Array.from({ length: 100 }, (_, i) => lab.object('shop', `object-${i}`));
  const proxy = of('shop');
  const concern = new Concern('rds', new Map(objects.map((each) => [each.key, [each]])));
  concern.begin(proxy);
  let looks = 0;
  const changersOf = concern.changersOf.bind(concern);
  concern.changersOf = (name) => {
    looks++;
    return changersOf(name);
  };
  lab.rejects(concern, proxy);
  expect(objects.filter((each) => lab.isRejected(each))).toHaveLength(100);
  // Of each name, who is suspected, and who else.
  expect(looks).toBeLessThanOrEqual(200);
});

test('those who have not answered are looked at once, however many names somebody rejects', () => {
  const lab = new Lab();
  const objects = Array.from({ length: 100 }, (_, i) => lab.object('shop', `object-${i}`));
  const concern = new Concern('rds', new Map(objects.map((each) => [each.key, [each]])));
  let looks = 0;
  const others = Array.from({ length: 100 }, (_, i): Recipient => {
    const { tenant, ...rest } = of('shop', i + 1);
    return {
      ...rest,
      build: `envoy ${i}`,
      get tenant() {
        looks++;
        return tenant;
      },
    };
  });
  const proxy = of('shop');
  for (const each of [proxy, ...others]) concern.begin(each);
  looks = 0;
  lab.rejects(concern, proxy);
  expect(objects.filter((each) => lab.isRejected(each))).toHaveLength(0);
  expect(looks).toBeLessThanOrEqual(200);
  lab.pass(500);
  expect(objects.filter((each) => lab.isRejected(each)).length).toBeGreaterThan(90);
});
