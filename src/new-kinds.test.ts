import { expect, test } from 'vitest';
import type { ConnectedProxy } from './ads/types.ts';
import { NewKinds } from './new-kinds.ts';

class Lab {
  readonly entered: string[] = [];
  readonly #published = new Map<string, string>();
  readonly #traits = new Map<string, string>();
  readonly kinds = new NewKinds({
    enter: ({ stream }) => this.entered.push(stream),
    isMade: (traits) => [...this.#published.values()].includes(traits),
    isIn: (stream) => this.#published.has(stream),
  });

  connect(stream: string, traits: string | undefined): void {
    this.#traits.set(stream, traits ?? '');
    this.kinds.connected({ stream } as ConnectedProxy, traits);
  }

  /** A commit with these streams. */
  commit(...streams: string[]): void {
    for (const stream of streams) this.#published.set(stream, this.#traits.get(stream)!);
    this.kinds.committed();
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

test('a commit without the new kind, which was on its way, lets no other in', () => {
  const lab = new Lab();
  lab.connect('1', 'a');
  lab.connect('2', 'b');
  lab.commit();
  expect(lab.entered).toEqual(['1']);
});

test('one that goes before its turn, or while it is made, holds nobody up', () => {
  const lab = new Lab();
  for (const [i, traits] of ['a', 'b', 'c'].entries()) lab.connect(`${i}`, traits);
  lab.kinds.disconnected('1');
  lab.kinds.disconnected('0');
  expect(lab.entered).toEqual(['0', '2']);
  lab.commit('2');
  expect(lab.entered).toEqual(['0', '2']);
});
