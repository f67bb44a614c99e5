import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { MemberChange, Publication } from './publication.ts';
import { ModelClient } from './testing/model-client.ts';
import { CDS, EDS, LDS, RDS, resource, TestServer } from './testing/world.ts';

const NAMES = ['a', 'b', 'c', 'd', 'e'];
const URLS = [CDS, EDS, LDS, RDS];
/** `near` and `far` are children of `root`, as long as they are; `other` is a root of its own. */
const LISTS = ['near', 'far', 'other'];

type Step =
  | { do: 'set'; url: number; name: number; list: number; content: number }
  | { do: 'move'; roots: number }
  | { do: 'children'; near: boolean; far: boolean }
  | { do: 'subscribe'; url: number; names: number[] }
  | { do: 'unsubscribe'; url: number; name: number }
  | { do: 'receive' }
  | { do: 'answer'; url: number; some: number }
  | { do: 'wait'; ms: number };

const nat = (max: number): fc.Arbitrary<number> => fc.integer({ min: 0, max: max - 1 });

const step = (refusing: boolean): fc.Arbitrary<Step> =>
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        do: fc.constant('set' as const),
        url: nat(4),
        name: nat(NAMES.length),
        list: nat(LISTS.length),
        content: nat(refusing ? 6 : 5),
      }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('move' as const), roots: nat(3) }) },
    {
      weight: 1,
      arbitrary: fc.record({ do: fc.constant('children' as const), near: fc.boolean(), far: fc.boolean() }),
    },
    {
      weight: 3,
      arbitrary: fc.record({
        do: fc.constant('subscribe' as const),
        url: nat(4),
        names: fc.uniqueArray(nat(NAMES.length), { maxLength: 4 }),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ do: fc.constant('unsubscribe' as const), url: nat(4), name: nat(NAMES.length) }),
    },
    { weight: 4, arbitrary: fc.constant({ do: 'receive' as const }) },
    { weight: 6, arbitrary: fc.record({ do: fc.constant('answer' as const), url: nat(4), some: nat(4) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: nat(20_000) }) },
  );

const ROOTS = [['root'], ['root', 'other'], ['other']];

/** Runs a history, and then lets everything come to rest. */
function run(
  steps: readonly Step[],
  delta: boolean,
  overdueMs: number,
): { client: ModelClient; server: TestServer; expected: Expected } {
  const server = new TestServer();
  server.times = { ...server.times, overdueMs, stuckMs: overdueMs / 10 };
  const publish = (publication: Partial<Publication>): void => {
    server.store.apply({ members: [], lists: [], ...publication });
    server.frames.outdate();
  };
  publish({ lists: [{ list: 'root', children: ['near', 'far'] }] });
  let view = server.store.enter({ roots: ['root'], qualifiers: [] });
  const client = new ModelClient(server, server.open(view, delta), delta);
  /** Type and name -> list and content. */
  const truth = new Map<string, { list: string; content: string }>();
  let reachable = new Set(['near', 'far']);
  let roots = ['root'];
  let now = 0;
  for (const action of steps) {
    switch (action.do) {
      case 'set': {
        const [typeUrl, name, list] = [URLS[action.url]!, NAMES[action.name]!, LISTS[action.list]!];
        const key = `${typeUrl} ${name}`;
        const before = truth.get(key);
        const members: MemberChange[] = [];
        if (before !== undefined && before.list !== list)
          members.push({ list: before.list, typeUrl, name, qualifier: '' });
        if (action.content === 0) {
          truth.delete(key);
          if (before?.list === list) members.push({ list, typeUrl, name, qualifier: '' });
        } else {
          const content = action.content === 5 ? 'bad' : `v${action.content}`;
          truth.set(key, { list, content });
          members.push({ list, typeUrl, name, qualifier: '', resource: resource(typeUrl, name, content) });
        }
        publish({ members });
        break;
      }
      case 'move': {
        const former = view;
        roots = ROOTS[action.roots]!;
        view = server.store.enter({ roots, qualifiers: [] });
        client.delivery.move(view);
        server.store.leave(former);
        break;
      }
      case 'children': {
        const children = [...(action.near ? ['near'] : []), ...(action.far ? ['far'] : [])];
        reachable = new Set(children);
        publish({ lists: [{ list: 'root', children }] });
        break;
      }
      case 'subscribe':
        client.subscribe(
          URLS[action.url]!,
          action.names.map((name) => NAMES[name]!),
          now,
        );
        break;
      case 'unsubscribe':
        client.unsubscribe(URLS[action.url]!, NAMES[action.name]!, now);
        break;
      case 'receive':
        client.receive(now);
        break;
      case 'answer':
        client.answer(URLS[action.url]!, action.some, now);
        break;
      case 'wait':
        now += action.ms;
        client.delivery.tick(now);
        break;
    }
  }
  for (let round = 0; round < 60; round++) {
    now += 1_000;
    client.delivery.tick(now);
    let busy = true;
    for (let i = 0; busy; i++) {
      if (i > 500) throw new Error('it does not come to rest');
      busy = client.receive(now);
      for (const typeUrl of URLS) while (client.answer(typeUrl, 1, now)) busy = true;
    }
  }
  const sees = (list: string): boolean =>
    list === 'other' ? roots.includes('other') : roots.includes('root') && reachable.has(list);
  const expected: Expected = new Map(
    URLS.map((typeUrl) => [
      typeUrl,
      new Map(
        NAMES.flatMap((name): [string, string][] => {
          const found = truth.get(`${typeUrl} ${name}`);
          return found !== undefined && sees(found.list) ? [[name, found.content]] : [];
        }),
      ),
    ]),
  );
  return { client, server, expected };
}

type Expected = Map<string, Map<string, string>>;

function check(steps: readonly Step[], delta: boolean, refusing: boolean): void {
  // What an overdue answer makes the server send again is no repetition without a reason.
  const { client, expected } = run(steps, delta, refusing ? 10_000 : Infinity);
  for (const [typeUrl, type] of client.types) {
    if (!type.requested) continue;
    const world = expected.get(typeUrl)!;
    const keeps = typeUrl === EDS || typeUrl === RDS;
    for (const name of NAMES) {
      const wanted = type.wildcard || type.names.has(name);
      const held = type.held.get(name);
      const present = world.get(name);
      if (!wanted) expect(held, `${typeUrl} ${name} is not subscribed`).toBeUndefined();
      else if (present === undefined && keeps) expect(held, `${typeUrl} ${name} was not answered`).toBeDefined();
      else if (present === 'bad') expect(held, `${typeUrl} ${name} is refused`).not.toBe('bad');
      else expect(held, `${typeUrl} ${name}`).toBe(present);
    }
    const state = client.delivery.subscriptions.find((each) => each?.type.typeUrl === typeUrl)!;
    expect(state.inFlight.size, `${typeUrl} waits for answers`).toBe(0);
    expect(state.owes, `${typeUrl} owes`).toBe(false);
  }
  if (!refusing) expect(client.repeated).toEqual([]);
}

describe.each([
  ['delta', true],
  ['state of the world', false],
])('over %s', (_, delta) => {
  test('a client ends up with what its world has, and is never sent what it has', () => {
    fc.assert(
      fc.property(fc.array(step(false), { maxLength: 80, size: 'max' }), (steps) => check(steps, delta, false)),
      { numRuns: 1500 },
    );
  });

  test('refusals cost a client nothing but the refused versions', () => {
    fc.assert(
      fc.property(fc.array(step(true), { maxLength: 80, size: 'max' }), (steps) => check(steps, delta, true)),
      { numRuns: 1500 },
    );
  });
});
