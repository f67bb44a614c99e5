import { describe, expect, test } from 'vitest';
import type { ConnectedProxy } from '../ads/types.ts';
import { type Emit, Graph } from '../cache/graph.ts';
import { NewKinds } from './new-kinds.ts';

class Lab {
  readonly entered: string[] = [];
  busy = false;
  services = 1;
  /** What the next commits make of views. */
  readonly shards: (readonly [string, number | undefined])[] = [];
  readonly graph = new Graph();
  readonly #proxies = this.graph.input<ConnectedProxy>('proxies');
  readonly #traits = this.graph.derive('traits', this.#proxies, (stream, { nodeId }, _, emit: Emit<string>) => {
    if (nodeId.startsWith('bad')) throw new Error('a bug');
    emit(stream, nodeId);
  });
  readonly #kinds = new NewKinds({
    proxies: this.#proxies,
    enter: ({ stream }) => this.entered.push(stream),
    isBusy: () => this.busy,
    isMade: (traits) => [...this.#traits.entries()].some(([, each]) => each === traits),
    newViewsOf: ({ nodeId }) => (nodeId.startsWith('old views') ? undefined : `views of ${nodeId}`),
    makeShards: (views, shards) => this.shards.push([views, shards]),
    services: () => this.services,
  });
  readonly #connected = new Map<string, ConnectedProxy>();

  connect(stream: string, traits: string | undefined): void {
    const proxy = { stream, nodeId: traits ?? '' } as ConnectedProxy;
    this.#connected.set(stream, proxy);
    this.#kinds.connected(proxy, traits);
  }

  disconnect(stream: string): void {
    this.#kinds.disconnected(stream);
  }

  /** A commit after which these are gone. */
  leave(...streams: string[]): void {
    this.graph.commit(streams.map((stream) => this.#proxies.write(stream, undefined)));
    this.#kinds.committed();
  }

  /** A commit with these streams. */
  commit(...streams: string[]): void {
    this.graph.commit(streams.map((stream) => this.#proxies.write(stream, this.#connected.get(stream))));
    this.#kinds.committed();
  }
}

test('new kinds enter one by one, and all of a kind that is there at once', () => {
  const lab = new Lab();
  lab.connect('1', 'a');
  lab.connect('2', 'b');
  lab.connect('3', 'a');
  lab.connect('4', 'c');
  lab.connect('5', 'b');
  lab.connect('6', undefined);
  expect(lab.entered).toEqual(['1', '3', '6']);
  lab.commit('1', '3', '6');
  expect(lab.entered.slice(3)).toEqual(['2', '5']);
  lab.connect('7', 'a');
  lab.commit('2', '5', '7');
  expect(lab.entered.slice(5)).toEqual(['7', '4']);
});

test('what came while a kind was made has a commit of its own before the next kind enters', () => {
  const lab = new Lab();
  for (const [i, traits] of ['a', 'b', 'c'].entries()) lab.connect(String(i), traits);
  lab.busy = true;
  lab.commit('0');
  lab.connect('more', 'a');
  expect(lab.entered).toEqual(['0', 'more']);
  lab.commit('more');
  expect(lab.entered.slice(2)).toEqual(['1']);
  lab.busy = false;
  lab.commit('1');
  expect(lab.entered.slice(3)).toEqual(['2']);
});

test('a commit without the new kind, which was on its way, lets no other in', () => {
  const lab = new Lab();
  lab.connect('1', 'a');
  lab.connect('2', 'b');
  lab.commit();
  expect(lab.entered).toEqual(['1']);
});

test('a proxy that leaves early delays others by one commit at most', () => {
  const lab = new Lab();
  for (const [i, traits] of ['a', 'b', 'c'].entries()) lab.connect(`${i}`, traits);
  lab.disconnect('1');
  lab.disconnect('0');
  lab.commit();
  expect(lab.entered).toEqual(['0', '2']);
  lab.commit('2');
  expect(lab.entered).toEqual(['0', '2']);
});

test('the first of a kind goes while others of it stay: it is made all the same, before the next kind', () => {
  const lab = new Lab();
  for (const traits of ['a', 'b', 'c'])
    for (const each of ['first', 'second']) lab.connect(`${each} ${traits}`, traits);
  for (const traits of ['a', 'b', 'c']) lab.disconnect(`first ${traits}`);
  expect(lab.entered).toEqual(['first a', 'second a']);
  lab.commit('second a');
  expect(lab.entered.slice(2)).toEqual(['second b']);
});

test('one for which nothing can be computed holds nobody up', () => {
  const lab = new Lab();
  lab.connect('1', 'bad');
  lab.connect('2', 'a');
  lab.connect('3', 'bad');
  lab.connect('4', 'b');
  lab.commit('1', '3');
  expect([...lab.graph.failures.keys()]).toEqual(['traits 1', 'traits 3']);
  expect(lab.entered).toEqual(['1', '3', '2']);
  lab.commit('2');
  expect(lab.entered).toEqual(['1', '3', '2', '4']);
});

describe('in a large mesh', () => {
  const large = (): Lab => Object.assign(new Lab(), { services: 1_000 });

  test('a kind is made in several commits, and the next one enters after them', () => {
    const lab = large();
    lab.connect('1', 'a');
    lab.connect('2', 'b');
    lab.commit('1');
    lab.connect('3', 'a');
    lab.commit('3');
    lab.commit();
    expect(lab.entered).toEqual(['1', '3']);
    lab.commit();
    expect(lab.entered).toEqual(['1', '3', '2']);
    expect(lab.shards).toEqual([
      ['views of a', 4],
      ['views of a', 8],
      ['views of a', 12],
      ['views of a', undefined],
      ['views of b', 4],
    ]);
  });

  test('what came during one of them has a commit of its own before the next', () => {
    const lab = large();
    lab.connect('1', 'a');
    lab.busy = true;
    lab.commit('1');
    expect(lab.shards).toHaveLength(1);
    lab.commit();
    expect(lab.shards).toHaveLength(2);
    lab.commit();
    expect(lab.shards).toHaveLength(2);
  });

  test('a kind that finds its views made is made in one commit', () => {
    const lab = large();
    lab.connect('1', 'old views');
    lab.connect('2', 'b');
    lab.commit('1');
    expect(lab.entered).toEqual(['1', '2']);
    expect(lab.shards).toEqual([['views of b', 4]]);
  });

  test('when all of a kind are gone before it is made, nothing is left of it', () => {
    const lab = large();
    lab.connect('1', 'a');
    lab.commit('1');
    lab.disconnect('1');
    lab.connect('2', 'b');
    lab.leave('1');
    expect(lab.shards).toEqual([
      ['views of a', 4],
      ['views of a', 8],
      ['views of a', undefined],
    ]);
    lab.commit();
    expect(lab.entered).toEqual(['1', '2']);
  });
});
