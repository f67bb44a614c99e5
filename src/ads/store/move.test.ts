import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { ContentHasher } from './content-hash.ts';
import type { FormerWorld } from './former-world.ts';
import { Move } from './move.ts';
import type { ListChange, MemberChange, World } from './publication.ts';
import { Store } from './store.ts';
import { ModelClient } from '../testing/model-client.ts';
import { CDS, decodeFrame, EDS, encodeRequest, resource, TestServer } from '../testing/world.ts';
import type { WorldView } from './world.ts';
import { runs } from '../../testing/runs.ts';

const hasher = new ContentHasher([1, 2]);
const member = (list: string, name: string, content: string | undefined, qualifier = ''): MemberChange => {
  const base = { list, typeUrl: CDS, name, qualifier };
  return content === undefined ? base : { ...base, resource: resource(CDS, name, content) };
};

/** `common` is reached from both roots, the others from one. */
function twoScopes(): Store {
  const store = new Store(hasher);
  store.apply({
    members: [
      ...Array.from({ length: 100 }, (_, i) => member('common', `c${i}`, '1')),
      member('left', 'l', '1'),
      member('left', 'both', '1'),
      member('right', 'r', '1'),
      member('right', 'both', '2'),
    ],
    lists: [
      { list: 'one', children: ['common', 'left'] },
      { list: 'two', children: ['common', 'right'] },
    ],
  });
  return store;
}

const enter = (store: Store, root: string): WorldView => store.enter({ roots: [root], qualifiers: [] });
function names(before: FormerWorld, after: WorldView, typeUrl = CDS): string[] {
  const differences = new Move(before, after).of(typeUrl);
  for (const [name, { was, now }] of differences) {
    expect([was, now]).toEqual([before.resolve(typeUrl, name), after.resolve(typeUrl, name)]);
  }
  return [...differences.keys()].sort();
}

describe('a move', () => {
  test('looks at no list that both worlds have', () => {
    const store = twoScopes();
    const before = store.remember(enter(store, 'one'));
    expect(names(before, enter(store, 'two'))).toEqual(['both', 'l', 'r']);
    before.release();
  });

  test('looks at what has changed in such a list since', () => {
    const store = twoScopes();
    const before = store.remember(enter(store, 'one'));
    store.apply({ members: [member('common', 'c7', '2'), member('common', 'new', '1')], lists: [] });
    store.apply({ members: [member('common', 'c7', '3')], lists: [] });
    const after = enter(store, 'two');
    expect(names(before, after)).toEqual(['both', 'c7', 'l', 'new', 'r']);
    expect([before.resolve(CDS, 'c7')?.version, after.resolve(CDS, 'c7')?.version]).toEqual(['1', '3']);
    expect(before.resolve(CDS, 'new')).toBeUndefined();
  });

  test('knows what was seen when nobody sees it any more', () => {
    const store = twoScopes();
    const one = enter(store, 'one');
    const before = store.remember(one);
    const after = enter(store, 'two');
    store.leave(one);
    const gone = ['l', 'both'].map((name) => member('left', name, undefined));
    store.apply({ members: gone, lists: [{ list: 'one' }] });
    expect(['l', 'both', 'c1', 'r'].map((name) => before.resolve(CDS, name)?.version)).toEqual([
      '1',
      '1',
      '1',
      undefined,
    ]);
    expect(names(before, after)).toEqual(['both', 'l', 'r']);
  });

  test('is from what the stream saw, not from what another saw that left earlier', () => {
    const store = twoScopes();
    const one = enter(store, 'one');
    const early = store.remember(one);
    store.apply({ members: [member('left', 'l', '2')], lists: [] });
    const late = store.remember(one);
    expect([early, late].map((before) => before.resolve(CDS, 'l')?.version)).toEqual(['1', '2']);
  });

  test('leaves nothing behind', () => {
    const store = twoScopes();
    const one = enter(store, 'one');
    const [first, second] = [store.remember(one), store.remember(one)];
    expect(second.roots).toEqual(first.roots);
    const { lists } = one.roots[0]!;
    first.release();
    expect([...lists.keys()].every((list) => list.formers?.size === 1)).toBe(true);
    second.release();
    expect([...lists.keys()].every((list) => list.formers === undefined)).toBe(true);
    // What was released notes nothing any more.
    expect(store.remember(one).roots[0]).not.toBe(first.roots[0]);
  });

  test('between roots in another order looks at what several of them have', () => {
    const store = twoScopes();
    const before = store.remember(store.enter({ roots: ['one', 'two'], qualifiers: [] }));
    const after = store.enter({ roots: ['two', 'one'], qualifiers: [] });
    expect(names(before, after)).toEqual(['both']);
  });

  test('between qualifiers looks at what has variants', () => {
    const store = twoScopes();
    store.apply({
      members: [member('common', 'zonal', 'e', 'east'), member('common', 'zonal', 'w', 'west')],
      lists: [],
    });
    const before = store.remember(store.enter({ roots: ['one'], qualifiers: ['east'] }));
    const after = store.enter({ roots: ['one'], qualifiers: ['west'] });
    expect(names(before, after)).toEqual(['zonal']);
    expect([before.resolve(CDS, 'zonal')?.version, after.resolve(CDS, 'zonal')?.version]).toEqual(['e', 'w']);
  });
});

