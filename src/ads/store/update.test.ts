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

  /** Which lists are below another one from now on. */
  place(list: string, ...children: readonly string[]): void {
    this.#store.apply({ members: [], lists: [{ list, children }] });
  }

  /** It has looked at its news. */
  forget(view: WorldView): void {
    this.#news.get(view)!.length = 0;
  }

  /** As often as it was entered; its news are over. */
  leave(view: WorldView): void {
    view.watchers.clear();
    this.#store.leave(view);
  }

  update(view: WorldView): Differences {
    const update = this.#store.update(view, this.#news.get(view)!);
    this.forget(view);
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
  expect(lab.update(apart)).toBe(update);
  // Not everybody sees a variant.
  lab.publish({ 'mesh/a': '', 'mesh/a/east': '4' });
  expect([lab.look(own), lab.look(apart)]).toEqual([{ a: ['3', undefined] }, { a: ['3', '4'] }]);
  lab.publish({ 'mesh/a': '5', 'mesh/a/east': '' });
  expect([lab.look(own), lab.look(apart)]).toEqual([{ a: [undefined, '5'] }, { a: ['4', '5'] }]);
});

/** Two worlds with roots of their own, and the list that these share. */
function apart() {
  const lab = new Lab();
  lab.publish({ 'mesh/a': '1', 'mesh/b': '1', 'one/c': '1', 'two/c': '1' });
  lab.place('one', 'mesh');
  lab.place('two', 'mesh');
  return { lab, one: lab.enter(['one']), two: lab.enter(['two']) };
}

test('worlds whose roots share a list share what follows from its changes, whichever of them is left', () => {
  const { lab, one, two } = apart();
  for (const content of ['2', '3']) lab.publish({ 'mesh/a': content });
  const update = lab.update(one);
  lab.leave(one);
  expect(lab.update(two)).toBe(update);
  const { was, now } = update.of(CDS).get('a')!;
  expect([was?.version, now?.version]).toEqual(['1', '3']);
  lab.publish({ 'mesh/a': '' });
  expect(lab.look(two)).toEqual({ a: ['3', undefined] });
});

test('worlds whose roots share several lists share what follows from all of them, or from a move between them', () => {
  const { lab, one, two } = apart();
  const late = lab.enter(['late']);
  for (const root of ['one', 'two']) lab.place(root, 'mesh', 'more');
  lab.place('late', 'mesh');
  for (const view of [one, two, late]) lab.forget(view);
  lab.publish({ 'mesh/a': '', 'more/a': '2', 'mesh/b': '2', 'more/d': '2' });
  const update = lab.update(one);
  expect(lab.update(two)).toBe(update);
  const versions = Array.from(update.of(CDS), ([name, { was, now }]) => [name, was?.version, now?.version]);
  expect(versions.sort()).toEqual([
    ['a', '1', '2'],
    ['b', '1', '2'],
    ['d', undefined, '2'],
  ]);
  expect(lab.look(late)).toEqual({ a: ['1', undefined], b: ['1', '2'] });
});

test('a name that another list has, too, is what is below the root of each world', () => {
  const { lab, one, two } = apart();
  lab.publish({ 'one/a': 'one' });
  lab.update(one);
  lab.publish({ 'mesh/a': '' });
  expect([lab.look(one), lab.look(two)]).toEqual([{ a: ['1', 'one'] }, { a: ['1', undefined] }]);
});

test('worlds of which one has had more news share nothing', () => {
  const { lab, one, two } = apart();
  lab.publish({ 'mesh/a': '2' });
  lab.publish({ 'two/c': '2' });
  lab.publish({ 'mesh/b': '2' });
  expect(lab.look(two)).toEqual({ a: ['1', '2'], b: ['1', '2'], c: ['1', '2'] });
  expect(lab.look(one)).toEqual({ a: ['1', '2'], b: ['1', '2'] });
});

test('a root that has just got the list knows nothing of what it was', () => {
  const { lab, one } = apart();
  const late = lab.enter(['late']);
  lab.place('late', 'mesh');
  lab.publish({ 'mesh/a': '2' });
  expect(lab.look(one)).toEqual({ a: ['1', '2'] });
  expect(lab.look(late)).toEqual({ a: [undefined, '2'], b: [undefined, '1'] });
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
  lab.publish({ 'mesh/a': '3' });
  expect([lab.look(east), lab.look(without)]).toEqual([{ a: ['2', '3'] }, {}]);
});

test('what is left of a name may be a variant, which not everybody sees', () => {
  const lab = new Lab();
  lab.publish({ 'mesh/a': '1', 'mesh/a/east': '2' });
  const [own, east] = [lab.enter(['mesh']), lab.enter(['mesh'], ['east'])];
  lab.publish({ 'mesh/a': '' });
  expect([lab.look(own), lab.look(east)]).toEqual([{ a: ['1', undefined] }, { a: ['1', '2'] }]);
});

test('a root that has lost an empty list does not see what comes into it', () => {
  const { lab, one, two } = apart();
  lab.publish({ 'mesh/a': '', 'mesh/b': '' });
  lab.place('one');
  lab.publish({ 'mesh/a': '2' });
  expect(lab.look(one)).toEqual({ a: ['1', undefined], b: ['1', undefined] });
  expect(lab.look(two)).toEqual({ a: ['1', '2'], b: ['1', undefined] });
});

test('a list that a root gains a second way to changes nothing', () => {
  const lab = new Lab();
  lab.publish({ 'mesh/a': '1' });
  lab.place('one', 'mesh', 'middle');
  const one = lab.enter(['one']);
  let count = 0;
  one.watchers.add({ changed: () => void count++ });
  lab.place('middle', 'mesh');
  expect(count).toBe(0);
});
