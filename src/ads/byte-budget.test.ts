import { expect, test } from 'vitest';
import { ByteBudget, Room } from './byte-budget.ts';

/** Asks for room, and says who got it in which order. */
function lab(total: number) {
  const budget = new ByteBudget(total);
  const entered: string[] = [];
  const ask = (name: string, bytes: number, address = 'a'): Room => {
    const room = new Room(budget, address);
    room.take(bytes, () => entered.push(name));
    return room;
  };
  return { budget, entered, ask };
}

test('there is room until the budget is spent; then one waits until enough is given back', () => {
  const { budget, entered, ask } = lab(100);
  const [first, second] = [ask('1', 60), ask('2', 40), ask('3', 50)];
  expect(entered).toEqual(['1', '2']);
  expect(budget).toMatchObject({ taken: 100, waiting: 1 });
  second.leave();
  expect(entered).toEqual(['1', '2']);
  first.leave();
  expect(entered).toEqual(['1', '2', '3']);
  expect(budget).toMatchObject({ taken: 50, waiting: 0 });
});

test('small ones do not overtake a large one', () => {
  const { entered, ask } = lab(100);
  const first = ask('1', 90);
  ask('large', 100);
  const small = ask('small', 1);
  expect(entered).toEqual(['1']);
  first.leave();
  expect(entered).toEqual(['1', 'large']);
  expect(small.waiting).toBe(true);
});

test('addresses take turns, whoever was there first', () => {
  const { entered, ask } = lab(10);
  const rooms = [ask('a0', 10, 'a')];
  for (const name of ['a1', 'a2', 'a3']) rooms.push(ask(name, 10, 'a'));
  rooms.push(ask('b1', 10, 'b'), ask('b2', 10, 'b'), ask('c1', 10, 'c'));
  for (let i = 0; i < 7; i++) rooms.find(({ had }) => had)?.leave();
  expect(entered).toEqual(['a0', 'a1', 'b1', 'c1', 'a2', 'b2', 'a3']);
});

test('whoever gives up waiting lets the others pass', () => {
  const { budget, entered, ask } = lab(100);
  ask('1', 90);
  const large = ask('large', 50, 'b');
  ask('small', 10, 'c');
  large.leave();
  expect(entered).toEqual(['1', 'small']);
  expect(budget).toMatchObject({ taken: 100, waiting: 0 });
});

test('what is larger than the budget waits until it is alone', () => {
  const { entered, ask } = lab(100);
  const first = ask('1', 1);
  const huge = ask('huge', 1000);
  expect(entered).toEqual(['1']);
  first.leave();
  expect(entered).toEqual(['1', 'huge']);
  ask('3', 1);
  huge.leave();
  expect(entered).toEqual(['1', 'huge', '3']);
});

test('room is given back once', () => {
  const { budget, ask } = lab(100);
  const room = ask('1', 60);
  room.leave();
  room.leave();
  expect(budget.taken).toBe(0);
});