describe('a stream that is told to move', () => {
  function stream(): { server: TestServer; client: ModelClient; views: Record<'one' | 'two', WorldView> } {
    const server = new TestServer();
    server.store.apply({
      members: [member('one', 'a', '1'), member('one', 'b', '1'), member('two', 'b', '2')],
      lists: [],
    });
    const views = { one: enter(server.store, 'one'), two: enter(server.store, 'two') };
    const client = new ModelClient(server, server.open(views.one, true), true, [CDS]);
    client.subscribe(CDS, [], true);
    client.send(0);
    sent(client);
    client.receive({ applied: 0, names: true });
    client.send(0);
    return { server, client, views };
  }

  /** The resources of the next response, as the client has them in its log. */
  function sent(client: ModelClient): string | undefined {
    return client.write(0) ? client.log.at(-1)!.replace(/^< cds \d+: (.*) -.*$/, '$1') : undefined;
  }

  test('is sent nothing when it is told to come back before its turn', () => {
    const { client, views } = stream();
    client.delivery.move(views.two);
    client.delivery.move(views.one);
    expect(sent(client)).toBeUndefined();
    expect(client.delivery.isBehind).toBe(false);
  });

  test('hears each change once, whether it came before, between or after', () => {
    const { server, client, views } = stream();
    const change = (list: string, name: string, content: string | undefined): void =>
      server.store.apply({ members: [member(list, name, content)], lists: [] });
    change('one', 'a', '2');
    client.delivery.move(views.two);
    change('one', 'a', undefined);
    change('two', 'a', '3');
    client.delivery.move(views.one);
    client.delivery.move(views.two);
    change('two', 'b', '3');
    expect(sent(client)?.split(' ').sort()).toEqual(['a=3', 'b=3']);
    change('two', 'b', '4');
    change('one', 'b', '9');
    expect(sent(client)).toBe('b=4');
  });

  test('that ends meanwhile is forgotten', () => {
    const { server, client, views } = stream();
    client.delivery.move(views.two);
    client.delivery.close();
    const lists = [...views.one.roots, ...views.two.roots].flatMap((root) => [...root.lists.keys()]);
    expect(lists.every((list) => list.formers === undefined)).toBe(true);
    expect(views.one.watched || views.two.watched).toBe(false);
    for (const view of Object.values(views)) server.store.leave(view);
    expect(server.store.size).toMatchObject({ worlds: 0, roots: 0 });
  });
});

test('streams that move together under a wildcard keep what they asked for by name', () => {
  const server = new TestServer();
  const item = { typeUrl: EDS, name: 'a', qualifier: '', resource: resource(EDS, 'a', '1') };
  server.store.apply({ members: [{ list: 'one', ...item }], lists: [] });
  const outcomes = [['*'], ['*', 'a']]
    .map((names) => {
      const delivery = server.open(enter(server.store, 'one'), true);
      const next = () => {
        const frame = delivery.next(0);
        return frame && decodeFrame(frame.slices, true);
      };
      delivery.request(encodeRequest({ typeUrl: EDS, names }, true, server.hasher), 0);
      delivery.request(encodeRequest({ typeUrl: EDS, nonce: next()!.nonce }, true, server.hasher), 0);
      delivery.move(enter(server.store, 'two'));
      return { delivery, next };
    })
    .map(({ delivery, next }) => [next()?.removed, delivery.subscriptions[1]!.ledger.kept?.size]);
  expect(outcomes).toEqual([
    [['a'], undefined],
    [undefined, 1],
  ]);
});

