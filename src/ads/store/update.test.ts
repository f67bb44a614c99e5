import { expect, test } from 'vitest';
import { ContentHasher } from './content-hash.ts';
import type { Differences } from './differences.ts';
import type { News } from './forest.ts';
import { Store } from './store.ts';
import { CDS, resource } from '../testing/world.ts';
import type { WorldView } from './world.ts';

/** Worlds, and the news that each has not looked at yet. */
class Lab {
  readonly #store = new Store(new ContentHasher([1, 2]));
  readonly #news = new Map<WorldView, News[]>();

  enter(roots: readonly string[], qualifiers: readonly string[] = [], excluded: readonly string[] = []): WorldView {
    const view = this.#store.enter({ roots, qualifiers, excluded });
    const news: News[] = [];
    this.#news.set(view, news);
    view.watchers.add({ changed: (each) => void news.push(each) });
    return view;
  }

  /** `list/name[/qualifier]`, and what it contains from now on; empty: nothing. */
  publish(members: Readonly<Record<string, string>>): void {
    const changes = Object.entries(members).map(([place, content]) => {
      const [list = '', name = '', qualifier = ''] = place.split('/');
      const gone = content === '' ? {} : { resource: resource(CDS, name, content) };
      return { list, typeUrl: CDS, name, qualifier, ...gone };
    });
    this.#store.apply({ members: changes, lists: [] });
  }

  update(view: WorldView): Differences {
    const update = this.#store.update(view, this.#news.get(view)!);
    this.#news.get(view)!.length = 0;
    return update;
  }

  /** By name, what was there and what is. */
  look(view: WorldView): Record<string, readonly [string | undefined, string | undefined]> {
    const differences = this.update(view).of(CDS);
    return Object.fromEntries(Array.from(differences, ([name, { was, now }]) => [name, [was?.version, now?.version]]));
  }
}

test('worlds that share the root of a change share what follows from it', () => {
  const lab = new Lab();
  lab.publish({ 'mesh/a': '1', 'own/b': '1', 'other/b': '1' });
  const [own, other, apart] = [lab.enter(['mesh', 'own']), lab.enter(['mesh', 'other']), lab.enter(['mesh'], ['east'])];
  for (const content of ['2', '3']) lab.publish({ 'mesh/a': content });
  const update = lab.update(own);
  expect(update.of(CDS).get('a')).toMatchObject({ was: { version: '1' }, now: { version: '3' } });
  expect(lab.update(other)).toBe(update);
  expect(lab.update(apart)).not.toBe(update);
});

test('streams that have looked at some of it already share nothing with those that have not', () => {
  const lab = new Lab();
  lab.publish({ 'mesh/a': '1' });
  const [early, late] = [lab.enter(['mesh', 'early']), lab.enter(['mesh', 'late'])];
  lab.publish({ 'mesh/a': '2' });
  lab.look(early);
  lab.publish({ 'mesh/a': '3' });
  expect([lab.look(early), lab.look(late)]).toEqual([{ a: ['2', '3'] }, { a: ['1', '3'] }]);
});

test('a name that another root has, too, is what that root has, or had, as far as it comes first', () => {
  const lab = new Lab();
  lab.publish({ 'own/a': 'own', 'mesh/b': '1' });
  const [after, before] = [lab.enter(['mesh', 'own']), lab.enter(['own', 'mesh'])];
  lab.publish({ 'mesh/a': 'mesh' });
  expect([lab.look(after), lab.look(before)]).toEqual([{ a: ['own', 'mesh'] }, {}]);
  lab.publish({ 'own/a': '' });
  expect([lab.look(after), lab.look(before)]).toEqual([{}, { a: ['own', 'mesh'] }]);
});

test('what is excluded, or seen with other qualifiers alone, does not differ', () => {
  const lab = new Lab();
  lab.publish({ 'mesh/a': '1', 'mesh/b/east': '1' });
  const [without, east] = [lab.enter(['mesh', 'own'], [], ['a']), lab.enter(['mesh', 'own'], ['east'])];
  lab.publish({ 'mesh/a': '2', 'mesh/b/east': '2' });
  expect([lab.look(without), lab.look(east)]).toEqual([{}, { a: ['1', '2'], b: ['1', '2'] }]);
});
