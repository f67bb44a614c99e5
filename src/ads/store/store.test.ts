import fc from 'fast-check';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { ContentHasher } from './content-hash.ts';
import type { Changes, News } from './forest.ts';
import { NameSets } from './name-set.ts';
import type { ListChange, MemberChange, World } from './publication.ts';
import type { Batch } from './served.ts';
import { Store } from './store.ts';
import { CDS, EDS, resource } from '../testing/world.ts';
import type { WorldView } from './world.ts';
import { runs } from '../../testing/runs.ts';

const hasher = new ContentHasher([1, 2]);

const member = (
  list: string,
  name: string,
  content: string | undefined,
  qualifier = '',
  typeUrl = CDS,
): MemberChange => ({
  list,
  typeUrl,
  name,
  qualifier,
  ...(content === undefined ? {} : { resource: resource(typeUrl, name, content) }),
});

function contents(view: WorldView, typeUrl = CDS): Record<string, string> {
  return Object.fromEntries(view.all(typeUrl).flatMap((batch) => batch.items.map((item) => [item.name, item.version])));
}

/** Records what it is told: name -> versions before and after. */
class Listener {
  heard = new Map<string, [string | undefined, string | undefined]>();
  readonly #qualifiers: readonly string[];

  constructor(qualifiers: readonly string[]) {
    this.#qualifiers = qualifiers;
  }

