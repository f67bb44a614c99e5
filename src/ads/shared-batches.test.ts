import { beforeEach, expect, test } from 'vitest';
import { ContentHasher } from './content-hash.ts';
import type { ListChange, MemberChange } from './publication.ts';
import { Store } from './store.ts';

const TYPE = 'type/a';
let store: Store;

beforeEach(() => {
  store = new Store(new ContentHasher([1, 2]));
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
