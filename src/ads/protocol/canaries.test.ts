import { describe, expect, test } from 'vitest';
import { Lab } from '../testing/lab.ts';
import { ContentHasher } from '../store/content-hash.ts';
import { IdentityMemo } from '../../base/identity-memo.ts';
import { node } from '../../envoy/encode/resource.ts';
import { Batch, Served } from '../store/served.ts';
import { Canaries, type Gate, type SharedGate, type Waiter } from './canaries.ts';
import type { Rollout } from '../rollouts/rollout.ts';
import type { EncodedResource } from '../store/resource.ts';
import type { WorldView } from '../store/world.ts';
import {
  type Asked,
  CDS,
  decodeFrame,
  EDS,
  encodeRequest,
  LDS,
  RDS,
  type Response,
  resource,
  TestServer,
} from '../testing/world.ts';

class Fleet {
  now = 0;
  readonly woken: string[] = [];
  readonly #timers: { readonly at: number; readonly work: () => void }[] = [];
  readonly canaries = new Canaries({
    now: () => this.now,
    after: (ms, work) => void this.#timers.push({ at: this.now + ms, work }),
    isOn: true,
  });
  readonly #gates = new IdentityMemo<SharedGate>();
  readonly #owed = new Map<string, object>();

  join(stream: string, build = 'envoy 1', tenant = 'shop'): Waiter {
    const client = { stream, nodeId: stream, build, tenant, wake: () => void this.woken.push(stream) };
    this.canaries.join(client);
    return client;
  }