  changed({ changes }: News): void {
    for (const [typeUrl, names] of changes) {
      for (const [name, list] of names) {
        for (const { qualifier, was, now } of list) {
          if (qualifier !== '' && !this.#qualifiers.includes(qualifier)) continue;
          const key = `${typeUrl} ${name}`;
          const former = this.heard.get(key);
          this.heard.set(key, [former?.[0] ?? was?.version, now?.version ?? former?.[1]]);
        }
      }
    }
  }
}

test('the variants of a name are copied once per publication, and not searched, however many change', () => {
  const store = new Store(hasher);
  const change = (content: string): MemberChange[] =>
    Array.from({ length: 2_000 }, (_, i) => member('scope', 'a', content, `place ${i}`, EDS));
  store.apply({ members: change('1'), lists: [] });
  const added = vi.spyOn(Map.prototype, 'set');
  const searches = vi.spyOn(Array.prototype, 'findIndex');
  onTestFinished(() => void vi.restoreAllMocks());
  store.apply({ members: change('2'), lists: [] });
  expect(added.mock.calls.length).toBeLessThan(20 * 2_000);
  expect(searches.mock.calls.length).toBeLessThan(100);
});

describe('a world', () => {
  test('has what its roots reach, through lists of lists', () => {
    const store = new Store(hasher);
    store.apply({
      members: [member('leaf', 'a', '1'), member('scope', 'b', '1'), member('elsewhere', 'c', '1')],
      lists: [
        { list: 'scope', children: ['middle'] },
        { list: 'middle', children: ['leaf'] },
      ],
    });
    const view = store.enter({ roots: ['scope'], qualifiers: [] });
    expect(contents(view)).toEqual({ a: '1', b: '1' });
    expect(view.resolve(CDS, 'a')?.version).toBe('1');
    expect(view.resolve(CDS, 'c')).toBeUndefined();
    expect(view.resolve(EDS, 'a')).toBeUndefined();
  });

  test.each([
    ['the first root is the larger one', ['x', 'y', 'z']],
    ['the second is', []],
    ['the bytes are the same', ['x', 'y', 'z'], '1'],
  ])('gives a name that two roots have once, as the first has it, when %s', (_, more, second = '2') => {
    const store = new Store(hasher);
    store.apply({
      members: [
        member('first', 'a', '1'),
        member('second', 'a', second),
        member('second', 'b', '2'),
        ...more.map((name) => member(`child ${name}`, name, '1')),
        ...['u', 'v'].map((name) => member(`other ${name}`, name, '2')),
      ],
      lists: [
        { list: 'first', children: more.map((name) => `child ${name}`) },
        { list: 'second', children: ['other u', 'other v'] },
      ],
    });
    const view = store.enter({ roots: ['first', 'second'], qualifiers: [] });
    const expected = ['a 1', 'b 2', 'u 2', 'v 2', ...more.map((name) => `${name} 1`)];
    const given = (batches: readonly Batch[]): string[] =>
      batches.flatMap(({ items }) => items.map(({ name, version }) => `${name} ${version}`)).sort();
    expect(given(view.all(CDS))).toEqual(expected);
    const sets = new NameSets(hasher);
    const names = sets.with(sets.empty, ['a', 'b', 'u', 'v', ...more]);
    expect(given(view.select(CDS, names).batches)).toEqual(expected);
    expect(view.resolve(CDS, 'a')?.version).toBe('1');
  });

  test('has the variants of its qualifiers', () => {
    const store = new Store(hasher);
    store.apply({
      members: [member('l', 'a', 'east', 'zone-east'), member('l', 'a', 'west', 'zone-west'), member('l', 'b', '1')],
      lists: [],
    });
    const east = store.enter({ roots: ['l'], qualifiers: ['zone-east'] });
    const west = store.enter({ roots: ['l'], qualifiers: ['zone-west'] });
    const none = store.enter({ roots: ['l'], qualifiers: [] });
    expect([east, west, none].map((view) => contents(view))).toEqual([
      { a: 'east', b: '1' },
      { a: 'west', b: '1' },
      { b: '1' },
    ]);
    store.apply({ members: [member('l', 'a', undefined, 'zone-west')], lists: [] });
    expect(west.resolve(CDS, 'a')).toBeUndefined();
    expect(east.resolve(CDS, 'a')?.version).toBe('east');
  });

  test('is shared by all who have the same roots, and forgotten with the last of them', () => {
    const store = new Store(hasher);
    const first = store.enter({ roots: ['a', 'b'], qualifiers: [] });
    const second = store.enter({ roots: ['a', 'b'], qualifiers: [] });
    expect(second).toBe(first);
    store.leave(first);
    expect(store.size).toMatchObject({ worlds: 1, roots: 2 });
    store.leave(second);
    expect(store.size).toEqual({ worlds: 0, roots: 0, lists: 0, resources: 0 });
  });

  test('keeps no list of which a member is removed that was not there', () => {
    const store = new Store(hasher);
    store.apply({ members: [member('l', 'a', undefined)], lists: [{ list: 'm' }] });
    expect(store.size.lists).toBe(0);
  });

  test('tells the names that it does not have', () => {
    const store = new Store(hasher);
    store.apply({ members: [member('l', 'a', '1'), member('own', 'b', '1')], lists: [] });
    const view = store.enter({ roots: ['own', 'l'], qualifiers: [] });
    const sets = new NameSets(hasher);
    const names = sets.with(sets.empty, ['a', 'b', 'c']);
    const { batches, missing } = view.select(CDS, names);
    expect(batches.flatMap((batch) => batch.items.map((item) => item.name)).sort()).toEqual(['a', 'b']);
    expect(missing).toEqual(['c']);
  });

  test('keeps one object for the same bytes in many lists', () => {
    const store = new Store(hasher);
    store.apply({ members: [member('one', 'in', '1'), member('two', 'in', '1')], lists: [] });
    const one = store.enter({ roots: ['one'], qualifiers: [] });
    const two = store.enter({ roots: ['two'], qualifiers: [] });
    expect(one.resolve(CDS, 'in')).toBe(two.resolve(CDS, 'in'));
    expect(store.size.resources).toBe(1);
  });
});

describe('a change', () => {
  test('concerns only those who reach it', () => {
    const store = new Store(hasher);
    store.apply({ members: [member('shared', 'a', '1')], lists: [{ list: 'one', children: ['shared'] }] });
    const heard: string[] = [];
    for (const root of ['one', 'two']) {
      store.enter({ roots: [root], qualifiers: [] }).watchers.add({ changed: () => heard.push(root) });
    }
    store.apply({ members: [member('shared', 'a', '2')], lists: [] });
    expect(heard).toEqual(['one']);
  });

  test('that puts what was there is none', () => {
    const store = new Store(hasher);
    store.apply({ members: [member('l', 'a', '1')], lists: [] });
    const heard: Changes[] = [];
    store.enter({ roots: ['l'], qualifiers: [] }).watchers.add({ changed: ({ changes }) => heard.push(changes) });
    store.apply({ members: [member('l', 'a', '1')], lists: [{ list: 'l', children: [] }] });
    expect(heard).toEqual([]);
  });

  test('that moves a resource between lists of a world is one change', () => {
    const store = new Store(hasher);
    store.apply({ members: [member('x', 'a', '1')], lists: [{ list: 'root', children: ['x', 'y'] }] });
    const listener = new Listener([]);
    store.enter({ roots: ['root'], qualifiers: [] }).watchers.add(listener);
    store.apply({ members: [member('y', 'a', '2'), member('x', 'a', undefined)], lists: [] });
    expect([...listener.heard]).toEqual([[`${CDS} a`, ['1', '2']]]);
  });
});

type Step =
  | {
      do: 'apply';
      members: { list: number; name: number; content: number; qualifier: number }[];
      lists: { list: number; children: number[] | null }[];
    }
  | { do: 'enter'; roots: number[]; excluded: number[] }
  | { do: 'leave'; which: number };

const KEYS = ['r', 's', 'x', 'y', 'z'];
const small = (max: number): fc.Arbitrary<number> => fc.integer({ min: 0, max: max - 1 });
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 5,
      arbitrary: fc.record({
        do: fc.constant('apply' as const),
        members: fc.array(fc.record({ list: small(5), name: small(4), content: small(4), qualifier: small(3) }), {
          maxLength: 4,
        }),
        // Children come later in the alphabet, so that there are no cycles.
        lists: fc.array(
          fc.record({ list: small(4), children: fc.option(fc.uniqueArray(small(5), { maxLength: 3 }), { freq: 4 }) }),
          { maxLength: 2 },
        ),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        do: fc.constant('enter' as const),
        roots: fc.uniqueArray(small(5), { maxLength: 2 }),
        excluded: fc.uniqueArray(small(4), { maxLength: 2 }),
      }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('leave' as const), which: small(4) }) },
  ),
  { maxLength: 40, size: 'max' },
);