describe.each([
  ['delta', true],
  ['state of the world', false],
])('streams that move together, over %s', (_, delta) => {
  const many = Array.from({ length: 200 }, (_each, i) => `c${i}`);

  /** Clients of one world that has `many` clusters, of which the other world has the first half, one of them changed. */
  function together(): { server: TestServer; views: Record<'one' | 'two', WorldView>; clients: ModelClient[] } {
    const server = new TestServer();
    server.store.apply({
      members: [
        ...many.map((name) => member('one', name, '1')),
        ...many.slice(0, 100).map((name) => member('two', name, name === 'c0' ? '2' : '1')),
      ],
      lists: [],
    });
    const views = { one: enter(server.store, 'one'), two: enter(server.store, 'two') };
    const clients = Array.from(
      { length: 3 },
      () => new ModelClient(server, server.open(views.one, delta), delta, [CDS]),
    );
    for (const client of clients) {
      client.subscribe(CDS, [], true);
      settle(client, 0);
    }
    return { server, views, clients };
  }

  function settle(client: ModelClient, now: number): void {
    while (client.send(now) || client.write(now) || client.receive({ applied: 0, names: true }));
  }

  const contentOf = (client: ModelClient): Record<string, string> => Object.fromEntries(client.types.get(CDS)!.held);
  const all = (first: string, count: number): Record<string, string> =>
    Object.fromEntries(many.slice(0, count).map((name, i) => [name, i === 0 ? first : '1']));

  test('are told what is published by what was worked out for the first of them', () => {
    const { server, views, clients } = together();
    server.store.apply({ members: many.map((name) => member('one', name, '3')), lists: [] });
    const [first, ...others] = clients;
    settle(first!, 0);
    const spy = vi.spyOn(views.one, 'resolve');
    for (const client of others) client.write(0);
    expect(spy).not.toHaveBeenCalled();
    spy.mockRestore();
    for (const client of clients) {
      settle(client, 0);
      expect(contentOf(client)).toEqual(Object.fromEntries(many.map((name) => [name, '3'])));
    }
  });

  test('are compared and answered by what was worked out for the first of them', () => {
    const { server, views, clients } = together();
    for (const client of clients) client.delivery.move(views.two);
    const looks = clients.map((client) => {
      const spy = vi.spyOn(views.two, 'resolve');
      settle(client, 0);
      const calls = spy.mock.calls.length;
      spy.mockRestore();
      return calls;
    });
    expect(looks[0]).toBeGreaterThan(100);
    expect(looks.slice(1)).toEqual([0, 0]);
    // Clusters that left the world stay for a while, and all of them go at once.
    for (const client of clients) expect(contentOf(client)).toEqual(all('2', 200));
    for (const now of [1_000, 60_000, 120_000, 180_000]) {
      for (const client of clients) {
        client.delivery.tick(now);
        settle(client, now);
      }
    }
    for (const client of clients) expect(contentOf(client)).toEqual(all('2', 100));
    expect(server.rejections).toEqual([]);
  });

  test('let go together of what left the world, came back in time and left again', () => {
    const { views, clients } = together();
    const pass = (seconds: number): void => {
      for (const client of clients) {
        client.delivery.tick(seconds * 1_000);
        settle(client, seconds * 1_000);
      }
    };
    for (const client of clients) client.delivery.move(views.two);
    pass(1);
    for (const root of ['one', 'two'] as const) {
      for (const client of clients) client.delivery.move(views[root]);
      for (const client of clients) settle(client, 1_500);
    }
    const owed = (): unknown[] => clients.map((client) => client.delivery.subscriptions[0]!.ledger.pending);
    for (let now = 2_000; owed()[0] === undefined && now < 180_000; now += 1_000)
      for (const client of clients) client.delivery.tick(now);
    const [first, ...others] = owed();
    expect(first).toHaveProperty('size', 100);
    // One map for all of them.
    for (const other of others) expect(other).toBe(first);
  });

  test('go on alone where one of them deviates', () => {
    const { views, clients } = together();
    const [alone, ...others] = clients;
    for (const client of clients) client.delivery.move(views.two);
    for (const client of clients) settle(client, 0);
    // It leaves what it has, and comes back while the others keep what left the world.
    alone!.unsubscribe(CDS, [], true);
    settle(alone!, 1_000);
    alone!.subscribe(CDS, ['c0', 'c150'], false);
    settle(alone!, 1_000);
    for (const client of clients) client.delivery.move(views.one);
    for (const client of clients) settle(client, 2_000);
    expect(contentOf(alone!)).toEqual({ c0: '1', c150: '1' });
    for (const client of others) expect(contentOf(client)).toEqual(all('1', 200));
  });
});

