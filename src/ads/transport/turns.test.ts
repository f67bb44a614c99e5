import { beforeEach, expect, test, vi } from 'vitest';
import { Turns, type Waiting } from './turns.ts';

interface Named extends Waiting {
  readonly name: string;
}

let now: number;
/** What was served; `|` where a turn begins. */
let served: string;
let full: boolean;
/** Milliseconds that each one takes. */
let takes: number;
let again: (stream: Named) => void;
let turns: Turns<Named>;

beforeEach(() => {
  [now, served, full, takes] = [0, '', false, 4.5];
  again = () => {};
  turns = new Turns({
    now: () => now,
    begin: () => (served += '|'),
    serve(stream) {
      served += stream.name;
      now += takes;
      again(stream);
    },
    isFull: () => full,
  });
});

const wait = (names: string, acknowledges: boolean, address = names): void => {
  for (const name of names) turns.add({ name, address, queued: false }, acknowledges);
};

const over = (): Promise<void> => vi.waitFor(() => expect(served.replaceAll('|', '')).toHaveLength(6));

test('those that acknowledge come first, and one of the others in each turn', async () => {
  wait('xyz', false);
  wait('abc', true);
  await over();
  expect(served).toBe('|abcx|yz');
});

test('those that never have enough leave a quarter of the time to others', async () => {
  again = (stream) => {
    if (stream.name === 'a' && served.length < 22) turns.add(stream, true);
  };
  wait('a', true);
  wait('xyz', false);
  await vi.waitFor(() => expect(served).toBe('|aaax|aaa|aaay|aaa|aaaz'));
});

test('when none that acknowledges waits, nothing is owed for the time that others took', async () => {
  wait('ab', true);
  wait('xyz', false);
  await vi.waitFor(() => expect(served).toBe('|abx|yz'));
  wait('c', true);
  wait('u', false);
  await vi.waitFor(() => expect(served).toBe('|abx|yz|cu'));
});

test('without any that acknowledge, a turn is for the others', async () => {
  takes = 1;
  wait('uvwxyz', false);
  await over();
  expect(served).toBe('|uvwxyz');
});

test('a turn ends when it has handed enough to connections, with one of each kind at least', async () => {
  [full, takes] = [true, 2];
  wait('xy', false);
  wait('abcd', true);
  await over();
  expect(served).toBe('|ax|by|c|d');
});

test('who waits already does not wait twice', async () => {
  const twice = { name: 't', address: 'a', queued: false };
  turns.add(twice, false);
  turns.add(twice, true);
  wait('uvxyz', false);
  await over();
  expect(served.replaceAll('|', '')).toBe('tuvxyz');
});

test('addresses take turns, however many streams each has', async () => {
  wait('tuvw', true, 'many');
  wait('a', true, 'one');
  wait('b', true, 'another');
  expect(turns.waiting).toBe(6);
  await over();
  expect(served.replaceAll('|', '')).toBe('tabuvw');
  expect(turns.waiting).toBe(0);
});

test('an exception ends a turn, and nothing else', async () => {
  const turns = new Turns<Named>({
    now: () => 0,
    begin: () => {},
    serve({ name }) {
      served += name;
      if (name === 'a') throw new Error('bug');
    },
    isFull: () => false,
  });
  const failed = new Promise((resolve) => process.once('uncaughtException', resolve));
  for (const name of 'ab') turns.add({ name, address: '', queued: false }, false);
  expect(await failed).toEqual(new Error('bug'));
  await vi.waitFor(() => expect(served).toBe('ab'));
  turns.add({ name: 'c', address: '', queued: false }, false);
  await vi.waitFor(() => expect(served).toBe('abc'));
});
