import { describe, expect, test } from 'vitest';
import type { ConnectedProxy } from '../ads/types.ts';
import { type Emit, Graph } from '../cache/graph.ts';
import { ProxyClassBuilder, PLACE_MS } from './proxy-class-builder.ts';

class Lab {
  readonly entered: string[] = [];
  readonly left: string[] = [];
  busy = false;
  services = 1;
  now = 0;
  /** What the next commits make of views. */
  readonly shards: (readonly [string, number | undefined])[] = [];
  readonly graph = new Graph();
  readonly #proxies = this.graph.input<ConnectedProxy>('proxies');
  readonly #traits = this.graph.derive('traits', this.#proxies, (stream, { nodeId }, _, emit: Emit<string>) => {
    if (nodeId.startsWith('bad')) throw new Error('a bug');
    emit(stream, nodeId);
  });
  readonly #kinds = new ProxyClassBuilder({
    proxies: this.#proxies,
    enter: ({ stream }) => this.entered.push(stream),
    leave: (stream) => this.left.push(stream),
    isBusy: () => this.busy,
    isMade: (traits) => [...this.#traits.entries()].some(([, each]) => each === traits),
    viewsOf: ({ nodeId }) => `views of ${nodeId}`,
    proxiesWith: (views) =>
      [...this.#proxies.entries()].filter(([, { nodeId }]) => `views of ${nodeId}` === views).length +
      (views.startsWith('views of old views') ? 1 : 0),
    makeShards: (views, shards) => this.shards.push([views, shards]),
    services: () => this.services,
    now: () => this.now,
  });
  readonly #connected = new Map<string, ConnectedProxy>();

  connect(stream: string, traits: string | undefined): void {
    const proxy = { stream, nodeId: traits ?? '' } as ConnectedProxy;
    this.#connected.set(stream, proxy);
    this.#kinds.connected(proxy, traits);
  }

  isDeferred(stream: string): boolean {
    return this.#kinds.isDeferred(stream);
  }

  disconnect(stream: string): void {
    this.#kinds.disconnected(stream);
  }

  gone(...streams: string[]): void {
    for (const stream of streams) this.#kinds.gone(stream);
  }

  /** A commit with these streams, and without those that have left. */
  commit(...streams: string[]): void {
    this.graph.commit([
      ...streams.map((stream) => this.#proxies.write(stream, this.#connected.get(stream))),
      ...this.left.map((stream) => this.#proxies.write(stream, undefined)),
    ]);
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

test.each([
  [PLACE_MS - 1, 'b'],
  [PLACE_MS, 'c'],
])('a kind keeps its place in the queue until nobody has waited for it for %i ms: next is %s', (ms, next) => {
  const lab = new Lab();
  for (const traits of ['a', 'b', 'c']) lab.connect(traits, traits);
  expect(['a', 'b', 'c'].map((stream) => lab.isDeferred(stream))).toEqual([false, true, true]);
  lab.disconnect('b');
  lab.now = ms;
  lab.connect('b', 'b');
  lab.commit('a');
  expect(lab.entered).toEqual(['a', next]);
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
    lab.gone('1');
    lab.connect('2', 'b');
    const steps: string[] = [];
    for (let i = 0; i < 20 && lab.entered.length === 1; i++) {
      lab.commit();
      steps.push(lab.left.join());
    }
    expect(lab.entered).toEqual(['1', '2']);
    expect([lab.left, lab.shards.filter(([views]) => views === 'views of a').at(-1)]).toEqual([
      ['1'],
      ['views of a', undefined],
    ]);
  });

  /** Of these kinds, all is made. */
  function made(...streams: string[]): Lab {
    const lab = large();
    for (const stream of streams) {
      lab.connect(stream, stream.slice(0, 1));
      for (let i = 0; i < 5; i++) lab.commit(stream);
    }
    lab.shards.length = 0;
    return lab;
  }

  test('what the last of a kind had is removed in several commits', () => {
    const lab = made('a1');
    lab.gone('a1');
    for (let i = 0; i < 4; i++) {
      expect(lab.left).toEqual([]);
      lab.commit();
    }
    expect(lab.left).toEqual(['a1']);
    lab.commit();
    lab.commit();
    expect(lab.shards).toEqual([16, 12, 8, 4, 0, undefined].map((shards) => ['views of a', shards]));
  });

  test('nothing is removed while there are others, however many leave at once', () => {
    const lab = made('a1', 'a2', 'a3', 'a4');
    lab.gone('a1', 'a2', 'a3');
    expect([lab.left, lab.shards]).toEqual([['a1', 'a2', 'a3'], []]);
    lab.commit();
    lab.gone('a4');
    lab.commit();
    expect(lab.left).not.toContain('a4');
  });

  test('all of a kind that leave at once go with the last of them', () => {
    const lab = made('a1', 'a2', 'a3');
    lab.gone('a1', 'a2', 'a3');
    expect([lab.left, lab.shards]).toEqual([['a1', 'a2'], [['views of a', 16]]]);
  });

  test.each([0, 1, 3, 4])('who comes after %i steps of it has all built again, in several commits', (steps) => {
    const lab = made('a1');
    lab.gone('a1');
    for (let i = 0; i < steps; i++) lab.commit();
    lab.connect('a2', 'a');
    expect(lab.entered).toEqual(['a1', 'a2']);
    for (let i = 0; i < 6; i++) lab.commit('a2');
    expect(new Set(lab.left)).toEqual(new Set(['a1']));
    const all = [16, 12, 8, 4, 0];
    const undone = all.slice(0, steps + 1);
    expect(lab.shards.map(([, shards]) => shards)).toEqual([...undone, ...undone.slice(1, -1).reverse(), undefined]);
    lab.gone('a2');
    expect(lab.shards.at(-1)).toEqual(['views of a', 16]);
  });

  test('new kinds enter when it is done; a change that came has a commit of its own', () => {
    const lab = made('a1');
    lab.gone('a1');
    lab.connect('b1', 'b');
    lab.busy = true;
    const steps = Array.from({ length: 4 }, () => {
      lab.commit();
      return lab.shards.length;
    });
    expect(steps).toEqual([1, 2, 2, 3]);
    for (let i = 0; i < 5; i++) {
      expect(lab.entered).toEqual(['a1']);
      lab.commit();
    }
    lab.commit();
    expect(lab.entered).toEqual(['a1', 'b1']);
  });

  test('several kinds are removed one after the other', () => {
    const lab = made('a1', 'b1');
    lab.gone('a1', 'b1');
    for (let i = 0; i < 12; i++) lab.commit();
    expect(lab.left).toEqual(['a1', 'b1']);
    expect(lab.shards.map(([views]) => views.at(-1)).join('')).toBe('aaaaaabbbbbb');
  });

  test('kinds that enter and views to be removed take turns', () => {
    const lab = made('a1', 'c1');
    lab.gone('a1', 'c1');
    lab.connect('b1', 'b');
    while (!lab.left.includes('a1')) lab.commit();
    lab.commit();
    expect([lab.entered.at(-1), lab.left]).toEqual(['b1', ['a1']]);
    for (let i = 0; i < 12; i++) lab.commit('b1');
    expect(lab.left).toEqual(['a1', 'c1']);
  });

  test('a proxy that is back before its turn keeps its views', () => {
    const lab = made('a1', 'c1');
    lab.gone('a1', 'c1');
    lab.connect('c2', 'c');
    for (let i = 0; i < 12; i++) lab.commit('c2');
    expect(lab.shards.filter(([views]) => views === 'views of c')).toEqual([]);
    expect(lab.left).toEqual(['a1', 'c1']);
  });
});