const KEYS = ['r', 's', 'x', 'y', 'z'];
const NAMES = ['0', '1', '2', '3'];
const QUALIFIERS = [[], ['q1'], ['q2'], ['q2', 'q1']];
const small = (max: number): fc.Arbitrary<number> => fc.integer({ min: 0, max: max - 1 });
const publication = fc.record({
  members: fc.array(fc.record({ list: small(5), name: small(4), content: small(4), qualifier: small(3) }), {
    maxLength: 4,
  }),
  // Children come later in the alphabet, so that there are no cycles.
  lists: fc.array(
    fc.record({ list: small(4), children: fc.option(fc.uniqueArray(small(5), { maxLength: 3 }), { freq: 4 }) }),
    { maxLength: 2 },
  ),
});
const world: fc.Arbitrary<World> = fc.record({
  roots: fc.uniqueArray(fc.constantFrom(...KEYS), { maxLength: 2 }),
  qualifiers: fc.constantFrom(...QUALIFIERS),
  excluded: fc.uniqueArray(fc.constantFrom(...NAMES), { maxLength: 1 }),
});

test('what was seen is known exactly, and no difference is missed, whatever is published meanwhile', () => {
  fc.assert(
    fc.property(
      fc.array(publication, { maxLength: 10 }),
      world,
      fc.array(publication, { maxLength: 10 }),
      world,
      (earlier, from, later, to) => {
        const store = new Store(hasher);
        /** A name is in one list at a time and has one variant for a qualifier, so that nothing is ambiguous. */
        const held = new Map<string, { list: string; qualifier: string }>();
        const publish = (each: (typeof earlier)[number]): void => {
          const members: MemberChange[] = [];
          for (const { list, name, content, qualifier } of each.members) {
            const at = { list: KEYS[list]!, qualifier: name < 2 ? '' : `q${qualifier}` };
            const before = held.get(`${name}`);
            if (before !== undefined) members.push(member(before.list, `${name}`, undefined, before.qualifier));
            if (content === 0) held.delete(`${name}`);
            else {
              held.set(`${name}`, at);
              members.push(member(at.list, `${name}`, `${content}`, at.qualifier));
            }
          }
          const lists = each.lists.map(({ list, children }): ListChange => {
            const key = KEYS[list]!;
            if (children === null) {
              for (const [name, { list: of }] of [...held]) if (of === key) held.delete(name);
              return { list: key };
            }
            return { list: key, children: children.filter((i) => i > list).map((i) => KEYS[i]!) };
          });
          store.apply({ members, lists });
        };
        earlier.forEach(publish);
        const left = store.enter(from);
        const seen = NAMES.map((name) => left.resolve(CDS, name));
        const before = store.remember(left);
        store.leave(left);
        later.forEach(publish);
        const after = store.enter(to);
        expect(NAMES.map((name) => before.resolve(CDS, name))).toEqual(seen);
        const looked = names(before, after);
        NAMES.forEach((name, i) => {
          if (after.resolve(CDS, name)?.version !== seen[i]?.version) expect(looked).toContain(name);
        });
        expect(names(before, after, EDS).filter((name) => !NAMES.includes(name))).toEqual([]);
        before.release();
        store.leave(after);
        expect(store.size).toMatchObject({ worlds: 0, roots: 0 });
      },
    ),
    { numRuns: runs(2000) },
  );
});
