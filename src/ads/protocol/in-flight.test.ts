import { expect, test } from 'vitest';
import { InFlight } from './in-flight.ts';
import { UNSENT } from './sent.ts';
import { Batch, type Held, type Served } from '../store/served.ts';
import { CDS, resource, TestServer } from '../testing/world.ts';

const server = new TestServer();
const items = (names: readonly string[], content: string): Served[] =>
  names.map((name) => server.store.once(resource(CDS, name, content)));

const EVERYTHING = { has: () => true, names: { has: () => true } };

test('what the client had before is amended in the first response that has the name', () => {
  const inFlight = new InFlight(true, EVERYTHING);
  const prior = new Map<string, Held>([['a', '1']]);
  for (const names of [['a'], ['a', 'b']]) {
    inFlight.add({ ...UNSENT, batches: [new Batch(items(names, '2'))], prior });
  }
  inFlight.amend(
    new Map([
      ['a', '0'],
      ['b', '0'],
      ['c', '0'],
    ]),
  );
  expect([...inFlight].map((sent) => [...sent.prior!])).toEqual([
    [['a', '0']],
    [
      ['a', '1'],
      ['b', '0'],
    ],
  ]);
});

test('to amend all names of a response costs as much as the response, not that multiplied', () => {
  const names = Array.from({ length: 1_000 }, (_, i) => `c${i}`);
  const sent = new CountingArray(...items(names, '3'));
  let prior: ReadonlyMap<string, Held> | undefined = new Map();
  let copies = 0;
  const inFlight = new InFlight(true, EVERYTHING);
  inFlight.add({
    ...UNSENT,
    batches: [new Batch(sent)],
    get prior() {
      return prior;
    },
    set prior(amended) {
      copies++;
      prior = amended;
    },
  });
  inFlight.amend(new Map(names.map((name) => [name, '1'])));
  expect(sent.looks).toBeLessThanOrEqual(1_000);
  expect(copies).toBe(1);
});

test('a client that answers nothing does not have more and more names remembered that it gave up', () => {
  let round = 0;
  const isAsked = (name: string): boolean => name === 'cluster' || name.startsWith(`${round} `);
  const inFlight = new InFlight(true, { has: () => true, names: { has: isAsked } });
  const [cluster, ...absent] = items(['cluster', 'left the world'], '1');
  inFlight.add({ ...UNSENT, nonce: 1, first: 1, batches: [new Batch([cluster!])], prior: new Map() });
  for (round = 1; round < 10; round++) {
    const removed = Array.from({ length: 50_000 }, (_, i) => `${round} ${i}`);
    const prior = new Map<string, Held>(removed.map((name) => [name, undefined]));
    if (round === 1) {
      removed.push('left the world');
      prior.set('left the world', absent[0]);
    }
    inFlight.add({ ...UNSENT, nonce: round + 1, first: round + 1, removed, prior });
  }
  const sent = [...inFlight];
  expect(sent.reduce((sum, { removed }) => sum + removed.length, 0)).toBeLessThan(200_000);
  expect(sent.reduce((sum, { prior }) => sum + prior!.size, 0)).toBeLessThan(200_000);
  // What it may have, or may have been told to forget, is still known.
  expect(inFlight.last('cluster')).toBe(cluster);
  expect(sent[0]!.removed).toContain('left the world');
  expect(inFlight.settle(10, false, '')!.accepted).toHaveLength(1);
});

test('in delta, responses that are remembered as one are accepted with the answer to the last of them', () => {
  const inFlight = new InFlight(true, EVERYTHING);
  for (let nonce = 1; nonce <= 33; nonce++) {
    const batches = [new Batch(items([`c${nonce}`], '1'))];
    inFlight.add({ ...UNSENT, nonce, first: nonce, batches, prior: new Map() });
  }
  const [folded, ...newer] = inFlight;
  const { first, nonce: last } = folded!;
  expect([first, newer.length]).toEqual([1, 33 - last]);
  for (let nonce = first; nonce < last; nonce++)
    expect(inFlight.settle(nonce, false, '')).toEqual({ accepted: [], rejected: [] });
  expect(inFlight.settle(last, false, '')).toEqual({ accepted: [folded], rejected: [] });
  expect([...inFlight]).toEqual(newer);
});

class CountingArray extends Array<Served> {
  looks = 0;

  override *[Symbol.iterator](): ArrayIterator<Served> {
    for (let i = 0; i < this.length; i++) {
      this.looks++;
      yield this[i]!;
    }
  }
}