  wait(ms: number): void {
    this.now += ms;
    for (const timer of this.#timers.splice(0))
      if (timer.at <= this.now) timer.work();
      else this.#timers.push(timer);
  }

  /** Names of what it may be sent. */
  may(client: Waiter, items: readonly Served[], shared = false): readonly string[] {
    const key = items.map(({ id }) => id).join();
    const owed = this.#owed.get(key) ?? {};
    this.#owed.set(key, owed);
    const gate: Gate = this.canaries.gate(
      client,
      () => items,
      shared ? { gates: this.#gates, from: [owed] } : undefined,
    );
    if (gate === 'shut') return [];
    return items.filter((item) => gate === 'open' || !gate(item)).map(({ name }) => name);
  }

  /** The same, and it is sent that. */
  send(client: Waiter, items: readonly Served[], shared = false): readonly string[] {
    const names = this.may(client, items, shared);
    this.canaries.sent(client, [new Batch(items.filter(({ name }) => names.includes(name)))]);
    return names;
  }
}

let lastId = 0;
const hasher = new ContentHasher([1, 2]);
const listener = (name: string, version = '1') => new Served(resource(LDS, name, version), ++lastId, hasher);

describe.each([
  ['alone', false],
  ['together with others', true],
])('looked at %s', (_, shared) => {
  test('a new version goes to one client of a build, and to the others when that one has taken it', () => {
    const fleet = new Fleet();
    const [a, b, c] = ['a', 'b', 'c'].map((name) => fleet.join(name)) as [Waiter, Waiter, Waiter];
    const other = fleet.join('other', 'envoy 2');
    fleet.join('one more', 'envoy 2');
    const item = listener('l');
    expect([a, b, c, other, a].map((each) => fleet.send(each, [item], shared))).toEqual([['l'], [], [], ['l'], ['l']]);
    fleet.canaries.accepted(a, [new Batch([item])]);
    expect(fleet.woken).toEqual(['b', 'c']);
    expect([b, c].map((each) => fleet.send(each, [item], shared))).toEqual([['l'], ['l']]);
  });

  test('a silent one is waited for only so long', () => {
    const fleet = new Fleet();
    const [a, b] = [fleet.join('a'), fleet.join('b')];
    const item = listener('l');
    expect([a, b].map((each) => fleet.send(each, [item], shared))).toEqual([['l'], []]);
    fleet.wait(250);
    expect(fleet.woken).toEqual(['b']);
    expect(fleet.send(b, [item], shared)).toEqual(['l']);
  });

  test('what the first has rejected reaches another one only if nothing has come of it', () => {
    const fleet = new Fleet();
    const [a, b, c] = ['a', 'b', 'c'].map((name) => fleet.join(name)) as [Waiter, Waiter, Waiter];
    const [bad, good] = [listener('bad'), listener('good')];
    fleet.send(a, [bad, good], shared);
    fleet.canaries.rejected(a, [bad], false);
    fleet.canaries.accepted(a, [new Batch([good])]);
    expect(fleet.send(b, [bad, good], shared)).toEqual(['good']);
    fleet.wait(250);
    expect(fleet.send(b, [bad], shared)).toEqual([]);
    fleet.wait(1_750);
    expect([b, c].map((each) => fleet.send(each, [bad], shared))).toEqual([['bad'], []]);
  });

  test('what the first has rejected for a reason of its own is tried by the next one at once, but only once', () => {
    const fleet = new Fleet();
    const [a, b, c] = ['a', 'b', 'c'].map((name) => fleet.join(name)) as [Waiter, Waiter, Waiter];
    const item = listener('l');
    expect([a, b].map((each) => fleet.send(each, [item], shared))).toEqual([['l'], []]);
    fleet.canaries.rejected(a, [item], true);
    expect(fleet.woken).toEqual(['b']);
    expect([b, c].map((each) => fleet.send(each, [item], shared))).toEqual([['l'], []]);
    fleet.canaries.rejected(b, [item], true);
    fleet.wait(250);
    expect(fleet.send(c, [item], shared)).toEqual([]);
  });

  test('who has rejected a version tries the next one, and nobody else tries the same again', () => {
    const fleet = new Fleet();
    const [a, b] = [fleet.join('a'), fleet.join('b')];
    const [bad, again, other] = [listener('l'), listener('l'), listener('l', '2')];
    fleet.send(a, [bad], shared);
    fleet.canaries.rejected(a, [bad], false);
    expect(fleet.send(b, [again], shared)).toEqual([]);
    fleet.wait(250);
    expect(fleet.send(b, [again], shared)).toEqual([]);
    expect([b, a, b].map((each) => fleet.send(each, [other], shared))).toEqual([[], ['l'], []]);
    fleet.canaries.accepted(a, [new Batch([other])]);
    expect(fleet.send(b, [other], shared)).toEqual(['l']);
  });

  test('who has rejected a version and is not there to try the next one is not waited for', () => {
    const fleet = new Fleet();
    const [a, b, c] = ['a', 'b', 'c'].map((name) => fleet.join(name)) as [Waiter, Waiter, Waiter];
    const [bad, next, last] = [listener('l'), listener('l', '2'), listener('l', '3')];
    fleet.send(a, [bad], shared);
    fleet.canaries.rejected(a, [bad], false);
    expect(fleet.send(b, [next], shared)).toEqual([]);
    fleet.wait(250);
    expect([b, c].map((each) => fleet.send(each, [next], shared))).toEqual([['l'], []]);
    fleet.canaries.leave(a);
    expect([c, b].map((each) => fleet.send(each, [last], shared))).toEqual([['l'], []]);
  });

  test('when the first is gone, the next one is tried', () => {
    const fleet = new Fleet();
    const [a, b, c] = ['a', 'b', 'c'].map((name) => fleet.join(name)) as [Waiter, Waiter, Waiter];
    const item = listener('l');
    expect([a, b].map((each) => fleet.send(each, [item], shared))).toEqual([['l'], []]);
    fleet.canaries.leave(a);
    expect(fleet.woken).toEqual(['b']);
    expect([b, c].map((each) => fleet.send(each, [item], shared))).toEqual([['l'], []]);
  });
});

test('what a client was sent and never answered is forgotten, also if nobody waited for it', () => {
  const fleet = new Fleet();
  const [silent, a, b] = ['silent', 'a', 'b'].map((name) => fleet.join(name)) as [Waiter, Waiter, Waiter];
  const item = listener('l');
  expect(fleet.send(silent, [item])).toEqual(['l']);
  for (let i = 0; i < 20; i++) fleet.wait(250);
  expect([a, b].map((each) => fleet.send(each, [item]))).toEqual([['l'], []]);
});

test('nobody waits for a client that is alone', () => {
  const fleet = new Fleet();
  expect(fleet.send(fleet.join('a'), [listener('l')])).toEqual(['l']);
});

test('a table that is made of what is proven is not new', () => {
  const fleet = new Fleet();
  const [a, b] = [fleet.join('a'), fleet.join('b')];
  const [x, y, z] = ['x', 'y', 'z'].map((name) => resource(RDS, name, name).body) as [never, never, never];
  const table = (...parts: readonly never[]) =>
    new Served(
      { ...resource(RDS, 't', parts.map(({ hash }) => hash).join()), body: node([node(parts)]) },
      ++lastId,
      hasher,
    );
  const [first, reordered, longer] = [table(x, y), table(y, x), table(x, y, z)];
  fleet.send(a, [first]);
  fleet.canaries.accepted(a, [new Batch([first])]);
  expect(fleet.send(b, [reordered])).toEqual(['t']);
  expect(fleet.send(a, [longer])).toEqual(['t']);
  expect(fleet.send(b, [longer])).toEqual([]);
});

test('builds beyond a number go without, and a build that is gone makes room', () => {
  const fleet = new Fleet();
  const many = Array.from({ length: 64 }, (_, i) => fleet.join(`a${i}`, `build ${i}`, `tenant ${i}`));
  const [a, b] = [fleet.join('a', 'late'), fleet.join('b', 'late')];
  expect([a, b].map((each) => fleet.send(each, [listener('l')]))).toEqual([['l'], ['l']]);
  fleet.canaries.leave(many[0]!);
  const [c, d] = [fleet.join('c', 'later'), fleet.join('d', 'later')];
  const item = listener('l');
  expect([c, d].map((each) => fleet.send(each, [item]))).toEqual([['l'], []]);
});

test('one tenant does not take the places of all builds', () => {
  const fleet = new Fleet();
  for (let i = 0; i < 64; i++) fleet.join(`a${i}`, `build ${i}`, 'tenant');
  const [a, b] = [fleet.join('a', 'late'), fleet.join('b', 'late')];
  const item = listener('l');
  expect([a, b].map((each) => fleet.send(each, [item]))).toEqual([['l'], []]);
});

describe('those who wait are not woken', () => {
  test('by a client that takes once more what is known', () => {
    const fleet = new Fleet();
    const [a, b, c] = ['a', 'b', 'c'].map((name) => fleet.join(name)) as [Waiter, Waiter, Waiter];
    const [known, item] = [listener('known'), listener('l')];
    fleet.canaries.accepted(c, [new Batch([known])]);
    expect([a, b].map((each) => fleet.send(each, [item]))).toEqual([['l'], []]);
    for (let i = 0; i < 10; i++) fleet.canaries.accepted(c, [new Batch([known])]);
    expect(fleet.woken).toEqual([]);
    fleet.canaries.accepted(c, [new Batch([item])]);
    expect(fleet.woken).toEqual(['b']);
  });

  test('by clients that come and go', () => {
    const fleet = new Fleet();
    const [a, b] = [fleet.join('a'), fleet.join('b')];
    const item = listener('l');
    expect([a, b].map((each) => fleet.send(each, [item]))).toEqual([['l'], []]);
    for (let i = 0; i < 10; i++) fleet.canaries.leave(fleet.join('restless'));
    expect(fleet.woken).toEqual([]);
    fleet.canaries.leave(a);
    expect(fleet.woken).toEqual(['b']);
  });
});

describe('who may lie', () => {
  test('a client that has not proven its tenant is never the first, waits for nobody, and proves nothing', () => {
    const fleet = new Fleet();
    const [nobody, a, b] = [fleet.join('nobody', 'envoy 1', ''), fleet.join('a'), fleet.join('b')];
    const item = listener('l');
    expect([nobody, a, b].map((each) => fleet.send(each, [item]))).toEqual([['l'], ['l'], []]);
    expect(fleet.canaries.holdBack(nobody)).toBe(false);
    fleet.canaries.accepted(nobody, [new Batch([item])]);
    fleet.canaries.rejected(nobody, [item], false);
    expect(fleet.send(b, [item])).toEqual([]);
  });

  test('what one tenant has rejected is tried by another soon; if that takes it, the first one rests', () => {
    const fleet = new Fleet();
    const [liar, mate] = [fleet.join('liar', 'envoy 1', 'tenant'), fleet.join('mate', 'envoy 1', 'tenant')];
    const [a, b] = [fleet.join('a'), fleet.join('b')];
    const item = listener('l');
    expect([liar, mate, a].map((each) => fleet.send(each, [item]))).toEqual([['l'], [], []]);
    fleet.canaries.rejected(liar, [item], false);
    fleet.wait(250);
    expect(fleet.send(a, [item])).toEqual([]);
    fleet.wait(250);
    expect([mate, a, b].map((each) => fleet.send(each, [item]))).toEqual([[], ['l'], []]);
    fleet.canaries.accepted(a, [new Batch([item])]);
    expect([mate, b].map((each) => fleet.send(each, [item]))).toEqual([['l'], ['l']]);
    const next = listener('l', '2');
    expect([liar, mate, a].map((each) => fleet.send(each, [next]))).toEqual([[], [], ['l']]);
    fleet.wait(600_000);
    expect(fleet.send(mate, [listener('l', '3')])).toEqual(['l']);
  });

  test('one that has been silent is not the first again soon, unless nobody else asks', () => {
    const fleet = new Fleet();
    const [silent, a] = [fleet.join('silent'), fleet.join('a')];
    const [first, second, third, last] = ['1', '2', '3', '4'].map((version) => listener('l', version)) as [
      Served,
      Served,
      Served,
      Served,
    ];
    fleet.send(silent, [first]);
    expect(fleet.send(a, [first])).toEqual([]);
    fleet.wait(250);
    expect(fleet.send(a, [first])).toEqual(['l']);
    expect([silent, a].map((each) => fleet.send(each, [second]))).toEqual([[], ['l']]);
    expect(fleet.send(silent, [third])).toEqual([]);
    fleet.wait(250);
    expect(fleet.send(silent, [third])).toEqual(['l']);
    fleet.wait(30_000);
    expect([silent, a].map((each) => fleet.send(each, [last]))).toEqual([['l'], []]);
  });
});

test('however many clients of one tenant reject it, the others are sent it after ten seconds', () => {
  const fleet = new Fleet();
  const item = listener('l');
  item.holders = 1;
  const liars = Array.from({ length: 20 }, (_, i) => fleet.join(`liar ${i}`));
  const honest = fleet.join('honest');
  // One of them always asks just before the honest one.
  const lie = (): void => {
    const at = liars.findIndex((liar) => fleet.send(liar, [item]).length > 0);
    if (at >= 0) fleet.canaries.rejected(liars.splice(at, 1)[0]!, [item], false);
  };
  let waited = 0;
  for (lie(); fleet.may(honest, [item]).length === 0 && waited < 60_000; lie()) {
    fleet.wait(250);
    waited += 250;
  }
  expect(waited).toBe(10_000);
});

test('what clients reject of types that are never tried does not crowd out the rest', () => {
  const fleet = new Fleet();
  const lab = new Lab(true, { canaries: fleet.canaries, tenant: 'shop' });
  const remembered: string[] = [];
  fleet.canaries.rejected = (_, items) => void remembered.push(...items.map(({ name }) => name));
  lab.publish([LDS, 'listener', '1'], [EDS, 'assignment', '1']);
  for (const [typeUrl, name] of [
    [LDS, 'listener'],
    [EDS, 'assignment'],
  ] as const) {
    lab.ask({ typeUrl, names: [name] });
    lab.ask({ typeUrl, nonce: lab.next()!.nonce, error: name });
  }
  expect(remembered).toEqual(['listener']);
});

describe('clients in state of the world', () => {
  /** Clients that take what they are sent, until they are told not to. */
  class Clients {
    readonly fleet = new Fleet();
    readonly #server = new TestServer();
    readonly #view: WorldView;

    constructor() {
      Object.assign(this.#server, { canaries: this.fleet.canaries, tenant: 'shop' });
      this.#view = this.#server.store.enter({ roots: ['mesh'], qualifiers: [] });
    }

    publish(...resources: readonly EncodedResource[]): void {
      this.publishAs([], ...resources);
    }

    /** As part of these rollouts. */
    publishAs(rollouts: readonly Rollout[], ...resources: readonly EncodedResource[]): void {
      const members = resources.map((each) => ({
        ...{ list: 'mesh', typeUrl: each.typeUrl, name: each.name, qualifier: '' },
        resource: each,
        rollouts,
      }));
      this.#server.store.apply({ members, lists: [] });
      this.#server.frames.outdate();
    }

    get rollouts() {
      return this.#server.rollouts;
    }

    connect(version = '') {
      const delivery = this.#server.open(this.#view, false);
      const wanted = new Map<string, readonly string[]>();
      const ask = (asked: Asked): void => delivery.request(encodeRequest(asked, false, this.#server.hasher), 0);
      const next = (): Response | undefined => {
        const frame = delivery.next(0);
        return frame && decodeFrame(frame.slices, false);
      };
      const take = (): void => {
        for (let sent = next(); sent !== undefined; sent = next())
          ask({ ...sent, names: wanted.get(sent.typeUrl) ?? [] });
      };
      const begin = (typeUrl: string, names: readonly string[] = []): void => {
        wanted.set(typeUrl, names);
        ask({ typeUrl, version, names });
      };
      return { begin, next, take };
    }
  }

  test('what restricts clients is sent to all of them at once, and what else has changed is not', () => {
    const clients = new Clients();
    const rollout = clients.rollouts.begin('policy', true);
    clients.publish(resource(LDS, 'inbound', '1'), resource(LDS, 'other', '1'));
    const all = [clients.connect(), clients.connect(), clients.connect()];
    for (const each of all) {
      each.begin(LDS);
      each.take();
    }
    const changed = [resource(LDS, 'inbound', '2'), resource(LDS, 'other', '2')] as const;
    clients.publish(changed[1]);
    clients.publishAs([rollout], changed[0]);
    const got = all.map(({ next }) => next()?.resources).map((each) => [each?.get('inbound'), each?.get('other')]);
    expect(got).toEqual([
      ['2', '2'],
      ['2', '1'],
      ['2', '1'],
    ]);
  });

  test('who cannot be sent something yet has not been silent about it', () => {
    const clients = new Clients();
    clients.publish(resource(LDS, 'l', '1'));
    const others = [clients.connect(), clients.connect()];
    const resumed = clients.connect('before');
    for (const each of [...others, resumed]) {
      each.begin(CDS);
      each.take();
    }
    clients.publish(resource(CDS, 'c', '1'), resource(LDS, 'uses c', '1', ['c']));
    for (const each of others) {
      each.begin(LDS);
      each.take();
    }
    resumed.next();
    resumed.begin(LDS);
    // It has yet to accept the cluster, and nobody knows what it has of the listener that uses it.
    expect(resumed.next()).toBeUndefined();
    clients.publish(resource(LDS, 'l', '2'));
    expect([resumed, ...others].map(({ next }) => next())).toEqual([undefined, undefined, undefined]);
    clients.fleet.wait(250);
    expect(others.map(({ next }) => next()?.resources.get('l'))).toEqual(['2', undefined]);
  });

  test('who waits for a new version of a cluster goes on with the assignment of the former one', () => {
    const clients = new Clients();
    clients.publish(resource(CDS, 'c', '1'), resource(EDS, 'c', '1'));
    const [first, second] = [clients.connect(), clients.connect()];
    for (const each of [first, second]) {
      each.begin(CDS);
      each.begin(EDS, ['c']);
      each.take();
    }
    clients.publish(resource(CDS, 'c', '2'), resource(EDS, 'c', '2'));
    expect(first.next()).toMatchObject({ typeUrl: CDS });
    expect(second.next()).toBeUndefined();
    clients.fleet.wait(250);
    expect([second.next(), second.next()]).toMatchObject([{ typeUrl: CDS }, { typeUrl: EDS }]);
  });

  test('an assignment alone waits for nobody', () => {
    const clients = new Clients();
    clients.publish(resource(CDS, 'c', '1'), resource(EDS, 'c', '1'));
    const both = [clients.connect(), clients.connect()];
    for (const each of both) {
      each.begin(CDS);
      each.begin(EDS, ['c']);
      each.take();
    }
    clients.publish(resource(EDS, 'c', '2'));
    expect(both.map(({ next }) => next())).toMatchObject([{ typeUrl: EDS }, { typeUrl: EDS }]);
  });
});
