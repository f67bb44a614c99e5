import { describe, expect, test } from 'vitest';
import { Permit, FairSemaphore } from './fair-semaphore.ts';

/** Asks for room, and says who got it in which order. */
function lab(total: number) {
  const budget = new FairSemaphore(total);
  const entered: string[] = [];
  const ask = (name: string, bytes: number, address = 'a'): Permit => {
    const room = new Permit(budget, address);
    room.take(() => entered.push(name), bytes);
    return room;
  };
  return { budget, entered, ask };
}

test('there is room until the budget is spent; then one waits until enough is given back', () => {
  const { budget, entered, ask } = lab(100);
  const [first, second] = [ask('1', 60, 'a'), ask('2', 40, 'b'), ask('3', 50, 'c')];
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

test('one address has half of the room at most, and others go in past what it waits for', () => {
  const { budget, entered, ask } = lab(100);
  const all = ['a1', 'a2', 'a3', 'a4'].map((name) => ask(name, 20, 'a'));
  expect(entered).toEqual(['a1', 'a2']);
  ask('b1', 30, 'b');
  ask('c1', 10, 'c');
  expect(entered).toEqual(['a1', 'a2', 'b1', 'c1']);
  all[0]!.leave();
  expect(entered).toEqual(['a1', 'a2', 'b1', 'c1', 'a3']);
  for (const place of all) place.leave();
  expect(entered.slice(5)).toEqual(['a4']);
  expect(budget).toMatchObject({ taken: 40, waiting: 0 });
});

test('an address that was put behind is let in when nobody else can be, until it is forgiven', () => {
  const { budget, entered, ask } = lab(10);
  const first = ask('b0', 10, 'b');
  ask('a1', 5, 'a');
  ask('a2', 5, 'a');
  budget.putBehind('a');
  const large = ask('b1', 10, 'b');
  ask('a3', 5, 'a');
  first.leave();
  expect(entered).toEqual(['b0', 'b1']);
  const later = ask('b2', 10, 'b');
  budget.forgive();
  large.leave();
  expect(entered.slice(2)).toEqual(['b2']);
  later.leave();
  expect(entered.slice(3)).toEqual(['a1']);
});

test('addresses take turns, whoever was there first', () => {
  const { entered, ask } = lab(10);
  const rooms = [ask('a0', 10, 'a')];
  for (const name of ['a1', 'a2', 'a3']) rooms.push(ask(name, 10, 'a'));
  rooms.push(ask('b1', 10, 'b'), ask('b2', 10, 'b'), ask('c1', 10, 'c'));
  for (let i = 0; i < 7; i++) rooms.find(({ held }) => held)?.leave();
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

test('whoever gives up waiting is passed over', () => {
  const { budget, entered, ask } = lab(1);
  const [first, second] = [ask('1', 1), ask('2', 1), ask('3', 1)];
  second.leave();
  expect(budget.waiting).toBe(1);
  first.leave();
  expect(entered).toEqual(['1', '3']);
});

test('whoever throws when let in has no place: it goes to the next', () => {
  const places = new FairSemaphore(1);
  const entered: string[] = [];
  const place = (name: string, then = (): void => {}): Permit => {
    const taken = new Permit(places, 'a');
    const enter = (): void => {
      entered.push(name);
      then();
    };
    if (name === 'throws at once') expect(() => taken.take(enter)).toThrow(name);
    else taken.take(enter);
    return taken;
  };
  const fail = (name: string) => (): void => {
    throw new Error(name);
  };
  expect(place('throws at once', fail('throws at once')).held).toBe(false);
  const first = place('first');
  const failing = ['b', 'c'].map((name) => place(name, fail(name)));
  const last = place('last');
  expect(() => first.leave()).toThrow();
  expect(entered).toEqual(['throws at once', 'first', 'b', 'c', 'last']);
  expect([first, ...failing, last].map(({ held }) => held)).toEqual([false, false, false, true]);
  last.leave();
  expect(place('after all').held).toBe(true);
});

test('a place that is left while it is given can be taken again', () => {
  const place = new Permit(new FairSemaphore(1), 'a');
  place.take(() => place.leave());
  expect(place.held).toBe(false);
  place.take(() => {});
  expect(place.held).toBe(true);
});

test('however many leave as soon as they are let in, no place is lost', () => {
  const places = new FairSemaphore(1);
  const first = new Permit(places, 'a');
  first.take(() => {});
  let left = 0;
  for (let i = 0; i < 20_000; i++) {
    const place = new Permit(places, 'a');
    place.take(() => {
      left++;
      place.leave();
    });
  }
  first.leave();
  expect(left).toBe(20_000);
  expect(places).toMatchObject({ taken: 0, waiting: 0 });
});

test('addresses that were put behind have half of the room together, and the rest is there when somebody comes', () => {
  const { budget, entered, ask } = lab(100);
  for (const address of ['x', 'y']) ask(`${address}0`, 50, address).leave();
  for (const address of ['x', 'y']) budget.putBehind(address);
  const rooms = ['x1', 'x2', 'y1', 'y2'].map((name) => ask(name, 25, name.charAt(0)));
  expect(entered.slice(2)).toEqual(['x1', 'x2']);
  ask('h', 50, 'h');
  expect(entered.slice(4)).toEqual(['h']);
  rooms[0]!.leave();
  expect(entered.slice(5)).toEqual(['y1']);
});

describe('where few may wait', () => {
  /** Room for one, which is taken; says who was refused, in which order. */
  function crowd(most: number) {
    const budget = new FairSemaphore(1, most);
    const entered: string[] = [];
    const refused: string[] = [];
    const ask = (name: string, address = name.charAt(0)): Permit => {
      const room = new Permit(budget, address);
      room.take(
        () => entered.push(name),
        1,
        () => refused.push(name),
      );
      return room;
    };
    return { budget, entered, refused, first: ask('first', 'nobody'), ask };
  }

  test('no more do, however many addresses there are', () => {
    const { budget, entered, refused, first, ask } = crowd(3);
    const all = ['a1', 'b1', 'c1', 'd1', 'e1'].map((name) => ask(name));
    expect([budget.waiting, refused]).toEqual([3, ['d1', 'e1']]);
    expect(all.map(({ waiting }) => waiting)).toEqual([true, true, true, false, false]);
    first.leave();
    ask('f1');
    expect([entered, refused, budget.waiting]).toEqual([['first', 'a1'], ['d1', 'e1'], 3]);
  });

  test('the newest of the address with most makes room, until all have as many', () => {
    const { budget, refused, ask } = crowd(6);
    for (const name of ['a1', 'a2', 'a3', 'a4', 'a5', 'a6', 'a7']) ask(name);
    expect(refused).toEqual(['a7']);
    for (const name of ['b1', 'b2', 'b3', 'b4', 'c1', 'c2', 'c3']) ask(name);
    expect(refused).toEqual(['a7', 'a6', 'a5', 'a4', 'b4', 'a3', 'b3', 'c3']);
    expect(budget.waiting).toBe(6);
  });

  test('of equals, an address that was put behind makes room', () => {
    const { budget, entered, refused, first, ask } = crowd(2);
    const [a1] = [ask('a1'), ask('b1')];
    for (const address of ['a', 'b']) budget.putBehind(address);
    ask('a2');
    expect(refused).toEqual(['a2']);
    ask('c1');
    expect([refused, a1.waiting]).toEqual([['a2', 'a1'], false]);
    first.leave();
    expect(entered).toEqual(['first', 'c1']);
  });

  test('whoever is refused leaves no trace', () => {
    const { budget, entered, refused, first, ask } = crowd(1);
    const [kept, lost] = [ask('a1'), ask('b1')];
    lost.leave();
    expect([budget.waiting, refused]).toEqual([1, ['b1']]);
    kept.leave();
    expect(budget).toMatchObject({ taken: 1, waiting: 0 });
    first.leave();
    expect(ask('b2', 'b').held).toBe(true);
    expect(entered).toEqual(['first', 'b2']);
  });
});