test('a list that has no children any more keeps its members', () => {
  const store = new Store(hasher);
  store.apply({ members: [member('l', 'a', '1'), member('m', 'b', '1')], lists: [{ list: 'l', children: ['m'] }] });
  const view = store.enter({ roots: ['l'], qualifiers: [] });
  store.apply({ members: [], lists: [{ list: 'l' }] });
  expect(contents(view)).toEqual({ a: '1' });
  store.apply({ members: [member('l', 'a', undefined), member('m', 'b', undefined)], lists: [] });
  store.leave(view);
  expect(store.size).toEqual({ lists: 0, roots: 0, worlds: 0, resources: 0 });
});

test('the store answers as if it were built anew after each publication, and tells exactly what changed', () => {
  fc.assert(
    fc.property(steps, (history) => {
      const store = new Store(hasher);
      const members = new Map<string, Map<string, string>>();
      const children = new Map<string, string[]>();
      const worlds: { world: World; view: WorldView; listener: Listener; before: Map<string, string> }[] = [];

      /** Name -> version. A name is in one list at a time, so that nothing is ambiguous. */
      const scratch = ({ roots, qualifiers, excluded = [] }: World): Map<string, string> => {
        const seen = new Set<string>();
        const visit = (list: string): void => {
          if (seen.has(list)) return;
          seen.add(list);
          for (const child of children.get(list) ?? []) visit(child);
        };
        roots.forEach(visit);
        const result = new Map<string, string>();
        for (const list of seen) {
          for (const [key, content] of members.get(list) ?? []) {
            const [name = '', qualifier = ''] = key.split('/');
            if (excluded.includes(name)) continue;
            if (qualifier === '' || qualifiers.includes(qualifier)) result.set(name, content);
          }
        }
        return result;
      };

      for (const step of history) {
        if (step.do === 'enter') {
          const world = {
            roots: step.roots.map((i) => KEYS[i]!),
            qualifiers: ['q1'],
            excluded: step.excluded.map(String),
          };
          const view = store.enter(world);
          const listener = new Listener(world.qualifiers);
          view.watchers.add(listener);
          worlds.push({ world, view, listener, before: new Map() });
        } else if (step.do === 'leave') {
          const [gone] = worlds.splice(step.which, 1);
          if (gone === undefined) continue;
          gone.view.watchers.delete(gone.listener);
          store.leave(gone.view);
        } else {
          for (const each of worlds) {
            each.before = scratch(each.world);
            each.listener.heard.clear();
          }
          const changes: MemberChange[] = [];
          const lists: ListChange[] = [];
          for (const change of step.members) {
            const list = KEYS[change.list]!;
            const name = `${change.name}`;
            // Names 0 and 1 have no qualifier, 2 and 3 always one.
            const qualifier = change.name < 2 ? '' : `q${change.qualifier}`;
            for (const [other, names] of members) {
              for (const key of [...names.keys()]) {
                if (other === list || key.split('/')[0] !== name) continue;
                names.delete(key);
                changes.push(member(other, name, undefined, key.split('/')[1]));
              }
            }
            const content = change.content === 0 ? undefined : `${change.content}`;
            let names = members.get(list);
            if (names === undefined) members.set(list, (names = new Map<string, string>()));
            if (content === undefined) names.delete(`${name}/${qualifier}`);
            else names.set(`${name}/${qualifier}`, content);
            changes.push(member(list, name, content, qualifier));
          }
          for (const change of step.lists) {
            const list = KEYS[change.list]!;
            const later = change.children?.filter((i) => i > change.list).map((i) => KEYS[i]!);
            if (later === undefined) {
              children.delete(list);
              lists.push({ list });
            } else {
              children.set(list, later);
              lists.push({ list, children: later });
            }
          }
          store.apply({ members: changes, lists });
          for (const { world, view, listener, before } of worlds) {
            const after = scratch(world);
            expect(contents(view), JSON.stringify(world)).toEqual(Object.fromEntries(after));
            for (const name of ['0', '1', '2', '3']) {
              expect(view.resolve(CDS, name)?.version).toBe(after.get(name));
              // A list that is reached in a second way, or in one way less, is told of though nothing changes.
              if (before.get(name) === after.get(name)) continue;
              const heard = listener.heard.get(`${CDS} ${name}`);
              expect(heard, `what was said of ${name}`).toEqual([before.get(name), after.get(name)]);
            }
          }
        }
      }
      for (const { view, listener } of worlds.splice(0)) {
        view.watchers.delete(listener);
        store.leave(view);
      }
      expect(store.size).toMatchObject({ worlds: 0, roots: 0 });
    }),
    { numRuns: runs(300) },
  );
});
