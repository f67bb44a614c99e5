import { beforeEach, expect, test, vi } from 'vitest';
import { ContentHasher } from './content-hash.ts';
import { NameSets } from './name-set.ts';
import type { ListChange, MemberChange } from './publication.ts';
import { SharedBatches } from './shared-batches.ts';
import { Store } from './store.ts';

const TYPE = 'type/a';
const hasher = new ContentHasher([1, 2]);
let store: Store;

beforeEach(() => {
  store = new Store(hasher);
});

function member(list: string, name: string, content: string, qualifier = ''): MemberChange {
  const body = { bytes: Buffer.from(content), length: content.length, hash: content, clusters: [], origins: [] };
  return { list, typeUrl: TYPE, name, qualifier, resource: { typeUrl: TYPE, name, version: content, body } };
}

function publish(members: readonly MemberChange[], lists: readonly ListChange[] = []): void {
  store.apply({ members, lists });
}

const view = (root: string, ...qualifiers: string[]) => store.enter({ roots: [root], qualifiers });
const namesOf = (root: string): string[] =>
  view(root)
    .all(TYPE)
    .flatMap((batch) => batch.items.map((item) => item.name));

test('roots have the batches of the lists that they have in common', () => {
  publish(
    [member('shared', 'a', '1'), member('own', 'b', '1'), member('first', 'c', '1')],
    [
      { list: 'first', children: ['shared'] },
      { list: 'second', children: ['shared', 'own'] },
    ],
  );
  const [own, shared] = view('first').all(TYPE);
  expect([own, shared].map((batch) => batch!.items.map((item) => item.name))).toEqual([['c'], ['a']]);
  expect(view('second').all(TYPE)[0]).toBe(shared);
});

test('proxies of different nodes share what is the same on all', () => {
  publish(
    [member('plain', 'a', '1'), member('local', 'b', '1', 'node-1'), member('local', 'b', '2', 'node-2')],
    [{ list: 'root', children: ['plain', 'local'] }],
  );
  const [plain, local] = view('root', 'node-1').all(TYPE);
  const [samePlain, otherLocal] = view('root', 'node-2').all(TYPE);
  expect(samePlain).toBe(plain);
  expect([local, otherLocal].map((batch) => batch!.items[0]!.version)).toEqual(['1', '2']);
  const [first, second] = ['zone-1', 'zone-2'].map((zone) => view('root', 'node-2', zone).all(TYPE));
  first!.forEach((batch, i) => expect(batch).toBe(second![i]));
});

test('a batch in which nothing changed stays the same', () => {
  publish([member('x', 'a', '1'), member('y', 'b', '1')], [{ list: 'root', children: ['x', 'y'] }]);
  const [x, y] = view('root').all(TYPE);
  publish([member('y', 'b', '2')]);
  const [sameX, newY] = view('root').all(TYPE);
  expect(sameX).toBe(x);
  expect(newY).not.toBe(y);
  expect(newY!.items[0]!.version).toBe('2');
});

test('a list that changed while no root had it is seen as it is', () => {
  publish([member('x', 'a', '1')], [{ list: 'root', children: ['x'] }]);
  expect(namesOf('root')).toEqual(['a']);
  publish([], [{ list: 'root', children: ['y'] }]);
  publish([member('x', 'b', '1')]);
  publish([], [{ list: 'root', children: ['x', 'y'] }]);
  expect(namesOf('root')).toEqual(['a', 'b']);
});

test('a name that several lists have is sent once', () => {
  publish(
    [member('x', 'a', '1'), member('y', 'a', '1'), member('y', 'b', '1')],
    [{ list: 'root', children: ['x', 'y'] }],
  );
  expect(namesOf('root')).toEqual(['a', 'b']);
});

test('lists in which nothing changed are not looked at again', () => {
  publish(
    [member('x', 'a', '1'), member('below x', 'b', '1'), member('y', 'c', '1')],
    [
      { list: 'root', children: ['x', 'y'] },
      { list: 'x', children: ['below x'] },
    ],
  );
  expect(namesOf('root')).toEqual(['a', 'b', 'c']);
  const looked = [...view('root').roots[0]!.lists.keys()].map((list) => {
    const { key } = list;
    return { key, calls: vi.spyOn(list.members, 'get').mock.calls };
  });
  const lookedAt = (): string[] => looked.filter(({ calls }) => calls.splice(0).length > 0).map(({ key }) => key);
  publish([member('y', 'd', '1')]);
  lookedAt();
  expect(namesOf('root')).toEqual(['a', 'b', 'c', 'd']);
  expect(lookedAt()).toEqual(['y']);
  publish([member('below x', 'b', '2'), member('elsewhere', 'e', '1')]);
  lookedAt();
  expect(namesOf('root')).toEqual(['a', 'b', 'c', 'd']);
  expect(lookedAt()).toEqual(['x', 'below x']);
  publish([], [{ list: 'below x', children: ['elsewhere'] }]);
  expect(namesOf('root')).toEqual(['a', 'b', 'e', 'c', 'd']);
});

test('selections are shared, and bounded by the names that they keep', () => {
  publish([member('root', 'a', '1'), member('root', 'b', '1')]);
  const [root] = view('root').roots;
  const shared = new SharedBatches(100);
  const sets = new NameSets(hasher);
  const select = (i: number): object => shared.select(root!, TYPE, sets.with(sets.empty, ['a', `other ${i}`]), []);
  const first = select(0);
  for (let i = 1; i < 40; i++) select(i);
  expect(select(0)).toBe(first);
  for (let i = 40; i < 80; i++) select(i);
  expect(select(0)).not.toBe(first);
  expect(select(0)).toEqual(first);
});
